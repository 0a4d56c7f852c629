"""The protocol between a context and its memory, and the values that they exchange.

    observe   a page closed, or a part of it left the window: searches find it from now on
    admit     a page left the window, or its context was closed: it enters the tiers
    erase     a page was undone or erased: no search may find it any more
    search    returns pages, facts, concepts and the profile for a query

A memory belongs to one owner, who may have many contexts. A context sends each page at least once, in the order of
the indexes, and sends it again after each change. A repeated call changes nothing. A page is named by (context, index),
positions in a text are in characters, and times are in seconds since 1970 UTC (None: unknown).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, tzinfo
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from ..llm.usage import Spent
from ..messages import Message
from ..text.moments import local
from ..text.summarize import Summary

Tier = Literal["observed", "short", "mid", "evicted"]

Source = Literal["words", "standing", "time", "beside"]
"""why a message was found: "words": its words or vectors match; "standing": it has a lasting instruction, and the query
is a request; "time": it fills a chronological list; "beside": it is near one of these in the talk of a group, and there
was room"""

StatementKind = Literal["episode", "event", "day", "conversation", "profile", "strategy"]

PageKey = tuple[str, int]  # context and index
Shown = PageKey | tuple[str, int, int]  # a page that is shown whole, or a message: context, index and entry


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A page as the context sends it."""

    context: str
    index: int
    turn: int
    entries: tuple[tuple[int, Message], ...]  # (ordinal, message), in order
    at: float | None = None  # when its first message that has a time was said
    quotes: frozenset[int] = frozenset()
    """ordinals of messages that only quote another page (answers to recalls): they are not searchable"""
    aside: bool = False  # whether it was set aside: it could not be read or stored, and comes without its messages
    open: bool = False
    """whether it may still grow: a part of it left the window, or its context was closed, while it was open. The memory
    does not acknowledge it"""
    times: Mapping[int, datetime] = field(default_factory=dict)
    """when each message was said, in the zone of its append, by ordinal; without those of which that is unknown"""

    def at_of(self, ordinal: int) -> float | None:
        """Return when a message was said: the time of the page if there are no others."""
        when = self.times.get(ordinal)
        return when.timestamp() if when is not None else None if self.times else self.at

    def zone(self, default: tzinfo) -> tzinfo:
        """Return the zone in which it was said, *default* if none of its messages has one."""
        return (next(iter(self.times.values())).tzinfo if self.times else None) or default

    @property
    def own(self) -> list[Message]:
        """The messages that quote no other page, in order."""
        return [message for ordinal, message in self.entries if ordinal not in self.quotes]

    @property
    def key(self) -> PageKey:
        """The name of the page: context and index."""
        return self.context, self.index


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message, exact."""

    entry: int
    text: str
    role: str
    start: int = 0
    speaker: str = ""
    whose: str = ""  # whose words it is, if not the speaker's own: "quoted by the user", "document", "tool"


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A message that a search found. A search may find several messages of one page."""

    context: str
    index: int
    entry: int  # the ordinal of the message in its page
    score: float  # probability that the message answers the query, from 0 to 1: of a hundred with 0.8, about eighty do
    text: str  # the piece of it that fits best, exact
    role: str
    turn: int
    at: float | None = None  # when the message was said
    speaker: str = ""
    start: int = 0
    tier: Tier = "observed"
    episode: int | None = None
    source: Source = "words"
    more: tuple[Piece, ...] = ()  # other pieces of the message that fit, best first
    zone: int = 0  # the zone of `at`, in minutes east of UTC
    whose: str = ""  # whose words it is, if not the speaker's own: "quoted by the user", "document", "tool"
    times: int = 1  # how often the same speaker said just this; the place and the time are those of the last time
    later: "FoundPage | None" = None
    """the latest message that says something else about the same thing, if one was found"""
    overview: str = ""  # what the talk was about of which the page is a part

    @property
    def key(self) -> PageKey:
        """The name of its page: context and index."""
        return self.context, self.index

    @property
    def said(self) -> datetime | None:
        """When the message was said, in its zone; None: unknown."""
        return None if self.at is None else local(self.at, self.zone)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces of the message that were found, best first."""
        return (Piece(self.entry, self.text, self.role, self.start, self.speaker, self.whose), *self.more)


@dataclass(frozen=True, slots=True)
class Fact:
    """A short statement about the user or the assistant, in its latest version."""

    text: str
    about: Literal["user", "assistant"]
    score: float
    context: str
    index: int
    turn: int
    at: float | None = None
    before: "tuple[Fact, ...]" = ()  # what was said earlier of the same thing, the oldest first


class Learned(NamedTuple):
    """A fact that a program had stored, as its context keeps it; or one that it had removed."""

    page: int  # the page that says it
    about: Literal["user", "assistant"]
    text: str  # "": it is no fact any more
    at: float | None = None  # when it was said, in seconds since 1970 UTC; None: with its page
    instead: str = ""  # a digest of the fact that it replaces
    kind: Literal["fact", "relationship"] = "fact"


@dataclass(frozen=True, slots=True)
class Concept:
    """A concept of the knowledge graph that a query activates."""

    name: str
    activation: float
    relations: tuple[str, ...]  # its strongest relations as text: "Mel — plays → violin"
    pages: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A derived text: an episode, an event, a day, a conversation, a line of the profile, or the strategy."""

    kind: StatementKind
    text: str
    score: float  # share of the words of the query that the text has, from 0 to 1
    date: str = ""  # such as 2024-05-04, of an episode its first and last day; "" if unknown
    pages: tuple[PageKey, ...] = ()  # some that it was derived from, the latest last
    outdated: bool = False  # whether a later fact says something else about the same thing


