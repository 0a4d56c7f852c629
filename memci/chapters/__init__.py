"""Chapters: ordered runs of pages, each with a list of messages. Internal: the model never sees them.

    system    the prompt and the notice         never changes
    archive   the Contents Page                 changes at a compaction
    active    recent pages, verbatim            grows at its tail

`contents` has the Contents Page, a value; `folding` and the rules of `unload` make it smaller.
"""
