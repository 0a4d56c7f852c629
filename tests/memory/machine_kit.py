"""What the tests of the tiers share: raw pages, a look into the tables, a fake of a memory. It tests nothing."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import apsw

from memci.memory.backend import Forgotten, PageRecord, Recollection, Scope
from memci.memory.repository.home import _shared
from memci.memory.tiered_memory import TieredMemory
from memci.rows import ContextRecord, EntryRow, PageRow, PageState
from memci.storage import Storage
from memci.storage.codec import ERASED, digest, encode
from memci.storage.protocol import Transition


def keeping(storage: Storage) -> Callable[[PageRecord], None]:
    """Return what stores a raw page as a context would have, another text in place of the first."""

    def keep(page: PageRecord) -> None:
        loaded = storage.load(page.context)
        record = loaded[0] if loaded else ContextRecord(page.context, page.context, "{}", "{}", revision=0)
        head, said = record.head, dict(page.entries)
        entries = tuple(
            _entry(head + ordinal - 1, said.get(ordinal), page, ordinal)
            for ordinal in range(1, max(said, default=0) + 1)
        )
        end = head + len(entries)
        after = record._replace(head=end, next_page=max(record.next_page, page.index + 1), revision=record.revision + 1)
        row = PageRow(page.index, head, end, page.turn, PageState.UNLOADED)
        storage.commit(Transition(head, after, entries, (row,)))

    return keep


def _entry(seq: int, message: dict | None, page: PageRecord, ordinal: int) -> EntryRow:
    codec, body = (ERASED, b"user") if message is None else encode(message)[:2]
    quotes = (1, None) if ordinal in page.quotes else None
    at = None if page.at is None else _iso(page.at)
    return EntryRow(seq, codec, body, digest(codec, body), 7, quotes=quotes, at=at)


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def rows(memory: TieredMemory, statement: str, *values: object) -> list[tuple]:
    """Return rows of the tables of *memory*."""
    return memory.session.store.read_rows(statement, *values)


def connection(memory: TieredMemory) -> apsw.Connection:
    """Return the connection of *memory*, which has been used."""
    made = memory.session.store._connection
    assert made is not None
    return made


def die(storage: Storage) -> None:
    """Forget all that is in RAM, and leave everything as it is, as a process that dies does."""
    for key, found in _shared.pop(storage, {}).items():
        if found._place != ":memory:" and found._connection is not None:
            found._connection.close()
        else:
            found.owners.clear()
            _shared.setdefault(storage, {})[key] = found


def tiers(memory: TieredMemory) -> dict[tuple[str, int], str]:
    """Return the tier of each page."""
    names = ("observed", "short", "mid", "evicted")
    return {(context, page): names[tier] for context, page, tier, *_ in pages(memory)}


def pages(memory: TieredMemory) -> list[tuple]:
    """Return (context, page, tier, id, episode, chain) of each page of the owner."""
    return rows(
        memory,
        "SELECT c.name, g.page, g.tier, g.id, g.episode, g.chain FROM memory_page AS g "
        "JOIN memory_context AS c ON c.nr = g.context JOIN memory_owner AS o ON o.nr = g.owner WHERE o.name = ? "
        "ORDER BY g.id",
        memory.owner,
    )


def items(memory: TieredMemory, kind: str) -> dict[int, dict]:
    """Return the items of one *kind* of the owner, by id."""
    found = rows(
        memory,
        "SELECT i.id, i.body FROM memory_item AS i JOIN memory_owner AS o ON o.nr = i.owner "
        "WHERE o.name = ? AND i.kind = ?",
        memory.owner,
        kind,
    )
    return {key: json.loads(body) for key, body in found}


def check(memory: TieredMemory) -> None:
    """Check what must be true of the tiers whatever happened."""
    known = {row[3]: row for row in pages(memory)}
    episodes = items(memory, "episode")
    chains = items(memory, "chain")
    members = Counter(row[4] for row in known.values() if row[4] is not None)
    for context, page, tier, _, episode, chain in known.values():
        name = f"{context} #{page}"
        assert (episode is not None) == (tier == 2), (
            f"pages of the middle tier, and only those, are in an episode: {name}"
        )
        assert (tier == 2) == (chain is not None), f"they are in a chain, too: {name}"
        assert chain is None or chain in chains, f"and that is there: {name}"
    assert set(members) == set(episodes), "every episode has pages, and every page that names one has it"
    for key, episode in episodes.items():
        assert episode["warmth"]["length"] == members[key], "an episode is as long as it has pages"
        assert episode["warmth"]["visits"] >= episode["warmth"]["access_count"] >= 0, "a search that finds it visits it"
        told = {row[0] for row in rows(memory, "SELECT page FROM memory_evidence WHERE item = ?", key)}
        assert told == {id_ for id_, row in known.items() if row[4] == key}, "its evidence is its pages"
    lost = rows(memory, "SELECT page FROM memory_evidence WHERE page NOT IN (SELECT id FROM memory_page)")
    lost += rows(memory, "SELECT page FROM memory_vector WHERE page NOT IN (SELECT id FROM memory_page)")
    lost += rows(memory, "SELECT id FROM memory_passage WHERE page NOT IN (SELECT id FROM memory_page)")
    lost += rows(memory, "SELECT item FROM memory_evidence WHERE item NOT IN (SELECT id FROM memory_item)")
    assert lost == [], "nothing is left of a page that is gone"


class Told:
    """A memory that only remembers what it was told, in effect and call by call; it can fail.

    Args:
        fails: What it raises at its next calls, if it is to fail; set it at any time.
        after: Whether it fails after it took in what it was told.
    """

    def __init__(self, fails: Callable[[], BaseException] | None = None, *, after: bool = False) -> None:
        self.fails, self.after = fails, after
        self.at: int | None = None
        """the call at which it fails, from 1; None: every one"""
        self.pages: dict[tuple[str, int], PageRecord] = {}
        self.admitted: set[tuple[str, int]] = set()
        self.calls: list[tuple[str, object]] = []
        self.asked: list[dict] = []
        self.answer = Recollection("")
        self.maintained = self.closed = 0
        self.ended: list[str] = []

    def observe(self, page: PageRecord) -> None:
        with self._call("observe", page.key):
            self.pages[page.key] = page

    def admit(self, page: PageRecord) -> None:
        with self._call("admit", page.key):
            self.pages[page.key] = page
            self.admitted.add(page.key)

    def acknowledged(self, context: str) -> int:
        return max(
            (index for (name, index), page in self.pages.items() if name == context and not page.open), default=0
        )

    def observed(self, context: str) -> set[int]:
        return {index for name, index in self.pages.keys() - self.admitted if name == context}

    def overdue(self) -> bool:
        return False

    def end_session(self, context: str) -> None:
        self.ended.append(context)

    def search(self, query: str, **given: object) -> Recollection:
        self.asked.append({"query": query, **given})
        if self.fails is not None:
            raise self.fails()
        return self.answer

    def erase(self, scope: Scope) -> Forgotten:
        with self._call("erase", (scope.context, tuple(scope.pages or ()))):
            gone = [
                key
                for key in self.pages
                if scope.context in (None, key[0]) and (scope.pages is None or key[1] in scope.pages)
            ]
            for key in gone:
                del self.pages[key]
                self.admitted.discard(key)
        return Forgotten(len(gone))

    def maintain(self, now: float | None = None) -> int:
        self.maintained += 1
        return 0

    def close(self) -> None:
        self.closed += 1

    @contextmanager
    def _call(self, name: str, what: object) -> Iterator[None]:
        self.calls.append((name, what))
        now = self.fails is not None and self.at in (None, len(self.calls))
        if now and not self.after:
            raise self.fails()
        yield
        if now:
            raise self.fails()
