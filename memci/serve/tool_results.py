"""What the tools of a store return: values that become JSON objects with these names.

    QuotedPage(context="alice", page=42, messages=[QuotedMessage(entry=1, role="user", text="…"), …], next=None)

They have no slots: the library that serves them takes a slot for a default. This module knows nothing of where they
come from.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class ContextLine:
    """A context, in a list of them."""

    context: str
    owner: str
    pages: int
    messages: int


@dataclass(frozen=True)
class ContextLines:
    """Some of the contexts of a store, by name."""

    contexts: list[ContextLine]
    next: str | None
    """what to pass as `after` for the following ones; None: there are no more"""


@dataclass(frozen=True)
class ContentsEntry:
    """A page, in the contents of a context."""

    page: int
    uri: str
    title: str
    date: str | None
    turn: int
    place: str
    messages: int


@dataclass(frozen=True)
class ContentsList:
    """Some of the pages of a context, oldest first."""

    context: str
    owner: str
    note: str
    pages: list[ContentsEntry]
    total: int
    earlier: int | None
    """what to pass as `first` for those before; None: there are none"""
    later: int | None
    """the same for those behind"""


@dataclass(frozen=True)
class QuotedMessage:
    """A message of a page, or a part of it."""

    entry: int
    role: str
    at: str | None
    text: str
    """exact; the JSON of the message if it is more than a text"""
    is_json: bool
    start: int
    """the character at which the text begins"""
    whole: bool
    """whether it goes on to the end of the message"""


@dataclass(frozen=True)
class NextPart:
    """The arguments of the call that reads on."""

    page: int
    entry: int
    offset: int


@dataclass(frozen=True)
class QuotedPage:
    """A page, or as much of it as was asked for."""

    context: str
    page: int
    uri: str
    note: str
    messages: list[QuotedMessage]
    next: NextPart | None


@dataclass(frozen=True)
class FoundMessage:
    """A message that a search found."""

    context: str
    page: int
    entry: int
    uri: str
    role: str
    date: str | None
    turn: int
    score: float
    """how likely it answers, from 0 to 1"""
    texts: list[str]
    """the pieces of it that fit, best first, exact"""


@dataclass(frozen=True)
class FoundMessages:
    """What a search found, best first."""

    query: str
    note: str
    messages: list[FoundMessage]
    known: list[str]
    """short statements that were derived: facts, events, the profile"""
    pending: int
    """pages that can't be searched yet"""


@dataclass(frozen=True)
class AppendReceipt:
    """What an append stored."""

    context: str
    page: int
    first_entry: int
    messages: int
    duplicate: bool
    """whether the op_id was known: nothing was stored again"""
