"""`memci demo`: a scripted conversation through a real context on the default store.

This package knows nothing of other commands.
"""
