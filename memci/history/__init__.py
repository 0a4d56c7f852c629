"""One context as rows in a store: opening, changing, viewing an earlier turn, forking, erasing, exporting.

    store  ──▶  loader  ──▶  Window  ──▶  writer  ──▶  store

How a window decides what to show is in `memci.window`.
"""
