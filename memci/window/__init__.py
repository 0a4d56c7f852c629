"""The window: what the model sees now, and the pure decisions about it.

    window        the pages of one context that stand in memory, and their cost in tokens
    drafting      what an append would add
    snapshot      how the window stood at the close of a turn, as JSON

This package knows nothing of I/O: it decides, and `memci.history` stores.
"""
