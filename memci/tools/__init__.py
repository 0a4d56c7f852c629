"""Tools that a model may call: `recall_page`, `search_memory`, and the same tools as a text protocol (`attp`).

Pages and memories come from functions that are passed in: this package knows no context and no history.
"""
