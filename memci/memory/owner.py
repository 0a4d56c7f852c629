"""The session of one owner's memory: its rows, what was read of them into RAM, and what the steps work with.

    Session        storage · store · embedder · rules · clock        one for each TieredMemory
      └ Owner      pages · passages · items · jobs · usage (rows)     shared by all sessions of one owner in a process
          └ Tiers  episodes, chains, facts, profile, graph, days      read again when another process changed them

    revision 17 in the store, 17 here    nothing to read              18 there    read again

A change of the owner is one transaction, and it begins by reading what is new: nothing is computed from old data.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..errors import CorruptRecord
from ..storage import Storage
from .backend import PageKey, PageRecord
from .repository.items import Item, ItemTable
from .repository.job_queue import JobQueue
from .repository.owner_cache import size_of
from .repository.page_source import raw_pages
from .repository.pages import PageTable
from .repository.passages import PassageTable
from .repository.store import MemoryStore, OwnerKey, Visit
from .repository.usage_ledger import UsageLedger
from .retrieval.embedders import Embedder
from .retrieval.layout import Row
from .retrieval.postings import WordIndex
from .retrieval.ranking import Weights
from .retrieval.vectors import VectorIndex
from .tiers.episodes import Episode
from .tiers.events import DailySummary, LifeEvent
from .tiers.facts import Knowledge, Known, Saving
from .tiers.graph import Graph, Relation
from .tiers.profile import Profile
from .tiers.rules import Rules
from .tiers.topics import ChainSummary

Fresh = tuple[list[int], list[Row], list[Counter[str]]]
"""passages that were just stored: ids, rows, terms"""

PORTRAIT = 10
"""facts that stand for a profile where no model has written one"""

VISITS = 64
"""searches whose visits wait to be written, at most"""

Change = Callable[[], AbstractContextManager[None]]
"""a transaction in which a step writes what it computed: `Owner.change`, or one that writes more"""


class Conflict(Exception):
    """The data that this step read has changed: retry. Maintenance and the job runner catch it."""


@dataclass(slots=True)
class Tiers:
    """What is known of an owner's pages. Keys are ids of items."""

    episodes: dict[int, Episode] = field(default_factory=dict)
    vectors: VectorIndex | None = None
    """of the episodes"""
    chains: dict[int, ChainSummary] = field(default_factory=dict)
    user: Knowledge = field(default_factory=Knowledge)
    assistant: Knowledge = field(default_factory=Knowledge)
    savings: dict[int, Saving] = field(default_factory=dict)
    """facts that wait for their pages"""
    profile: Profile = field(default_factory=Profile)
    profile_id: int | None = None
    graph: Graph = field(default_factory=Graph)
    events: dict[int, LifeEvent] = field(default_factory=dict)
    days: dict[str, tuple[int, DailySummary]] = field(default_factory=dict)

    def __len__(self) -> int:
        """Return how many things are known, about: what its size in RAM grows with."""
        known: list[Sized] = [self.episodes, self.chains, self.user, self.assistant, self.graph, self.events, self.days]
        return sum(len(each) for each in known)

    def visit(self, visit: Visit) -> None:
        """Count what a search found as visited, as far as it is still known."""
        for key in visit.episodes:
            if key in self.episodes:
                self.episodes[key] = self.episodes[key].visited(visit.at)
        self.user.retrieved(visit.facts, visit.at)
        self.assistant.retrieved(visit.facts, visit.at)

    def keep(self, id: int, value: Item) -> None:  # noqa: A002 -- of the item
        """Take in an item, in place of the one with this *id*."""
        match value:
            case Episode():
                self.episodes[id] = value
                if (vector := value.embedding) is not None:
                    if self.vectors is None or self.vectors.dimension != len(vector):
                        self.vectors = VectorIndex(len(vector))
                    self.vectors.add([id], vector[None, :])
            case ChainSummary():
                self.chains[id] = value
            case Known():
                self.knows(value.about).facts[id] = value
            case Saving():
                self.savings[id] = value
            case Relation():
                self.graph.merge([value])
            case Profile():
                self.profile, self.profile_id = value, id
            case LifeEvent():
                self.events[id] = value
            case DailySummary():
                self.days[value.date] = id, value

    def drop(self, id: int) -> None:  # noqa: A002 -- of the item
        """Take out an episode, a fact, or one that waits."""
        if self.episodes.pop(id, None) is not None and self.vectors is not None:
            self.vectors.remove([id])
        for known in (self.user, self.assistant):
            known.facts.pop(id, None)
        self.savings.pop(id, None)

    @property
    def portrait(self) -> str:
        """Who the user is: as a model describes it, or else what the user told lately, a line for each. O(facts)."""
        told = sorted(self.user.facts.values(), key=lambda fact: fact.at or 0.0)[-PORTRAIT:]
        return self.profile.text or "\n".join(fact.text for fact in told)

    def knows(self, about: str) -> Knowledge:
        """Return the list of what is known about the user, or the assistant."""
        return self.user if about == "user" else self.assistant


