"""One SQLite file for many contexts, on disk when a call returns.

This package knows nothing of windows, tokens or models.
"""
