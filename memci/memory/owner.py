"""One owner's memory: its rows, their copy in RAM, and the settings that the steps use.

    Session        storage · store · embedder · rules · clock        one for each TieredMemory
      └ Owner      pages · passages · items · jobs · usage (rows)     shared by all sessions of one owner in a process
          └ Tiers  episodes, chains, facts, profile, graph, days      read again when another process changed them

    revision 17 in the store, 17 here    nothing to read              18 there    read again

A change of the owner is one transaction. It first reads what other processes changed, so that nothing is computed from
old data.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from ..errors import CorruptRecord
from ..storage import Storage
from ..text.moments import day, local
from .backend import PageKey, PageRecord
from .repository.items import Item, ItemTable
from .repository.job_queue import JobQueue
from .repository.owner_cache import size_of
from .repository.page_source import read_pages
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
from .tiers.facts import About, Known, versions
from .tiers.graph import Graph, Relation
from .tiers.profile import Profile
from .tiers.rules import DEFAULTS, Rules
from .tiers.topics import Chain, profile_of

Fresh = tuple[list[int], list[Row], list[Counter[str]]]  # passages that a change stored: ids, rows, terms

PORTRAIT = 10
"""facts that are shown as the profile if no model has written one: about as many lines as a written profile has"""

VISITS = 64  # searches whose visits may wait in RAM: so a search writes nothing, and a crash loses few counts

Change = Callable[[], AbstractContextManager[None]]
"""opens the transaction in which a step writes: `Owner.change`, or one that also finishes a job"""


class Conflict(Exception):
    """The data that a step read has changed, so that it must be repeated. Maintenance and the job runner catch it."""


@dataclass(slots=True)
class Tiers:
    """All that was derived from an owner's pages. Keys are ids of items."""

    episodes: dict[int, Episode] = field(default_factory=dict)
    rules: Rules | None = None  # the stored ones
    rules_id: int | None = None
    chains: dict[int, Chain] = field(default_factory=dict)
    profiles: dict[int, dict[str, float]] = field(default_factory=dict)  # words of the chains, for comparison
    facts: dict[int, Known] = field(default_factory=dict)
    savings: dict[int, Known] = field(default_factory=dict)  # facts that wait for their pages
    profile: Profile = field(default_factory=Profile)
    profile_id: int | None = None
    graph: Graph = field(default_factory=Graph)
    events: dict[int, LifeEvent] = field(default_factory=dict)
    days: dict[str, tuple[int, DailySummary]] = field(default_factory=dict)
    _latest: tuple[dict[int, Known], str] = field(default_factory=lambda: ({}, ""))
    """the latest facts, and what was last said of them"""

    def __len__(self) -> int:
        """Return the number of values, with which the size in RAM grows."""
        known: list[Sized] = [self.episodes, self.chains, self.facts, self.graph, self.events, self.days]
        return sum(len(each) for each in known)

    def visit(self, visit: Visit) -> None:
        """Count a visit of the episodes and facts that still exist."""
        for key in visit.episodes:
            if key in self.episodes:
                self.episodes[key] = self.episodes[key].visited(visit.at)
        for key in visit.facts:
            if key in self.facts:
                self.facts[key] = self.facts[key].found(visit.at)

    def keep(self, id: int, value: Item) -> None:  # noqa: A002 -- of the item
        """Add an item, or replace the one with this *id*."""
        match value:
            case Episode():
                self.episodes[id] = value
            case Rules():
                self.rules, self.rules_id = value, id
            case Chain():
                self.chains[id], self.profiles[id] = value, profile_of(value)
            case Known():
                (self.facts if value.pages else self.savings)[id] = value
            case Relation():
                self.graph.merge([value])
            case Profile():
                self.profile, self.profile_id = value, id
            case LifeEvent():
                self.events[id] = value
            case DailySummary():
                self.days[value.date] = id, value

    def drop(self, id: int) -> None:  # noqa: A002 -- of the item
        """Remove an episode, a chain, a fact, or a fact that waits."""
        for items in (self.chains, self.profiles, self.episodes, self.facts, self.savings):
            items.pop(id, None)

    @property
    def going(self) -> dict[str, int]:
        """The last chain of each context, which its next page may continue. O(chains)."""
        return {self.chains[id_].context: id_ for id_ in sorted(self.chains)}

    @property
    def removed(self) -> set[str]:
        """Digests of the facts that a program had removed or replaced. O(facts)."""
        return {each.instead for each in (*self.facts.values(), *self.savings.values()) if each.instead}

    @property
    def portrait(self) -> str:
        """A description of the user: the profile of a model, or else the latest facts, a line for each, with its day.

        Facts that later ones replace are left out. O(facts · those shown).
        """
        if self.profile.text:
            return self.profile.text
        facts = sorted(self.facts_about("user").items(), key=lambda known: known[1].at or 0.0)
        latest = dict(facts[-2 * PORTRAIT :])
        if latest != self._latest[0]:
            told = [fact for fact in latest.values() if versions(fact, latest)[-1] is fact][-PORTRAIT:]
            days = ("" if fact.at is None else f" ({day(local(fact.at, 0))})" for fact in told)
            self._latest = latest, "\n".join(fact.text + when for fact, when in zip(told, days, strict=True))
        return self._latest[1]

    def facts_about(self, whom: About) -> dict[int, Known]:
        """Return the facts about the user, or about the assistant. O(facts)."""
        return {key: each for key, each in self.facts.items() if each.about == whom}


def owner_of(store: MemoryStore, name: str) -> "Owner":
    """Return the object of the owner *name*, which all users of this store share until it is closed."""
    with store.lock:
        found: Owner | None = store.owners.find(name)
        if found is None:
            found = Owner(store, name)
            if not store.closed:  # a worker may still run a step, but a closed store caches nothing
                store.owners.add(name, found)
        return found


