"""An overview of a memory, tier by tier, for people.

    queue      alice #57 "And the way back?"                    the page that leaves it next is first
    episodes   12.9  Flight to Oslo     visits 3, length 9      the hottest first, by `heat`
    chains     alice #3 → #4 → #5       facts, profile, events, days, the most frequent concepts

Nothing here counts as a visit.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from typing import TypeVar

from ..rows import PageState
from ..storage import Storage
from ..storage.arguments import checked
from .backend import PageKey, Work
from .consolidation.page_notes import extract_title
from .owner import Owner
from .repository.home import tables_of
from .repository.page_source import page_keys, shared_before
from .repository.pages import EVICTED, MID, OBSERVED, SHORT
from .tiered_memory import TieredMemory
from .tiers.episodes import Episode
from .tiers.events import DailySummary, LifeEvent
from .tiers.facts import Known
from .tiers.profile import Profile
from .tiers.rules import Rules

_T = TypeVar("_T")
MOST_CONCEPTS = 10  # shown in an overview: they fit on a line


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of pages and of derived values."""

    observed: int = 0  # searchable pages that are in no tier yet
    short: int = 0  # pages in the short-term queue
    mid: int = 0  # pages in episodes
    evicted: int = 0  # pages whose episode was evicted; searches find them by their words
    episodes: int = 0
    chains: int = 0
    user_facts: int = 0
    assistant_facts: int = 0
    events: int = 0
    days: int = 0
    concepts: int = 0
    statements: int = 0  # relations between concepts, counted for each page

    @property
    def pages(self) -> int:
        """The number of all pages in the memory."""
        return self.observed + self.short + self.mid + self.evicted


@dataclass(frozen=True, slots=True)
class QueuedPage:
    """A page in the short-term queue."""

    context: str
    index: int
    turn: int
    at: float | None
    title: str


@dataclass(frozen=True, slots=True)
class WarmEpisode:
    """An episode and its heat. Times are seconds since 1970 UTC."""

    id: int
    summary: str
    keywords: tuple[str, ...]
    heat: float  # over its whole life; it decides about eviction
    heat_since_analysis: float
    visits: int
    length: int
    access_count: int
    last_visit: float
    first: float | None
    last: float | None
    importance: float | None  # from 0 to 1, by a model; None: unknown
    pages: tuple[PageKey, ...]


@dataclass(frozen=True, slots=True)
class LinkedPages:
    """A chain: pages that continue one another, in order."""

    id: int
    summary: str
    pages: tuple[PageKey, ...]


