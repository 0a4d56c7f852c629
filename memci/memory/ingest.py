"""Admission: how pages come into a memory, and go.

    observed   a page is cut into passages, whose words can be found        tier 0
    admitted   it left the Contents Page: last in the short-term queue      tier 1
    erased     its row, passages and vectors go, and what was derived from it alone

A page is known by its context and index, and by a digest of what it says: the same again changes nothing, another text
takes the place of the first. This module knows nothing of the tiers beyond the queue.
"""

import hashlib
import json

import apsw

from .backend import PageRecord, Scope
from .forgetting import forget
from .owner import Owner
from .repository.job_queue import enqueue, savable, skip
from .repository.reading import QUARANTINED
from .repository.store import MemoryStore, fetched
from .repository.tier import OBSERVED, SHORT
from .retrieval.passages import passages
from .retrieval.postings import analysed, stored


def observed(store: MemoryStore, owner: Owner, page: PageRecord, *, modelled: bool = False) -> int:
    """Keep *page* so that its words are found, and return its id. O(its characters).

    Args:
        store: Where the memory is.
        owner: Whose memory; the store's lock is held.
        page: The page.
        modelled: Whether a model is to say what is on it: a job is left for that.
    """
    digest = _digest(page)
    known = store.read_rows(SELECT_PAGE, owner.name, page.context, page.index)
    if known and known[0][1] == digest:
        return int(known[0][0])
    pieces = analysed(passages([entry for entry in page.entries if entry[0] not in page.quotes]), page.at)
    with store.change() as connection:
        known = store.read_rows(SELECT_PAGE, owner.name, page.context, page.index)
        apart = known[0][3] & QUARANTINED if known else 0
        if known and known[0][1] == digest:  # another process was faster
            return int(known[0][0])
        if known:  # nothing of what it said before may be left, in what was derived of it either
            forget(store, owner, Scope(page.context, (page.index,)))
        late = bool(known) or heard(store, owner, page.context) >= page.index
        owner.begin(connection, removes=late)
        context = _context(connection, owner.nr, page.context, page.index)
        connection.execute(
            "INSERT INTO memory_page(owner, context, page, turn, at, digest, analyzed) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (owner.nr, context, page.index, page.turn, page.at, digest, apart),
        )
        id_ = connection.last_insert_rowid()
        fresh = stored(connection, owner.nr, context, id_, page.at, pieces)
        if known and known[0][2] != OBSERVED:
            _queue(connection, owner.nr, id_)
        savable(connection, owner.nr, page.context, page.index)
        if modelled and page.entries and not apart and not enqueue(connection, owner.nr, "page", id_):
            skip(connection, owner.nr)
    owner.committed(fresh, removes=late)
    if known:
        store.scrub()
    return id_


def admitted(store: MemoryStore, owner: Owner, id: int) -> None:  # noqa: A002 -- the page's
    """Put the page *id* at the end of the queue, if it was never there."""
    found = store.read_rows("SELECT tier, analyzed FROM memory_page WHERE id = ?", id)
    if not found or found[0][0] != OBSERVED or found[0][1] & QUARANTINED:
        return
    with store.change() as connection:
        owner.begin(connection)
        _queue(connection, owner.nr, id)
    owner.committed()


def heard(store: MemoryStore, owner: Owner, context: str) -> int:
    """Return the highest page of *context* that was observed, 0 if none was."""
    found = store.read_rows(
        "SELECT c.heard FROM memory_context AS c JOIN memory_owner AS o ON o.nr = c.owner "
        "WHERE o.name = ? AND c.name = ?",
        owner.name,
        context,
    )
    return int(found[0][0]) if found else 0


SELECT_PAGE = """
SELECT g.id, g.digest, g.tier, g.analyzed, g.turn, g.at FROM memory_page AS g
JOIN memory_context AS c ON c.nr = g.context
JOIN memory_owner AS o ON o.nr = c.owner WHERE o.name = ? AND c.name = ? AND g.page = ?"""


def _queue(connection: apsw.Connection, owner: int, page: int) -> None:
    connection.execute(
        "UPDATE memory_page SET tier = ?, entered = (SELECT coalesce(max(entered), 0) + 1 FROM memory_page "
        "WHERE owner = ? AND tier = ?) "
        "WHERE id = ? AND tier = ? AND analyzed & ? = 0",
        (SHORT, owner, SHORT, page, OBSERVED, QUARANTINED),
    )


def _context(connection: apsw.Connection, owner: int, name: str, index: int) -> int:
    connection.execute(
        "INSERT INTO memory_context(owner, name, heard) VALUES (?, ?, ?) "
        "ON CONFLICT(owner, name) DO UPDATE SET heard = max(heard, excluded.heard)",
        (owner, name, index),
    )
    (row,) = fetched(connection, "SELECT nr FROM memory_context WHERE owner = ? AND name = ?", owner, name)
    return int(row[0])


def _digest(page: PageRecord) -> bytes:
    """Return what tells whether a page says the same as before: 16 bytes."""
    text = json.dumps([page.entries, page.turn, page.at, sorted(page.quotes)], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
