"""One owner in RAM: the index of the words, the episodes and the rest of what is known, as the store has them.

    revision 17 in the store, 17 here    nothing to read         18 there    another process was here: read anew

This module knows nothing of how any of it comes about.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import apsw

from ..errors import StorageBusy
from .chains import ChainSummary
from .episodes import Episode
from .heat import Warmth
from .index import WordIndex
from .items import loaded, unpacked
from .store import MemoryStore, fetched
from .vectors import VectorIndex


class Outdated(StorageBusy):
    """Another process has changed what this was reckoned from."""


_T = TypeVar("_T")
_ATTEMPTS = 8
MOST_OWNERS = 256
"""of which something stays in RAM"""


@dataclass(slots=True)
class Tiers:
    """What is known of an owner's pages."""

    episodes: dict[int, Episode] = field(default_factory=dict)
    episode_of: dict[int, int] = field(default_factory=dict)
    """pages (their ids) that are in an episode"""
    changed: set[int] = field(default_factory=set)
    """episodes that changed since the last upkeep"""
    chains: dict[int, ChainSummary] = field(default_factory=dict)


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


def anew(store: MemoryStore, name: str, work: Callable[["Owner"], _T]) -> _T:
    """Return what *work* returns for the owner *name*, reckoned anew where another process came between.

    Raises:
        StorageBusy: If that happened all the time.
    """
    with store.lock:
        owner = owner_of(store, name)
        for _ in range(_ATTEMPTS - 1):
            owner.refresh()
            try:
                return work(owner)
            except Outdated:
                continue
        owner.refresh()
        return work(owner)


class Owner:
    """An owner's number, and what was read of it. Whoever uses it holds the store's lock."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        self.name = name
        self.nr = 0
        """0 until something is kept"""
        self.revision = -1
        self._store = store
        self.tiers = Tiers()
        self.index = WordIndex(store, 0)
        self.episode_vectors: VectorIndex | None = None

    def refresh(self) -> None:
        """Read what is not known yet. One small query if nothing has changed."""
        found = self._store.read_rows("SELECT nr, revision, removals FROM memory_owner WHERE name = ?", self.name)
        if not found:
            if self.nr:  # it was erased
                self._forget(0)
            return
        nr, revision, removals = found[0]
        if nr != self.nr:
            self._forget(nr)
        if revision != self.revision:
            if self.revision >= 0:
                self.index.stale()
            self._read()
            self.revision = revision
        self.index.refresh(removals)

    def warmth(self, page: int, now: float) -> float:
        """Return the lifetime heat of the episode of *page* (its id), 0 if it is in none."""
        episode = self.tiers.episodes.get(self.tiers.episode_of.get(page, 0))
        return 0.0 if episode is None else episode.warmth.lifetime(now)

    def keep(self, id: int, episode: Episode | None) -> None:  # noqa: A002 -- the episode's
        """Take over what an episode is now, None if it is gone."""
        if episode is None:
            self.tiers.episodes.pop(id, None)
            if self.episode_vectors is not None:
                self.episode_vectors.remove([id])
            return
        self.tiers.episodes[id] = episode
        vector = episode.embedding
        if vector is None:
            return
        if self.episode_vectors is None or self.episode_vectors.dimension != len(vector):
            self.episode_vectors = VectorIndex(len(vector))
        self.episode_vectors.add([id], vector[None, :])

    def begin(self, connection: apsw.Connection, *, removes: bool = False) -> None:
        """Begin a change of this owner within a transaction: it is given a number, its revision counts up.

        Raises:
            Outdated: If another process has changed it since it was read; nothing is changed then.
        """
        found = fetched(connection, "SELECT nr, revision FROM memory_owner WHERE name = ?", self.name)
        if not found:
            connection.execute("INSERT INTO memory_owner(name) VALUES (?)", (self.name,))
            self._forget(connection.last_insert_rowid())
            self.revision = 0
            self.index.refresh(0)
        elif found[0] != (self.nr, self.revision):
            raise Outdated(f"the memory of {self.name!r:.60} was changed meanwhile")
        connection.execute(
            "UPDATE memory_owner SET revision = revision + 1, removals = removals + ? WHERE nr = ?",
            (int(removes), self.nr),
        )

    def committed(self) -> None:
        """Note that the change that was begun is kept."""
        self.revision += 1

    def _forget(self, nr: int) -> None:
        self.nr, self.revision = nr, -1
        self.tiers, self.episode_vectors = Tiers(), None
        self.index = WordIndex(self._store, nr)

    def _read(self) -> None:
        self.tiers, self.episode_vectors = Tiers(), None
        of = self._store.read_rows(
            "SELECT id, episode FROM memory_page WHERE owner = ? AND episode IS NOT NULL", self.nr
        )
        self.tiers.episode_of = {page: episode for page, episode in of}
        for id_, kind, body, vector in self._store.read_rows(
            "SELECT id, kind, body, vector FROM memory_item WHERE owner = ?", self.nr
        ):
            if kind == "episode":
                episode = loaded(Episode, body, embedding=unpacked(vector))
                self.keep(id_, replace(episode, warmth=Warmth(**episode.warmth)))  # type: ignore[arg-type]
            elif kind == "chain":
                self.tiers.chains[id_] = loaded(ChainSummary, body)
