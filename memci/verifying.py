"""Verifying: whether what a store holds of a context is whole. The public twin of the `_check`s.

    entries   every one there, none changed              pages   every entry on exactly one page

It reads everything, changes nothing, and tells what it finds. This module knows nothing of windows.
"""

from collections.abc import Iterator

from .errors import CorruptRecord
from .storage import Storage
from .storage.codec import decode


def problems(storage: Storage, context: str) -> Iterator[str]:
    """Yield a sentence for everything that is wrong with *context*. O(entries)."""
    found = storage.load(context)
    if found is None:
        yield f"there is no context {context!r:.60}"
        return
    record, _ = found
    yield from _entries(storage, context, record.head)
    held = [(*span, row.index) for row in storage.pages(context) for span in row.spans(record.head)]
    held.sort()
    reached = 0
    for first, end, index in held:
        if first > reached:
            yield f"entries {reached} to {first - 1} are on no page"
        if first < reached:
            yield f"entry {first} is on page #{index} and on another one"
        reached = max(reached, end)
    if reached != record.head:
        yield f"the pages end at entry {reached}, the context at {record.head}"
    indexes = {row.index for row in storage.pages(context)}
    missing = set(range(1, record.next_page)) - indexes
    if missing:
        yield f"pages {sorted(missing)[:10]} were given out and are not there"


def _entries(storage: Storage, context: str, head: int) -> Iterator[str]:
    seq = 0
    while seq < head:
        try:
            for entry in storage.entries(context, seq, head):
                decode(entry.codec, entry.body)
                seq = entry.seq + 1
        except CorruptRecord as error:
            yield str(error)
            seq = max(seq, error.seq) + 1
        except ValueError as error:
            yield f"entry {seq} can't be decoded: {error}"
            seq += 1
        else:
            break
