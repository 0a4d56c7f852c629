"""Forgetting: what is erased from a memory, and all that was derived from it.

    page #7 goes     its row, passages, words, vectors          what it alone is evidence of goes too
                     its episode is told anew from the pages that are left
    page #9 is not   its row, passages and words stay: words find it still
    to be trusted    what was derived from it goes, and nothing is derived from it any more

This module knows nothing of how things were derived.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

import apsw

from .backend import Forgotten, Scope
from .consolidation.page_notes import KIND, Note
from .owner import Owner, owner_of
from .repository import job_queue as jobs
from .repository.items import drop, dumped, put, unpacked, validated
from .repository.reading import QUARANTINED
from .repository.store import MemoryStore, fetched, purge
from .retrieval.postings import removed
from .tiers import episodes
from .tiers.chains import ChainSummary
from .tiers.profile import Profile


def forget(store: MemoryStore, owner: Owner, scope: Scope) -> Forgotten:
    """Remove what *scope* names, and what was derived from it. O(its pages + the index, once)."""
    owner.refresh()
    if not owner.nr or (
        scope.pages is not None
        and not _pages_of(store, owner, scope.context, scope.pages)
        and not any(
            each.context == scope.context and each.index in scope.pages for each in jobs.savings(store, owner.nr)
        )
    ):
        return Forgotten()
    with store.change() as connection:
        owner.begin(connection, removes=True)
        pages = _pages_of(store, owner, scope.context, scope.pages)
        derived = _derived(connection, pages)
        for page in pages:
            removed(connection, page)
            connection.execute("DELETE FROM memory_vector WHERE page = ?", (page,))
            _take_out(connection, page)
            connection.execute("DELETE FROM memory_page WHERE id = ?", (page,))
        if scope.pages is not None:
            connection.execute(_HEARD, (owner.nr, scope.context))
        _retell_all(connection, owner, derived, pages)
        jobs.forget_jobs(connection, owner.nr, scope.context, scope.pages)
        if scope.context is None and scope.pages is None:
            connection.execute("DELETE FROM memory_context WHERE owner = ?", (owner.nr,))
            connection.execute("DELETE FROM memory_item WHERE owner = ?", (owner.nr,))
            connection.execute("DELETE FROM memory_owner WHERE nr = ?", (owner.nr,))
        elif scope.pages is None:
            connection.execute("DELETE FROM memory_context WHERE owner = ? AND name = ?", (owner.nr, scope.context))
        purge(connection)
    owner.forget()
    return Forgotten(len(pages), len(derived), scrubbed=store.scrub())


def quarantine(store: MemoryStore, owner: Owner, context: str, index: int) -> Forgotten:
    """Remove all that was derived from a page, and derive nothing from it any more. O(what is told anew).

    The page itself stays, and is found by its words.
    """
    owner.refresh()
    if not owner.nr or not _pages_of(store, owner, context, (index,)):
        return Forgotten()
    with store.change() as connection:
        owner.begin(connection)
        pages = _pages_of(store, owner, context, (index,))
        derived = _derived(connection, pages)
        for page in pages:
            _take_out(connection, page)
            connection.execute(_SET_APART, (QUARANTINED, page))
            connection.execute("UPDATE memory_owner SET last = NULL WHERE nr = ? AND last = ?", (owner.nr, page))
        _retell_all(connection, owner, derived, pages)
        jobs.forget_jobs(connection, owner.nr, context, (index,))
    owner.forget()
    return Forgotten(0, len(derived), scrubbed=store.scrub())


_SET_APART = """
UPDATE memory_page SET tier = 0, entered = NULL, episode = NULL, chain = NULL, previous = NULL, next = NULL,
summary = '', keywords = '', analyzed = ? WHERE id = ?"""
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
        names = [row[0] for row in store.read_rows(_OWNERS, context)]
        for name in dict.fromkeys([*names, *jobs.savers(store, context)]):
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


def _retell_all(connection: apsw.Connection, owner: Owner, derived: Sequence[int], gone: Sequence[int]) -> None:
    """Tell what was *derived* from pages that are *gone* anew. O(their pages)."""
    told = set(derived)
    for item in derived:
        for (body,) in fetched(connection, "SELECT body FROM memory_item WHERE id = ? AND kind = ?", item, KIND):
            told.remove(item)
            drop(connection, [item])
            note = validated(Note, body)
            if note.page not in gone:
                told.update(_unnoted(connection, owner, note))
    for item in sorted(told):
        _retell(connection, owner, item)


def _unnoted(connection: apsw.Connection, owner: Owner, note: Note) -> list[int]:
    """Let a page be told of by what is extracted of it, and return what is to be told anew for that."""
    jobs.enqueue(connection, owner.nr, "page", note.page)
    found = fetched(connection, "SELECT episode, chain FROM memory_page WHERE id = ? AND summary <> ''", note.page)
    words = json.dumps(note.plain.keywords, ensure_ascii=False)
    connection.execute(
        "UPDATE memory_page SET summary = ?, keywords = ? WHERE id = ? AND summary <> ''",
        (note.plain.title, words, note.page),
    )
    return [item for row in found for item in row if item is not None]


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
        _analysed_anew(connection, left)
    else:  # what else it came from is analysed again
        _analysed_anew(connection, left)
        drop(connection, [item])


def _analysed_anew(connection: apsw.Connection, pages: Sequence[tuple[int, ...]]) -> None:
    connection.executemany(
        "UPDATE memory_page SET analyzed = analyzed & ? WHERE id = ?", [(QUARANTINED, row[0]) for row in pages]
    )


def _take_out(connection: apsw.Connection, page: int) -> None:
    """Take *page* out of what was derived from it, and what is to be done for it."""
    connection.execute("DELETE FROM memory_vector WHERE page = ? AND passage = 0", (page,))
    connection.execute("DELETE FROM memory_evidence WHERE page = ?", (page,))
    connection.execute("DELETE FROM memory_job WHERE kind = 'page' AND subject = ?", (page,))
    _unlink(connection, page)


def _unlink(connection: apsw.Connection, page: int) -> None:
    """Take *page* out of its chain: the pages before and after it are neighbours then."""
    linked = fetched(connection, "SELECT previous, next FROM memory_page WHERE id = ?", page)
    before, after = linked[0] if linked else (None, None)
    connection.execute("UPDATE memory_page SET next = ? WHERE id = ?", (after, before))
    connection.execute("UPDATE memory_page SET previous = ? WHERE id = ?", (before, after))
