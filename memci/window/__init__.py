"""The window: what the model sees now, and the pure decisions about it. Nothing here reads or writes.

window        the pages of one context in memory, and their cost in tokens
drafting      what an append would add
compaction    what a compaction would change
snapshot      the window at the close of a turn, as JSON
"""