@dataclass(frozen=True, slots=True)
class HeldFact:
    """A fact: the latest page that says it, all *pages* that say it, and when it was last learned or retrieved."""

    id: int
    text: str
    context: str
    index: int
    turn: int
    at: float | None
    pages: tuple[PageKey, ...]
    retrieved: float
    kind: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The content of a memory. False if it has no page.

    The queue begins with the page that leaves it next, the episodes with the hottest *at* that time (in seconds since
    1970 UTC), the chains with the latest, the facts with the one learned or retrieved last. Events and days are in
    chronological order.
    """

    owner: str
    at: float
    counts: Counts
    queue: tuple[QueuedPage, ...]
    episodes: tuple[WarmEpisode, ...]
    chains: tuple[LinkedPages, ...]
    user_facts: tuple[HeldFact, ...]
    assistant_facts: tuple[HeldFact, ...]
    profile: Profile
    events: tuple[LifeEvent, ...]
    days: tuple[DailySummary, ...]
    concepts: tuple[tuple[str, int], ...]  # the most frequent concepts, with their numbers
    work: Work  # the costs of a model, and the jobs that wait for it

    def __bool__(self) -> bool:
        return self.counts.pages > 0


@checked
def overview(memory: TieredMemory, *, now: float | None = None) -> Overview:
    """Return the content of *memory*, with the heat at *now*. O(all of it, and the messages of the queue)."""
    session = memory.session
    at = session.clock() if now is None else now
    with session.store.lock:
        tiers, owner, held = session.tiers(), session.owner, counts(memory)
        queue = [
            _select(QueuedPage, page, title=extract_title(page)[0])
            for _, page in session.read_pages(owner.pages.queue())
        ]
        members: dict[int | None, list[PageKey]] = {}
        for context, index, *groups in owner.pages.grouped():
            for group in groups:
                members.setdefault(group, []).append((context, index))
        episodes = [_episode(key, each, members.get(key, ()), at, memory.rules) for key, each in tiers.episodes.items()]
        chains = [LinkedPages(key, str(each), tuple(members.get(key, ()))) for key, each in tiers.chains.items()]
        return Overview(
            memory.owner,
            at,
            held,
            tuple(queue),
            tuple(sorted(episodes, key=lambda each: (-each.heat, each.id))),
            tuple(sorted(chains, key=lambda each: -each.id)),
            _facts(owner, tiers.facts_about("user"), held.pages),
            _facts(owner, tiers.facts_about("assistant"), held.pages),
            tiers.profile,
            tuple(event for _, event in sorted(tiers.events.items())),
            tuple(day for _, (_, day) in sorted(tiers.days.items())),
            tiers.graph.most_stated(MOST_CONCEPTS),
            memory.work(),
        )


@checked
def counts(memory: TieredMemory) -> Counts:
    """Return the numbers of pages and derived values in *memory*. O(its pages)."""
    session = memory.session
    with session.store.lock:
        tiers, owner = session.tiers(), session.owner
        pages = owner.pages.tier_counts()
        user = len(tiers.facts_about("user"))
        counts = [pages.get(tier, 0) for tier in (OBSERVED, SHORT, MID, EVICTED)]
        counts += [len(tiers.episodes), len(tiers.chains), user, len(tiers.facts) - user]
        counts += [len(tiers.events), len(tiers.days), len(tiers.graph), owner.items.count("relation")]
        return Counts(*counts)


def owners(storage: Storage) -> list[str]:
    """Return the names of the owners whose memories are beside *storage*, the oldest first."""
    with closing(tables_of(storage)) as store:
        return store.owner_names()


def queued(storage: Storage) -> tuple[int, int]:
    """Return how many jobs of models wait in the memories beside *storage*, and how many were set aside. One query."""
    with closing(tables_of(storage)) as store:
        rows = store.read_rows("SELECT count(due), count(*) FROM memory_job") if store.there else []
    due, every = rows[0] if rows else (0, 0)
    return due, every - due


@checked
def waiting(memory: TieredMemory, context: str) -> int:
    """Return how many closed pages of *context* must still be sent to the memory. O(pages + contexts).

    A page that a fork shares with a context of the same owner is sent by that context.
    """
    storage = memory.session.storage
    found = storage.load(context)
    if found is None:
        return 0
    record = found[0]
    rows = list(storage.pages(context))
    keys = page_keys(storage, context, rows, shared_before(storage, record))
    forked = max((each.base for each in storage.forks(context)), default=0)
    states = memory.session.owner.pages.states(context)
    count = 0
    for row in rows:
        if row.index == record.open_page or keys[row.index][0] != context:
            continue
        tier, _ = states.get(row.index, (None, 0))
        if row.state is PageState.ERASED or (row.state is PageState.UNDONE and row.first >= forked):
            count += tier is not None
        else:
            left = row.state in (PageState.ARCHIVED, PageState.UNLOADED)
            count += tier is None or (left and tier == OBSERVED)
    return count


def _select(kind: type[_T], *parts: object, **more: object) -> _T:
    """Return a value of *kind* with the fields of *parts* that have its names, and *more*."""
    names = [field.name for field in fields(kind) if field.name not in more]  # type: ignore[arg-type]
    return kind(**{name: getattr(part, name) for part in parts for name in names if hasattr(part, name)}, **more)


def _episode(key: int, episode: Episode, pages: Sequence[PageKey], now: float, rules: Rules) -> WarmEpisode:
    heats = {
        "heat": episode.warmth.lifetime(now, rules),
        "heat_since_analysis": episode.warmth.since_analysis(now, rules),
    }
    return _select(WarmEpisode, episode, episode.warmth, id=key, pages=tuple(pages), **heats)


def _facts(owner: Owner, known: Mapping[int, Known], most: int) -> tuple[HeldFact, ...]:
    held = [_select(HeldFact, each, id=key, pages=tuple(owner.pages.sources(key, most))) for key, each in known.items()]
    return tuple(sorted(held, key=lambda each: (-each.retrieved, -each.id)))
