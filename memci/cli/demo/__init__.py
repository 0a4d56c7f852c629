"""`memci demo`: a recorded conversation in a real context on the default store.

This package knows nothing of other commands.
"""
