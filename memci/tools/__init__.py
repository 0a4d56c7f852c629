"""Tools that a model may call: `recall_page`, `search_memory`, and the same tools as a text protocol (`attp`).

This package knows nothing of stores, or of how a window is made.
"""
