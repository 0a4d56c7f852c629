"""Forgetting: what is erased from a memory, and all that was derived from it.

    page #7 goes     its row, passages, words, vectors          what it alone is evidence of goes too
                     its episode is told anew from the pages that are left

This module knows nothing of how things were derived.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import apsw

from . import episodes
from .backend import Forgotten, Scope
from .chains import ChainSummary
from .index import removed
from .items import drop, dumped, put, unpacked
from .owner import Owner, owner_of
from .profile import Profile
from .store import MemoryStore, fetched, purge


def forget(store: MemoryStore, owner: Owner, scope: Scope) -> Forgotten:
    """Remove what *scope* names, and what was derived from it. O(its pages + the index, once)."""
    owner.refresh()
    if not owner.nr or (not _pages_of(store, owner, scope.context, scope.pages) and scope.pages is not None):
        return Forgotten()
    with store.change() as connection:
        owner.begin(connection, removes=True)
        pages = _pages_of(store, owner, scope.context, scope.pages)
        derived = _derived(connection, pages)
        for page in pages:
            removed(connection, page)
            connection.execute("DELETE FROM memory_vector WHERE page = ?", (page,))
            connection.execute("DELETE FROM memory_evidence WHERE page = ?", (page,))
            _unlink(connection, page)
            connection.execute("DELETE FROM memory_page WHERE id = ?", (page,))
        if scope.pages is not None:
            connection.execute(_HEARD, (owner.nr, scope.context))
        for item in derived:
            _retell(connection, owner, item)
        if scope.context is None and scope.pages is None:
            connection.execute("DELETE FROM memory_context WHERE owner = ?", (owner.nr,))
            connection.execute("DELETE FROM memory_item WHERE owner = ?", (owner.nr,))
            connection.execute("DELETE FROM memory_owner WHERE nr = ?", (owner.nr,))
        elif scope.pages is None:
            connection.execute("DELETE FROM memory_context WHERE owner = ? AND name = ?", (owner.nr, scope.context))
        purge(connection)
    owner.forget()
    return Forgotten(len(pages), len(derived), scrubbed=store.scrub())


_HEARD = """
UPDATE memory_context SET heard = (SELECT coalesce(max(page), 0) FROM memory_page WHERE context = nr)
WHERE owner = ? AND name = ?"""
"""what is gone at the end was not heard of: its number may be given out again"""


def forget_everywhere(store: MemoryStore, gone: Mapping[str, Collection[int] | None]) -> bool:
    """Let every owner's memory forget contexts, or pages of them; return whether no byte is left in the files.

    A context may have had another owner before, or forks with owners of their own. An owner without a context is gone.

    Args:
        store: The tables.
        gone: Indexes of pages by context; None: all of it.
    """
    for context, pages in gone.items():
        for (name,) in store.read_rows(_OWNERS, context):
            with store.lock:
                owner = owner_of(store, name)
                forget(store, owner, Scope(context, pages))
                if not store.read_rows("SELECT 1 FROM memory_context WHERE owner = ?", owner.nr):
                    forget(store, owner, Scope())
    return store.scrub()


_OWNERS = "SELECT o.name FROM memory_context AS c JOIN memory_owner AS o ON o.nr = c.owner WHERE c.name = ?"


def _pages_of(store: MemoryStore, owner: Owner, context: str | None, indexes: Iterable[int] | None) -> list[int]:
    """Return the ids of the pages that a scope names. O(pages of the context, or of the owner)."""
    if context is None:
        found = store.read_rows("SELECT id FROM memory_page WHERE owner = ?", owner.nr)
    else:
        found = store.read_rows(
            "SELECT g.id, g.page FROM memory_page AS g JOIN memory_context AS c ON c.nr = g.context "
            "WHERE c.owner = ? AND c.name = ?",
            owner.nr,
            context,
        )
    wanted = None if indexes is None else frozenset(indexes)
    return [int(row[0]) for row in found if wanted is None or row[1] in wanted]


def _derived(connection: apsw.Connection, pages: Sequence[int]) -> list[int]:
    """Return the items that one of *pages* is evidence of: they may hold its words. O(evidence of the pages)."""
    found: set[int] = set()
    for page in pages:
        found.update(row[0] for row in fetched(connection, "SELECT item FROM memory_evidence WHERE page = ?", page))
    return sorted(found)


def _retell(connection: apsw.Connection, owner: Owner, item: int) -> None:
    """Tell an item anew from the pages that are left of it; drop it if that can't be done. O(its pages)."""
    left = fetched(
        connection,
        "SELECT g.id, g.summary, g.keywords, v.vector FROM memory_evidence AS e JOIN memory_page AS g ON g.id = e.page "
        "LEFT JOIN memory_vector AS v ON v.page = g.id AND v.passage = 0 WHERE e.item = ? ORDER BY g.context, g.page",
        item,
    )
    episode, chain = owner.tiers.episodes.get(item), owner.tiers.chains.get(item)
    if left and episode is not None:
        told = episodes.retold(episode, [(row[1], tuple(json.loads(row[2] or "[]")), unpacked(row[3])) for row in left])
        put(connection, owner.nr, "episode", dumped(told, without=["embedding"]), id=item, vector=told.embedding)
    elif left and chain is not None:
        summary = ChainSummary()
        for row in left:
            summary = summary.updated(row[1])
        put(connection, owner.nr, "chain", dumped(summary), id=item)
    elif item == owner.tiers.profile_id:  # its counters tell nothing of what was said
        bare = Profile(turns=owner.tiers.profile.turns, last_turn=owner.tiers.profile.last_turn)
        put(connection, owner.nr, "profile", dumped(bare), id=item)
        connection.executemany("UPDATE memory_page SET analyzed = 0 WHERE id = ?", [(row[0],) for row in left])
    else:  # what else it came from is analysed again
        connection.executemany("UPDATE memory_page SET analyzed = 0 WHERE id = ?", [(row[0],) for row in left])
        drop(connection, [item])


def _unlink(connection: apsw.Connection, page: int) -> None:
    """Take *page* out of its chain: the pages before and after it are neighbours then."""
    linked = fetched(connection, "SELECT previous, next FROM memory_page WHERE id = ?", page)
    before, after = linked[0] if linked else (None, None)
    connection.execute("UPDATE memory_page SET next = ? WHERE id = ?", (after, before))
    connection.execute("UPDATE memory_page SET previous = ? WHERE id = ?", (before, after))