def owner_of(store: MemoryStore, name: str) -> "Owner":
    """Return what is in RAM of the owner *name*: the same object for all who use this store, until it is closed."""
    with store.lock:
        found = store.owners.find(name)
        if not isinstance(found, Owner):
            found = Owner(store, name)
            if not store.closed:  # a worker may be in the middle of a step: a closed store keeps nothing
                store.owners.add(name, found)
        return found


class Owner(OwnerKey):
    """The rows of an owner, and what was read of them. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        super().__init__(store, name)
        self.pages, self.items = PageTable(self), ItemTable(self)
        self.passages: PassageTable = store.passages(self)
        self.index: WordIndex
        self.jobs, self.usage = JobQueue(self), UsageLedger(self)
        self.fed: dict[str, float] = {}
        """when a page of a context came last, in this process: one that is played in from an archive is not silent"""
        self.changed: set[int] = set()
        """episodes that changed since the last maintenance"""
        self.failures: Counter[int] = Counter()
        """how often the analysis of an episode failed"""
        self.passage_vectors: VectorIndex | None
        """vectors of passages by their ids, once they were needed"""
        self.visits: list[Visit] = store.visits.setdefault(name, [])
        """what was visited and is not written yet"""
        self._ids: tuple[int, dict[PageKey, int | None]]
        """ids of the pages that were asked for last, as of a revision"""
        self._changing = self._outdated = self._removes = self._annotated = False
        self._fresh: Fresh | None = None
        self._measured = 0, 0
        """how many things were in RAM when they were measured last, and their bytes"""
        self.revision = self._indexed = self._removals = -1
        self._reset(0)

    def refresh(self, *, index: bool = False) -> None:
        """Read what is new, also into the *index* of words if it is needed. One small query if nothing is new."""
        self._is_changing()
        nr, revision, removals = self.read_state()
        if nr != self.nr:
            self._reset(nr)
        if revision != self.revision:
            self._read()
            self.revision = revision
        if index and nr and (self._indexed, self._removals) != (revision, removals):
            self.index, self._ids = self.store.index(self.passages), (-1, {})
            self.passage_vectors = None
            self._indexed, self._removals = revision, removals

    @property
    def size(self) -> int:
        """Bytes in RAM: measured when there are a fifth more or fewer things, scaled until then. O(1), amortised."""
        read = self.index, self.tiers, self.passage_vectors
        count = sum(len(each) for each in read if each is not None)
        things, size = self._measured
        if not 4 * things <= 5 * count <= 6 * things:
            things, size = self._measured = count, size_of(read, without=[self.passages])
        return size * count // max(1, things)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Write in one transaction, which counts the revision up. A nested change is a part of it.

        What is changed in RAM is read again if the transaction is not committed.
        """
        with self.store.lock:
            if self._is_changing():
                yield
                return
            self._changing, self._outdated, self._removes, self._annotated = True, False, False, False
            self._fresh = None
            try:
                with self.store.change():
                    self._begin()
                    yield
                self.visits.clear()
                if self._outdated:
                    self._reset(self.nr)
                else:
                    self._committed()
            except BaseException:
                self._reset(self.nr)
                raise
            finally:
                self._changing = False

    def ids_of(self, keys: Collection[PageKey]) -> list[int]:
        """Return the ids of those pages that are known here. O(these); a query for each context if some are new.

        What was asked for last stays in RAM, until the index is read again: a window changes little from one search to
        the next. That a page is not known holds as long as the revision.
        """
        revision, known = self._ids
        if revision != self.revision:
            known = {key: id_ for key, id_ in known.items() if id_ is not None}
        fresh: dict[str, list[int]] = {}
        for context, index in keys:
            if (context, index) not in known:
                fresh.setdefault(context, []).append(index)
        read = {context: self.pages.ids_of(context, some) for context, some in fresh.items()}
        known = {key: known[key] if key in known else read[key[0]].get(key[1]) for key in keys}
        self._ids = self.revision, known
        return [id_ for id_ in known.values() if id_ is not None]

    def visit(self, visit: Visit) -> None:
        """Count what a search found as visited: at once in this process, and in the store with the owner's next change.

        `VISITS` searches wait at most: those of a process that dies meanwhile, or that can't be written then,
        are not counted. O(what was found).
        """
        self.changed.update(visit.episodes)
        self.tiers.visit(visit)
        self.visits.append(visit)
        if len(self.visits) >= VISITS:
            try:
                self.write_visits()
            finally:
                self.visits.clear()

    def write_visits(self) -> None:
        """Write the visits that wait, in one transaction."""
        if self.visits:
            with self.change():
                pass

    def keep(self, value: Item, *, id: int | None = None, pages: Iterable[int] = ()) -> int:  # noqa: A002 -- the item's
        """Store an item within a change, in place of the one with *id*, and return its id; *pages* are evidence."""
        id = self.items.put(value, id=id, pages=pages)  # noqa: A001
        self.tiers.keep(id, value)
        return id

    def drop(self, ids: Iterable[int]) -> None:
        """Remove items within a change (`Tiers.drop`)."""
        for each in ids:
            self.items.drop([each])
            self.tiers.drop(each)

    def add_passages(self, fresh: Fresh) -> None:
        """Add passages that were stored in this change to the index, once it is committed."""
        self._fresh = fresh

    def annotate(self, kind: int, terms: Mapping[int, Iterable[str]]) -> None:
        """Let pages (ids) be found by *terms* that a model used for them, in place of those of this *kind* before."""
        for page, own in terms.items():
            self.passages.annotate(page, kind, own)
            self._annotated = True

    def disorder(self) -> None:
        """Note that this change removes passages, or adds them out of order: the index is read again."""
        if not self._removes:
            self._removes = True
            self.count(removals=1)

    def outdate(self) -> None:
        """Note that this change makes what is in RAM wrong: it is read again."""
        self._outdated = True

    def _is_changing(self) -> bool:
        """Return whether a change is under way. One that was interrupted at its very end is ended here."""
        if self._changing and not self.store.writing:
            self._changing = False
            self._reset(self.nr)
        return self._changing

    def _begin(self) -> None:
        self.refresh()
        if not self.nr:
            self.add()
            self.refresh(index=True)
        self.count(revisions=1)
        self.revision += 1
        self._rewrite_visited()

    def _rewrite_visited(self) -> None:
        visited = {key for each in self.visits for key in (*each.episodes, *each.facts)}
        known: list[dict[int, Any]] = [self.tiers.episodes, self.tiers.user.facts, self.tiers.assistant.facts]
        if rows := [(key, items[key]) for items in known for key in sorted(visited & items.keys())]:
            self.items.rewrite(rows)

    def _committed(self) -> None:
        if self._removes or self._indexed != self.revision - 1:
            self._indexed = -1
            return
        if self._fresh is not None:
            self.index.add(*self._fresh)
        if self._annotated:
            self.index.read_again()
        self._indexed = self.revision

    def _reset(self, nr: int) -> None:
        self.nr, self._cipher = nr, None
        self.revision = self._indexed = self._removals = -1
        self.tiers = Tiers()
        self.index, self._ids = self.store.index(self.passages, empty=True), (-1, {})
        self.passage_vectors = None

    def _read(self) -> None:
        self.tiers = Tiers()
        try:
            for id_, value in self.items.all():
                self.tiers.keep(id_, value)
        except (ValueError, TypeError, LookupError) as error:
            what = f"a row of the memory of {self.name!r:.60} is not what was written"
            raise CorruptRecord("", 0, f"{what}: memci consolidate --rebuild makes the memory again") from error
        for each in self.visits:
            self.tiers.visit(each)


@dataclass(slots=True)
class Session:
    """What the steps of one owner's memory work with."""

    storage: Storage
    """where the pages are"""
    store: MemoryStore
    """where the memory's rows are"""
    name: str
    """of the owner"""
    embedder: Embedder
    rules: Rules
    clock: Callable[[], float]
    """seconds since 1970 UTC"""
    count: Callable[[str], int]
    """tokens of a text"""
    has_model: bool = False
    """whether a model improves what is derived: jobs are left for it"""
    weights: Weights = field(default_factory=Weights)
    """what counts how much in a search: benchmarks replace it"""

    @property
    def owner(self) -> Owner:
        """The owner's rows, and what was read of them."""
        return owner_of(self.store, self.name)

    def tiers(self) -> Tiers:
        """Return what is known now. One small query if nothing is new."""
        with self.store.lock:
            owner = self.owner
            owner.refresh()
            return owner.tiers

    def raw(self, ids: Sequence[int]) -> list[tuple[int, PageRecord]]:
        """Return pages (their ids) with their messages, read from the page store; no lock is held. O(messages)."""
        return list(raw_pages(self.storage, self.store, ids))