class Owner(OwnerKey):
    """The rows of an owner, and their copy in RAM. Not thread-safe: the caller holds the store's lock."""

    def __init__(self, store: MemoryStore, name: str) -> None:
        super().__init__(store, name)
        self.pages, self.items = PageTable(self), ItemTable(self)
        self.passages: PassageTable = store.passages(self)
        self.index: WordIndex
        self.jobs, self.usage = JobQueue(self), UsageLedger(self)
        self.fed: dict[str, float] = {}
        """when this process got a page of each context last: importing an old conversation does not count as silence"""
        self.changed: set[int] = set()
        """episodes that changed since the last maintenance"""
        self.failures: Counter[int] = Counter()
        """how often the analysis of an episode failed"""
        self.passage_vectors: VectorIndex | None
        """vectors of passages by their ids; None until a search needs them"""
        self.visits: list[Visit] = store.visits.setdefault(name, [])
        """visits that are not written yet"""
        self._ids: tuple[int, dict[PageKey, int | None]]
        """a revision, and the ids of the pages that were asked for last"""
        self._changing = self._outdated = self._removes = self._annotated = False
        self.fresh: Fresh | None = None
        """passages of this change, for the index in RAM when the change is committed"""
        self._measured = 0, 0
        """number of values in RAM at the last measurement, and their bytes"""
        self.revision = self._indexed = self._removals = -1
        self._reset(0)

    def refresh(self, *, index: bool = False) -> None:
        """Read what has changed, also the *index* of words if asked. One small query if nothing has."""
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
        """Bytes in RAM: measured when there are twice or half as many values, else scaled. O(1), amortised."""
        read = self.index, self.tiers, self.passage_vectors
        count = sum(len(each) for each in read if each is not None)
        things, size = self._measured
        if not things <= 2 * count < 4 * things:
            things, size = self._measured = count, size_of(read, without=[self.passages])
        return size * count // max(1, things)

    @contextmanager
    def change(self) -> Iterator[None]:
        """Write in one transaction, which increases the revision. A nested change is a part of it.

        If the transaction is not committed, the copy in RAM is read again.
        """
        with self.store.lock:
            if self._is_changing():
                yield
                return
            self._changing, self._outdated, self._removes, self._annotated = True, False, False, False
            self.fresh = None
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

    def ids_of(self, keys: Collection[PageKey]) -> dict[PageKey, int]:
        """Return the ids of those pages that exist, by key. O(these); a query for each context if some are not cached.

        The last result is cached until the index is read again, since a window changes little between two searches.
        That a page does not exist is only valid for one revision.
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
        return {key: id_ for key, id_ in known.items() if id_ is not None}

    def visit(self, visit: Visit) -> None:
        """Count a visit: at once in this process, and in the store with the owner's next change. O(what was found).

        At most `VISITS` searches wait. Those of a process that dies before, or that can't be written, are not counted.
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

    def annotate(self, kind: int, terms: Mapping[int, Iterable[str]]) -> None:
        """Make pages (ids) searchable by *terms* of a model, which replace earlier ones of this *kind*."""
        for page, own in terms.items():
            self.passages.annotate(page, kind, own)
            self._annotated = True

    def reread_index(self) -> None:
        """Have the index read again: this change removes passages, or adds them out of order."""
        if not self._removes:
            self._removes = True
            self.count(removals=1)

    def outdate(self) -> None:
        """Have the copy in RAM read again after this change."""
        self._outdated = True

    def _is_changing(self) -> bool:
        """Return whether a change is in progress. One that was interrupted after its transaction is ended here."""
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
        visited = {key for each in self.visits for key in (*each.episodes, *each.facts)}
        known: dict[int, Item] = {**self.tiers.episodes, **self.tiers.facts}
        if rows := [(key, known[key]) for key in sorted(visited & known.keys())]:
            self.items.rewrite(rows)

    def _committed(self) -> None:
        if self._removes or self._indexed != self.revision - 1:
            self._indexed = -1
            return
        if self.fresh is not None:
            self.index.add(*self.fresh)
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
    """The stores and settings of one owner's memory."""

    storage: Storage  # where the pages are
    store: MemoryStore  # where the memory's rows are
    name: str  # of the owner
    embedder: Embedder
    given: Rules | None  # rules that are not stored yet, since the store has no such owner
    clock: Callable[[], float]  # seconds since 1970 UTC
    count: Callable[[str], int]  # tokens of a text
    has_model: bool = False  # whether a model improves the results, so that jobs are queued for it
    weights: Weights = field(default_factory=Weights)  # of a search; benchmarks replace them

    @property
    def owner(self) -> Owner:
        """The owner's rows and their copy in RAM."""
        return owner_of(self.store, self.name)

    @property
    def rules(self) -> Rules:
        """The rules: the stored ones, or else the defaults. One small query if nothing has changed."""
        return self.given or self.tiers().rules or DEFAULTS

    def keep_rules(self) -> None:
        """Store the rules that were given, within a change of the owner."""
        if self.given is not None:
            tiers = self.owner.tiers
            if tiers.rules != self.given:
                self.owner.keep(self.given, id=tiers.rules_id)
            self.given = None

    def tiers(self) -> Tiers:
        """Return the current tiers. One small query if nothing has changed."""
        with self.store.lock:
            owner = self.owner
            owner.refresh()
            return owner.tiers

    def read_pages(self, ids: Sequence[int]) -> list[tuple[int, PageRecord]]:
        """Return pages (their ids) with their messages, read from the page store; no lock is held. O(messages)."""
        return list(read_pages(self.storage, self.store, ids))
