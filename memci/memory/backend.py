"""What a context asks of a memory, and what a memory answers.

    observe   a page closed: it can be found from now on
    admit     a page left the window, or its context was closed: it enters the tiers
    erase     a page was undone or erased: nothing of it may be found any more
    search    what is known of a query: pages, facts, concepts, the profile

A memory belongs to one owner, who may have many contexts. A context feeds it each page at least once, by index, and
what happened to a page since. A repeated call changes nothing. Pages are named by (context, index), positions in a text
are in characters, and times in seconds since 1970 UTC; None: not known.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from ..llm.usage import Spent
from ..messages import Message
from ..text.notebook import table
from ..text.summarize import Summary

Tier = Literal["observed", "short", "mid", "evicted"]

Source = Literal["words", "standing", "time"]
"""how a message was found: by its words or vectors; since it has a lasting instruction, and the query is a request;
since it lies between others in time, and the query wants an order"""

StatementKind = Literal["event", "day", "conversation", "profile", "strategy"]

PageKey = tuple[str, int]
"""context and index"""


@dataclass(frozen=True, slots=True)
class PageRecord:
    """A closed page, as a memory gets it."""

    context: str
    index: int
    turn: int
    entries: tuple[tuple[int, Message], ...]
    """(ordinal, message), in order"""
    at: float | None = None
    quotes: frozenset[int] = frozenset()
    """ordinals of messages that only quote another page (answers to recalls): they are not searchable"""
    aside: bool = False
    """whether it was set aside: it could not be read, or not be taken, and stands here without its messages"""
    open: bool = False
    """whether it may still grow: its context was closed while it was open. It is not acknowledged"""

    @property
    def own(self) -> list[Message]:
        """The messages that quote no other page, in order."""
        return [message for ordinal, message in self.entries if ordinal not in self.quotes]

    @property
    def key(self) -> PageKey:
        """What names the page: context and index."""
        return self.context, self.index


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message, exact."""

    entry: int
    text: str
    role: str
    start: int = 0
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A message that was found, and its page: of one page, there may be several."""

    context: str
    index: int
    entry: int
    """the ordinal of the message in its page"""
    score: float
    """how likely it answers, from 0 to 1: of a hundred with 0.8, about eighty do"""
    text: str
    """the piece of it that fits best, exact"""
    role: str
    turn: int
    at: float | None = None
    speaker: str = ""
    start: int = 0
    tier: Tier = "observed"
    episode: int | None = None
    source: Source = "words"
    more: tuple[Piece, ...] = ()
    """other pieces of the message that fit, best first"""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All pieces of the message that were found, best first."""
        return (Piece(self.entry, self.text, self.role, self.start, self.speaker), *self.more)


@dataclass(frozen=True, slots=True)
class Fact:
    """A short statement that is known."""

    text: str
    about: Literal["user", "assistant"]
    score: float
    context: str
    index: int
    turn: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Concept:
    """A node of the knowledge graph, as far as a query activates it."""

    name: str
    activation: float
    relations: tuple[str, ...]
    """its strongest relations as text: "Mel — plays → violin" """
    pages: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """What was derived of more than a sentence: an event, a day, a conversation; who the user is, how to treat them."""

    kind: StatementKind
    text: str
    score: float
    """the share of the words of the question that it has, from 0 to 1"""
    date: str = ""
    """when it was, as 2024-05-04; "" if not known"""


