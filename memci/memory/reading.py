"""Reading: raw pages that a memory knows, from the store of the pages.

    raw_pages(storage, store, [17, 18])   ──▶   (17, PageRecord), (18, PageRecord)

A page that can't be read is given as an empty one: whoever reads it is told, and the others are not to wait for it.
This module knows nothing of what the pages are read for.
"""

import logging
from collections.abc import Iterator, Sequence

from ..errors import CorruptRecord
from ..storage import Storage
from .backend import PageRecord
from .raw import raw_page
from .store import MemoryStore

_LOG = logging.getLogger("memci")


def raw_pages(storage: Storage, store: MemoryStore, ids: Sequence[int]) -> Iterator[tuple[int, PageRecord]]:
    """Yield the pages *ids* of a memory, in this order. O(their messages)."""
    heads: dict[str, int] = {}
    for id_ in ids:
        for context, index, turn in store.read_rows(
            "SELECT c.name, g.page, g.turn FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context "
            "WHERE g.id = ?",
            id_,
        ):
            if context not in heads:
                loaded = storage.load(context)
                heads[context] = 0 if loaded is None else loaded[0].head
            try:
                found = raw_page(storage, context, index, heads[context])
            except CorruptRecord:
                _LOG.warning("page #%d can't be read: the memory goes on without it", index)
                found = None
            yield id_, PageRecord(context, index, turn, ()) if found is None else found[0]
