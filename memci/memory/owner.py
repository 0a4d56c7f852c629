"""One owner in RAM: the index of the words, the episodes and the rest of what is known, as the store has them.

    revision 17 in the store, 17 here    nothing to read         18 there    another process was here: read anew

A change begins within its transaction, with what the store has then; so nothing is reckoned from what is old. This
module knows nothing of how any of it comes about.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import apsw

from .repository.items import loaded, unpacked, validated
from .repository.store import MemoryStore
from .retrieval.layout import Row
from .retrieval.postings import WordIndex
from .retrieval.vectors import VectorIndex
from .tiers.chains import ChainSummary
from .tiers.episodes import Episode
from .tiers.events import DailySummary, LifeEvent
from .tiers.fact_lists import Knowledge
from .tiers.facts import Known
from .tiers.graph import Graph
from .tiers.heat import Warmth
from .tiers.profile import Profile
from .tiers.relations import Relation

MOST_OWNERS = 256
"""of which something stays in RAM"""

Fresh = tuple[list[int], list[Row], list[Counter[str]]]
"""passages that were just stored: ids, rows, terms"""

Change = Callable[[], AbstractContextManager[apsw.Connection]]
"""a transaction of an owner, in which a step writes what it reckoned: `Owner.change`, or one that writes more"""


class Conflict(Exception):
    """What a step was reckoned from is no longer so: it is to look again. It goes no further than maintenance."""


@dataclass(slots=True)
class Tiers:
    """What is known of an owner's pages. Keys are ids of items."""

    episodes: dict[int, Episode] = field(default_factory=dict)
    episode_of: dict[int, int] = field(default_factory=dict)
    """pages (their ids) that are in an episode"""
    vectors: VectorIndex | None = None
    """of the episodes"""
    changed: set[int] = field(default_factory=set)
    """episodes that changed since the last maintenance"""
    chains: dict[int, ChainSummary] = field(default_factory=dict)
    user: Knowledge = field(default_factory=Knowledge)
    assistant: Knowledge = field(default_factory=Knowledge)
    profile: Profile = field(default_factory=Profile)
    profile_id: int | None = None
    graph: Graph = field(default_factory=Graph)
    events: dict[int, LifeEvent] = field(default_factory=dict)
    days: dict[str, tuple[int, DailySummary]] = field(default_factory=dict)

    def keep(self, id: int, episode: Episode | None) -> None:  # noqa: A002 -- the episode's
        """Take over what an episode is now, None if it is gone."""
        if episode is None:
            self.episodes.pop(id, None)
            if self.vectors is not None:
                self.vectors.remove([id])
            return
        self.episodes[id] = episode
        vector = episode.embedding
        if vector is None:
            return
        if self.vectors is None or self.vectors.dimension != len(vector):
            self.vectors = VectorIndex(len(vector))
        self.vectors.add([id], vector[None, :])

    def warmth(self, page: int, now: float) -> float:
        """Return the lifetime heat of the episode of *page* (its id), 0 if it is in none."""
        episode = self.episodes.get(self.episode_of.get(page, 0))
        return 0.0 if episode is None else episode.warmth.lifetime(now)

    def knows(self, about: str) -> Knowledge:
        """Return the list of what is known about the user, or the assistant."""
        return self.user if about == "user" else self.assistant


def owner_of(store: MemoryStore, name: str) -> "Owner":
    """Return what is in RAM of the owner *name*: the same for all who use this store."""
    with store.lock:
        found = store.owners.get(name)
        if not isinstance(found, Owner):
            found = store.owners[name] = Owner(store, name)
        store.owners.move_to_end(name)
        while len(store.owners) > MOST_OWNERS:
            store.owners.popitem(last=False)
        return found


