"""Chapters: ordered runs of pages, each with a list of messages. The model never sees them.

    system    the prompt and the notice         never changes
    archive   the Contents Page                 changes at a compaction
    active    recent pages, verbatim            grows at its tail

`contents`, `folding` and `contents_json` are the Contents Page as a value; `unload` holds the rules that make it
smaller. Chapters know nothing of budgets, of when a compaction happens, or of storage.
"""
