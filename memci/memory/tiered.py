"""TieredMemory: short-term pages, episodes, and what is known, in the store of the pages.

    observe ──▶ words ─────────────────────────────▶ search
    admit   ──▶ short-term ──▶ episodes ──▶ facts, profile, graph ──▶ search
                 `upkeep` moves them on

All of it works without a model and without a network. This module knows nothing of windows; what it delegates to knows
nothing of it.
"""

import threading
import time
from collections.abc import Callable, Collection
from typing import TypeVar

from ..errors import InvalidSetting
from ..storage import Storage
from ..tokens import counter_for
from .admission import admitted, heard, observed
from .backend import Forgotten, PageRecord, Recollection, Scope
from .embedders import Embedder
from .forgetting import forget
from .hashing import HashEmbedder
from .owner import Owner, owner_of
from .retrieve import Wanted, recollect
from .store import MemoryStore
from .upkeep import Rules, upkeep

_T = TypeVar("_T")


class TieredMemory:
    """The memory of one owner, in three tiers.

    Args:
        storage: Where the pages are; what is derived from them is kept beside them.
        owner: Whose memory it is.
        embedder: Turns texts into vectors; default: by spelling (`HashEmbedder`), which needs nothing.
        rules: Sizes and thresholds of the tiers.
        counter: Tokens of a text, for budgets; default: the o200k vocabulary.
        read_only: Whether nothing is ever written: what is searched does not count as used.
        clock: Seconds since 1970; for tests.
    """

    def __init__(
        self,
        storage: Storage,
        *,
        owner: str,
        embedder: Embedder | None = None,
        rules: Rules | None = None,
        counter: Callable[[str], int] | None = None,
        read_only: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(owner, str) or not owner:
            raise InvalidSetting("owner", f"expected a name (a str that is not empty), got {owner!r:.60}")
        self._storage = storage
        self._store = MemoryStore.beside(storage)
        self._name = owner
        self._embedder = embedder or HashEmbedder(512)
        self.rules = rules or Rules()
        self._count = counter_for(None, counter)
        self._clock = clock
        self._read_only = read_only or self._store.read_only
        self._looking_after = threading.Lock()
        self._closed = False

    @property
    def owner(self) -> str:
        """Whose memory it is."""
        return self._name

    def observe(self, page: PageRecord) -> None:
        """Make a closed page searchable. O(its characters)."""
        self._with(lambda owner: observed(self._store, owner, page))

    def admit(self, page: PageRecord) -> None:
        """Take a page into the short-term queue, once."""
        self._with(lambda owner: admitted(self._store, owner, observed(self._store, owner, page)))

    def heard(self, context: str) -> int:
        """Return the highest page of *context* that was observed, 0 if none was."""
        return self._with(lambda owner: heard(self._store, owner, context))

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: float | None = None,
        until: float | None = None,
        exclude: Collection[tuple[str, int]] = (),
    ) -> Recollection:
        """Return what is known of *query*, best first; what is returned counts as visited."""
        wanted = Wanted(query, k, budget, since, until, frozenset(exclude))
        return self._with(
            lambda owner: recollect(
                self._storage,
                self._store,
                owner,
                wanted,
                self._embedder,
                self._count,
                self._clock(),
                counts=not self._read_only,
            )
        )

    def erase(self, scope: Scope) -> Forgotten:
        """Remove what *scope* names, and what was derived from it."""
        return self._with(lambda owner: forget(self._store, owner, scope))

    def upkeep(self, now: float | None = None) -> int:
        """Do what is due, and return how many pages moved between the tiers."""
        with self._looking_after:
            return upkeep(self._storage, self._store, self._name, self._embedder, self.rules, now or self._clock())

    def close(self) -> None:
        """Let go of it. The tables are closed with the last one who uses this store."""
        if not self._closed:
            self._closed = True
            self._store.close()

    def _with(self, work: Callable[[Owner], _T]) -> _T:
        with self._store.lock:
            return work(owner_of(self._store, self._name))