@dataclass(frozen=True, slots=True)
class Recollection:
    """What a search found: of pages the messages that fit, best first, behind what stands for the user at any time."""

    query: str
    pages: tuple[FoundPage, ...] = ()
    user_facts: tuple[Fact, ...] = ()
    assistant_facts: tuple[Fact, ...] = ()
    concepts: tuple[Concept, ...] = ()
    profile: str = ""
    retrieved_at: float = 0.0
    pending: int = 0
    """pages that are not searchable yet"""
    statements: tuple[Statement, ...] = ()
    strategy: str = ""
    """how to treat the user, as a model sees it"""
    certainty: float | None = None
    """from 0 to 1, how likely one of the first five messages answers: of a hundred searches with 0.8, about eighty are
    answered. Low if the question names a person and its words are another's. None: not known"""

    def __bool__(self) -> bool:
        return bool(self.pages or self.user_facts or self.assistant_facts or self.concepts or self.statements)

    def _repr_html_(self) -> str:
        found = {f"{page.score:.2f} {page.context} #{page.index}, {page.role}": page.text for page in self.pages}
        known = {f"fact {at}": fact.text for at, fact in enumerate((*self.user_facts, *self.assistant_facts), 1)}
        return table(f"Found for {self.query!r}", found | known or {"nothing": "was found"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What is to be erased: everything of the owner, one context, or pages of it."""

    context: str | None = None
    pages: Collection[int] | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What an erasure removed from a memory."""

    pages: int = 0
    derived: int = 0
    """episodes, facts, concepts, events, summaries that were removed or rebuilt"""
    scrubbed: bool = True
    """whether no byte is left in the memory's own files; False while another reader keeps an older state"""


@dataclass(frozen=True, slots=True)
class Work:
    """What the model of a memory did so far, and what waits for it."""

    waiting: int = 0
    """jobs that are still to be done"""
    set_aside: int = 0
    """jobs that failed five times: what the rules made stays"""
    skipped: int = 0
    """jobs that were not added, since too many waited"""
    spent: Mapping[str, Spent] = field(default_factory=dict)
    """by step"""


@runtime_checkable
class JobRunner(Protocol):
    """What a memory offers besides `MemoryBackend` if a model improves what it knows. Thread-safe.

    The jobs run in the background: no method of `MemoryBackend` waits for a model.
    """

    @property
    def has_model(self) -> bool:
        """Whether there is a model. False: there is never a job to run."""

    def run_job(self, settle: Callable[[], None] | None = None) -> bool:
        """Run one job that is due, and return whether another one is due. O(one call of the model).

        *settle* is called before anything is written. It returns when writing disturbs nobody.
        """

    def summaries(self, context: str, indexes: Collection[int]) -> Mapping[int, Summary]:
        """Return the model's summaries of those pages that have one. One query."""

    def work(self) -> Work:
        """Return what was done and what waits."""


@runtime_checkable
class SetsAside(Protocol):
    """What a memory offers besides `MemoryBackend` if it keeps which pages were set aside.

    A page whose `observe` or `admit` raises an error that is no `StorageError` is observed again as one that was set
    aside, without messages, so that no page behind it waits. `Context.flush` feeds it whole again. Without this
    protocol a context knows of such pages only as long as it is open.
    """

    def set_aside(self, context: str) -> Collection[int]:
        """Return the pages of *context* that were observed as set aside last. One query."""


@runtime_checkable
class HasTiers(Protocol):
    """What a memory offers besides `MemoryBackend` if its pages go through tiers, and sessions are summarized.

    Without it, a context admits the pages that it has observed itself since it was opened, and sessions never end.
    """

    def observed(self, context: str) -> Collection[int]:
        """Return the pages of *context* that were observed and never admitted. One query."""

    def end_session(self, context: str) -> None:
        """Note that the conversation in *context* is over: it is summarized. The next page begins another one."""

    def overdue(self) -> bool:
        """Return whether far more waits for `maintain` than a context leaves that stays open for a while."""


@runtime_checkable
class MemoryBackend(Protocol):
    """Where pages go that leave the window. Thread-safe; bound to one owner.

    Every method may raise a `memci.errors.StorageError`. The context goes on without its memory, and feeds it later.
    """

    def observe(self, page: PageRecord) -> None:
        """Make a closed page searchable. The same page again changes nothing; with other entries it is replaced."""

    def admit(self, page: PageRecord) -> None:
        """Observe a page, which nobody sees whole any more, and take it into the tiers, once."""

    def acknowledged(self, context: str) -> int:
        """Return the highest page index of *context* that was observed and not open, 0 if none was.

        The context feeds the pages after it. A memory that may have lost pages in a crash returns 0.
        """

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
        """Return what is known of *query*, in plain words: at most *k* messages.

        Their texts cost *budget* tokens at most. Lasting instructions, which a request gets, come first and beside *k*.

        *since* and *until* are seconds since 1970 UTC, both included; with one of them, a page without a time is not
        found. *exclude* are pages (context, index) that are not wanted: they stand in the window.
        """

    def erase(self, scope: Scope) -> Forgotten:
        """Remove what *scope* names and all that was derived from it alone. It may name what is already gone."""

    def maintain(self, now: float | None = None) -> int:
        """Do the maintenance that is due: build episodes, analyse, promote, evict. Return how many pages moved.

        Nothing runs by a timer of its own.
        """

    def close(self) -> None:
        """Release what is held. Closing twice is fine."""


class NullMemory:
    """A memory that keeps nothing and finds nothing."""

    def observe(self, page: PageRecord) -> None:
        """Keep nothing."""

    def admit(self, page: PageRecord) -> None:
        """Keep nothing."""

    def acknowledged(self, context: str) -> int:  # noqa: ARG002
        """Return 0."""
        return 0

    def search(self, query: str, **_bounds: Any) -> Recollection:
        """Find nothing."""
        return Recollection(query)

    def erase(self, scope: Scope) -> Forgotten:  # noqa: ARG002
        """Remove nothing: nothing is kept."""
        return Forgotten()

    def maintain(self, now: float | None = None) -> int:  # noqa: ARG002
        """Do nothing."""
        return 0

    def close(self) -> None:
        """Release nothing."""
