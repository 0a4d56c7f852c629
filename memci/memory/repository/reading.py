"""Reading: raw pages that a memory knows, from the store of the pages.

    raw_pages(storage, store, [17, 18])   ──▶   (17, PageRecord), (18, PageRecord)

A page that can't be read is given as an empty one: whoever reads it is told, and the others are not to wait for it.
This module knows nothing of what the pages are read for.
"""

import json
import logging
from collections.abc import Collection, Iterator, Sequence

import apsw

from ...errors import CorruptRecord
from ...storage import Storage
from ...workers import yield_to_calls
from ..backend import PageRecord
from .page_source import raw_page
from .store import MemoryStore, fetched

FACTS, GRAPH, QUARANTINED = 1, 2, 4
"""bits of `analyzed`: the page told facts and the profile; it told the graph; it is never to be analysed again"""

_LOG = logging.getLogger("memci")


def raw_pages(storage: Storage, store: MemoryStore, ids: Sequence[int]) -> Iterator[tuple[int, PageRecord]]:
    """Yield the pages *ids* of a memory, in this order. O(their messages)."""
    assert not store.writing, "whoever reads pages waits for the store, which may wait for whoever writes: read first"
    heads: dict[str, int] = {}
    for id_ in ids:
        yield_to_calls()
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


def there(connection: apsw.Connection, ids: Collection[int]) -> bool:
    """Tell whether all pages *ids* are there still, and may be told of. O(ids)."""
    ((count,),) = fetched(connection, _THERE, json.dumps(list(ids)), QUARANTINED)
    return bool(count == len(set(ids)))


_THERE = "SELECT count(*) FROM memory_page WHERE id IN (SELECT value FROM json_each(?)) AND analyzed & ? = 0"