class Owner:
    """An owner's number, and what was read of it. Whoever uses it holds the store's lock."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self.name = name
        self.failures: dict[int, int] = {}
        """how often the analysis of an episode failed"""
        self.failed: set[int] = set()
        """episodes whose analysis failed in this maintenance"""
        self._store = store
        self.nr = 0
        """0 until something is kept"""
        self.revision = -1
        self.tiers = Tiers()
        self.index = WordIndex(store, 0)
        self.passages: VectorIndex | None = None
        """vectors of passages by their ids, once they were needed"""
        self._indexed = self._removals = -1

    def refresh(self, *, index: bool = False) -> None:
        """Read what is not known yet, the *index* of the words too if it is needed. One small query if all is known."""
        found = self._store.read_rows("SELECT nr, revision, removals FROM memory_owner WHERE name = ?", self.name)
        nr, revision, removals = found[0] if found else (0, 0, 0)
        if nr != self.nr:
            self._forget(nr)
        if revision != self.revision:
            self._read()
            self.revision = revision
        if index and nr and (self._indexed, self._removals) != (revision, removals):
            self.index.reload()
            self.passages = None
            self._indexed, self._removals = revision, removals

    @contextmanager
    def change(self) -> Iterator[apsw.Connection]:
        """Give the connection for one transaction, for changes that neither add nor remove passages.

        What it changes in RAM is read anew if it is not kept.
        """
        with self._store.lock:
            try:
                with self._store.change() as connection:
                    self.begin(connection)
                    yield connection
            except BaseException:
                self.forget()
                raise
            self.committed()

    def begin(self, connection: apsw.Connection, *, removes: bool = False) -> None:
        """Begin a change within its transaction: read what is new, count the revision up, give a number to a new one.

        Args:
            connection: In a transaction that may write.
            removes: Whether passages go, or come out of their order.
        """
        self.refresh()
        if not self.nr:
            connection.execute("INSERT INTO memory_owner(name) VALUES (?)", (self.name,))
            self._forget(connection.last_insert_rowid())
            self.revision = self._indexed = self._removals = 0
        connection.execute(
            "UPDATE memory_owner SET revision = revision + 1, removals = removals + ? WHERE nr = ?",
            (int(removes), self.nr),
        )

    def committed(self, fresh: Fresh | None = None, *, removes: bool = False) -> None:
        """Note that the change that was begun is kept, with *fresh* passages."""
        current = self._indexed == self.revision
        self.revision += 1
        if removes or not current:
            self._indexed = -1
            return
        if fresh is not None:
            self.index.add(*fresh)
        self._indexed = self.revision

    def forget(self) -> None:
        """Read everything anew when it is next needed."""
        changed = self.tiers.changed
        self._forget(self.nr)
        self.tiers.changed = changed

    def _forget(self, nr: int) -> None:
        self.nr = nr
        self.revision = -1
        self._indexed = self._removals = -1
        self.tiers = Tiers()
        self.index = WordIndex(self._store, nr)
        self.passages = None

    def _read(self) -> None:
        tiers = self.tiers = Tiers(changed=self.tiers.changed)
        of = self._store.read_rows(
            "SELECT id, episode FROM memory_page WHERE owner = ? AND episode IS NOT NULL", self.nr
        )
        tiers.episode_of = dict(of)
        facts: dict[str, dict[int, Known]] = {"user": {}, "assistant": {}}
        told: list[Relation] = []
        for id_, kind, body, vector in self._store.read_rows(
            "SELECT id, kind, body, vector FROM memory_item WHERE owner = ? AND kind <> 'note'", self.nr
        ):
            if kind == "episode":
                episode = loaded(Episode, body, embedding=unpacked(vector))
                tiers.keep(id_, replace(episode, warmth=Warmth(**episode.warmth)))  # type: ignore[arg-type]
            elif kind == "chain":
                tiers.chains[id_] = loaded(ChainSummary, body)
            elif kind == "fact":
                known = loaded(Known, body, vector=unpacked(vector))
                facts[known.about][id_] = known
            elif kind == "relation":
                told.append(loaded(Relation, body))
            elif kind == "profile":
                tiers.profile, tiers.profile_id = validated(Profile, body), id_
            elif kind == "event":
                tiers.events[id_] = loaded(LifeEvent, body)
            elif kind == "day":
                day = validated(DailySummary, body)
                tiers.days[day.date] = id_, day
        tiers.user, tiers.assistant = Knowledge(facts["user"]), Knowledge(facts["assistant"])
        tiers.graph = Graph(told)
