"""`memci replay`: a stored conversation through a real context, with a live picture of the window.

This package knows nothing of stores.
"""