@dataclass(frozen=True, slots=True)
class Recollection:
    """The result of a search: the messages that fit, best first, then lasting instructions of the user."""

    query: str
    pages: tuple[FoundPage, ...] = ()
    user_facts: tuple[Fact, ...] = ()
    assistant_facts: tuple[Fact, ...] = ()
    concepts: tuple[Concept, ...] = ()
    profile: str = ""
    pending: int = 0  # number of pages that are not searchable yet
    statements: tuple[Statement, ...] = ()
    strategy: str = ""  # how to treat the user, written by a model
    certainty: float | None = None
    """probability that one of the first five messages answers the query, from 0 to 1, calibrated: of a hundred searches
    with 0.8, about eighty are answered. It is low if the query names a person and the matches tell of others. None:
    unknown, as for a query in a script for which it was not calibrated: it was for Latin and Han"""
    matches: int = 0  # how many messages have at least half of the query's words, also those that are not in `pages`

    def __bool__(self) -> bool:
        return bool(self.pages or self.user_facts or self.assistant_facts or self.concepts or self.statements)


@dataclass(frozen=True, slots=True)
class Scope:
    """What to erase: everything of the owner, one context, or some pages of it."""

    context: str | None = None
    pages: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What an erasure removed from a memory."""

    pages: int = 0
    derived: int = 0  # number of episodes, facts, concepts, events and summaries that were removed or rebuilt
    scrubbed: bool = True
    """whether no byte is left in the memory's own files; False while another reader still uses an older state"""


@dataclass(frozen=True, slots=True)
class Work:
    """The work that a model did for a memory, and the jobs that wait for it."""

    waiting: int = 0
    """jobs that are still to be done"""
    set_aside: int = 0
    """jobs that failed five times: the result of the rules stays"""
    skipped: int = 0
    """jobs that were not added, since too many waited"""
    spent: Mapping[str, Spent] = field(default_factory=dict)
    """by step"""


@runtime_checkable
class JobRunner(Protocol):
    """The additional methods of a memory whose results a model improves. Thread-safe.

    The jobs run in the background: no method of `MemoryBackend` waits for a model.
    """

    @property
    def has_model(self) -> bool:
        """Whether there is a model. Without one, there are no jobs."""

    def run_job(self, settle: Callable[[], None] | None = None) -> bool:
        """Run one job that is due, and return whether another one is due. O(one call of the model).

        *settle* is called before anything is written. It returns when no other call uses the context.
        """

    def summaries(self, context: str, indexes: Collection[int]) -> Mapping[int, Summary]:
        """Return the model's summaries of those pages that have one. O(pages)."""

    def work(self) -> Work:
        """Return the costs so far and the number of jobs that wait."""


