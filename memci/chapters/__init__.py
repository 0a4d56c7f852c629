"""Chapters: ordered runs of pages, each with a list of messages. The model never sees them.

    system    the prompt and the notice         never changes
    archive   the Contents Page                 changes at a compaction
    active    recent pages, verbatim            grows at its tail

`contents` is the Contents Page as a value; `folding` and the rules in `unload` make it smaller.
"""