@runtime_checkable
class Learns(Protocol):
    """Optional: a memory that stores facts on request, each with the context that says it, while that is open."""

    notebooks: dict[str, Callable[[Learned], None]]  # how open contexts store what is learned of them, by their ids

    def keep_learned(self, context: str, learned: Learned) -> None:
        """Take in what *context* stored. The same again changes nothing."""


@runtime_checkable
class SetsAside(Protocol):
    """The additional method of a memory that stores which pages were set aside.

    If `observe` or `admit` raises an error that is no `StorageError`, the context sends the page again without its
    messages, marked as set aside, so that later pages need not wait. `Context.flush` sends it whole again. Without this
    method, a context forgets such pages when it is closed.
    """

    def set_aside(self, context: str) -> Collection[int]:
        """Return the pages of *context* whose last observation was set aside. One query."""


@runtime_checkable
class HasTiers(Protocol):
    """The additional methods of a memory that has tiers and summarizes sessions.

    Without them, a context admits only pages that it observed itself since it was opened, and sessions never end.
    """

    def observed(self, context: str) -> Collection[int]:
        """Return the pages of *context* that were observed and never admitted. One query."""

    def end_session(self, context: str) -> None:
        """End the conversation in *context* and summarize it. The next page begins another one."""

    def overdue(self) -> bool:
        """Return whether `maintain` should be called soon: far more waits than an open context usually leaves."""


@runtime_checkable
class Forgetful(Protocol):
    """Optional: a memory that says when pages were forgotten, by whatever handle or process."""

    def removals(self) -> object:
        """Return what differs from an earlier result once pages were forgotten. Called in each turn: make it cheap."""


@runtime_checkable
class MemoryBackend(Protocol):
    """A memory of one owner, which receives the pages that leave the window. Thread-safe.

    Every method may raise a `memci.errors.StorageError`. The context then continues without its memory, and sends the
    pages later.
    """

    def observe(self, page: PageRecord) -> None:
        """Make a page searchable. The same page again changes nothing; other entries replace it, more are added."""

    def admit(self, page: PageRecord) -> None:
        """Observe a page that is no longer whole in the window, and put it into the tiers, once."""

    def acknowledged(self, context: str) -> int:
        """Return the highest index of an observed page of *context* that was not open; 0 if there is none.

        The context sends the pages after it. A memory that may have lost pages in a crash returns 0.
        """

    def search(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: float | None = None,
        until: float | None = None,
        wall: bool = False,
        now: date | None = None,
        exclude: Collection[Shown] = (),
        skip: int = 0,
    ) -> Recollection:
        """Return what fits *query*, a text in plain words: at most *k* messages, with facts and concepts.

        The texts of the messages cost *budget* tokens at most. The first *skip* messages are left out. For a request,
        lasting instructions come last, in addition to *k*. *since* and *until* are seconds since 1970 UTC, both
        included; if *wall*, on the clock on the wall where each message was said. *now* is the day of the question, for
        "yesterday". With one of the bounds, messages without a time are not found. *exclude* names what to leave out,
        because the window shows it: pages (context, index) and messages (context, index, entry).
        """

    def erase(self, scope: Scope) -> Forgotten:
        """Remove everything in *scope* and all that was derived from it alone. It may name pages that do not exist."""

    def maintain(self, now: float | None = None) -> int:
        """Do the maintenance that is due: build episodes, analyse, evict. Return how many pages moved.

        A memory has no timer of its own.
        """

    def close(self) -> None:
        """Release all resources. Closing twice is allowed."""


class NullMemory:
    """A memory that stores nothing and finds nothing."""

    def observe(self, page: PageRecord) -> None:
        """Do nothing."""

    def admit(self, page: PageRecord) -> None:
        """Do nothing."""

    def acknowledged(self, context: str) -> int:  # noqa: ARG002
        """Return 0."""
        return 0

    def search(self, query: str, **_bounds: Any) -> Recollection:
        """Return an empty result."""
        return Recollection(query)

    def erase(self, scope: Scope) -> Forgotten:  # noqa: ARG002
        """Do nothing: nothing is stored."""
        return Forgotten()

    def maintain(self, now: float | None = None) -> int:  # noqa: ARG002
        """Do nothing."""
        return 0

    def close(self) -> None:
        """Do nothing."""
