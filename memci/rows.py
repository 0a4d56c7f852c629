"""The rows that a store keeps of a context, each described once.

    row              key              sealed by encryption        has a sum of its own
    ContextRecord    id               settings, state
    EntryRow         seq              body                        codec, body: digest
    ViewRow          seq
    PageRow          index
    CompactionRow    revision         text
    OpRow            op_id            digest (masked)
    CallRow          revision         tools                       tools: kept once in a context, by their digest
    Ticket           (its number)

Entries are the truth: their bytes are written once, and only `erase` removes them. Pages say which entries belong
together, and which of them the window no longer shows:

    page #5   first=10  end=None  away=(11, 60)  the open page: 10 and what follows 59 are shown
    page #5   first=10  end=90    cut=(70, 71)   the entry 70 was taken back: it is on page #6 now
    page #6   first=70  end=71    continues=5    undone

A fork reads the entries before its `base` from its parent, and has all other rows of its own:

    alice    entries 0 … 811                     alice-2    parent alice, base 400: entries 400 … are its own

A row is a named tuple: no other value is made faster. Its annotations are its columns. From its `Table` follow the
statements and readers of SQLite and Postgres, what is encrypted, and the lines of an export.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from itertools import chain
from types import NoneType
from typing import Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from .errors import KeyMissing
from .workers import cached_property


class PageState(IntEnum):
    """The state of a page; a page has exactly one."""

    ACTIVE = 0  # whole in the window
    ARCHIVED = 1  # a line of the Contents Page
    UNLOADED = 2  # not listed any more: only a search finds it
    UNDONE = 3  # removed by undo or pop: kept, but never shown
    ERASED = 4  # erased on request: the bytes are gone, and the index is not used again


class ContextRecord(NamedTuple):
    """The record of a context, which each transition replaces."""

    id: str
    owner: str
    settings: str  # a JSON object
    state: str  # a JSON object, bounded by the window: pins, open calls, ratios
    head: int = 0  # the next seq
    next_page: int = 1
    turn: int = 0
    open_page: int | None = None
    revision: int = 1  # the number of transitions so far; a commit must have the next one
    parent: str | None = None
    """the context that this fork shares the entries before `base` with, or None; never changes"""
    base: int = 0

    @property
    def encrypted(self) -> bool:
        """Whether settings and state are encrypted, so that only `EncryptedStorage` can read them."""
        return self.settings.startswith('{"encrypted":')

    def read_settings(self) -> dict[str, Any]:
        """Return the settings as a dict; KeyMissing if they are encrypted. O(characters)."""
        if self.encrypted:
            key = self.settings.partition('"encrypted":"')[2].partition(":")[0]
            reason = f"it is encrypted with the key {key!r:.20}, not given here"
            raise KeyMissing(f"context {self.id!r:.60}", key, reason)
        return dict(json.loads(self.settings))


class EntryRow(NamedTuple):
    """One stored message. `seq` counts the messages of a context from 0, without gaps."""

    seq: int
    codec: int  # how `body` is encoded (`memci.storage.codec`)
    body: bytes
    digest: bytes  # 16 bytes of a digest of codec and body, checked by each read
    tokens: int  # size of the message in the window, by the context's counter
    clip: int = 0  # tokens to which the window clips the message; 0: not at all
    quotes: tuple[int, int | None] | None = None
    """the page (and entry) that this message quotes, if it answers a recall"""
    at: str | None = None  # the time of the message (ISO 8601) by the caller or its clock; nothing is ordered by it
    spans: tuple[int, ...] | None = None
    """the pieces of a result that its window shows as a digest (`memci.text.digest`); None: it is shown whole"""


class ViewRow(NamedTuple):
    """What a context shows of an entry, if that differs from the entry as it was appended."""

    seq: int
    tokens: int
    clip: int


class PageRow(NamedTuple):
    """One page: its entries, its state, and its use. Runs of seqs are `[first, end)`."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which rows do not need
    first: int
    end: int | None  # None while the page is open: it then ends at the head
    turn: int  # the turn in which it was opened
    state: PageState = PageState.ACTIVE
    cut: tuple[int, ...] | None = None
    """(a, b), or more such pairs in order: the entries [a, b) of this run belong to other pages"""
    continues: int | None = None  # index of the page that the messages of this one were taken back from
    archived_turn: int | None = None
    recall_count: int = 0
    last_recalled_turn: int | None = None
    away: tuple[int, ...] | None = None
    """(a, b), or more such pairs in order: the entries [a, b) of this page have left the window, and the others stay"""

    def spans(self, head: int) -> tuple[tuple[int, int], ...]:
        """Return the runs of seqs `[a, b)` that make up the page, oldest first; *head* is the context's next seq."""
        end = head if self.end is None else self.end
        if not self.cut:
            return ((self.first, end),) if self.first < end else ()
        bounds = (self.first, *self.cut, end)
        return tuple((a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b)

    def shown(self, head: int) -> tuple[tuple[int, int], ...]:
        """Return the `spans` that the window shows, if the page is in it. O(runs)."""
        if not self.away:
            return self.spans(head)
        found: list[tuple[int, int]] = []
        for start, end in self.spans(head):
            inside = [(a, b) for a, b in _pairs(self.away) if start < b and a < end]
            found += zip([start, *(b for _, b in inside)], [*(a for a, _ in inside), end], strict=True)
        return tuple((a, b) for a, b in found if a < b)

    def without(self, first: int, end: int) -> "PageRow":
        """Return the row without the entries `[first, end)`, which now belong to other pages. O(runs)."""
        return self._replace(cut=_joined(self.cut, first, end))

    def leaving(self, first: int, end: int) -> "PageRow":
        """Return the row after the entries `[first, end)` have left the window. O(runs)."""
        return self._replace(away=_joined(self.away, first, end))


def _pairs(bounds: tuple[int, ...] | None) -> list[tuple[int, int]]:
    return list(zip((bounds or ())[::2], (bounds or ())[1::2], strict=True))


def _joined(bounds: tuple[int, ...] | None, first: int, end: int) -> tuple[int, ...]:
    return tuple(chain(*join_runs([*_pairs(bounds), (first, end)])))


def join_runs(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the *runs* `[a, b)` in order; those that touch or overlap become one. O(runs · log runs).

    >>> join_runs([(7, 9), (1, 3), (3, 4)])
    [(1, 4), (7, 9)]
    """
    joined: list[tuple[int, int]] = []
    for first, end in sorted(runs):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((first, end))
    return joined


class CompactionRow(NamedTuple):
    """The window after one compaction."""

    revision: int  # that of the record in the same commit; it increases within a context
    head: int  # the next seq at that time
    turn: int
    text: str  # JSON


class OpRow(NamedTuple):
    """An append that was named by its caller. An `op_id` is unique in its context and kept for its life."""

    op_id: str
    digest: bytes
    first: int  # seq of its first message
    entries: tuple[tuple[int, int], ...]  # (page, ordinal) of each message


class CallRow(NamedTuple):
    """One call of the model, as reported with an append. All sizes are tokens."""

    revision: int
    """that of the record in the same commit; it increases within a context"""
    seq: int
    """the next seq before the append; the request may also have had messages of this append"""
    turn: int
    at: str | None
    """the time of the append, as `EntryRow.at`"""
    model: str | None
    """the model of the context's settings"""
    predicted: int
    """counted size of the request; 0 if the appending handle had not rendered it"""
    input: int
    """reported size of the request, including its cached part"""
    cached_read: int
    cached_written: int
    output: int
    """reported size of the answer, including its reasoning"""
    tools: str | None = None
    """the tools in the request, as JSON; a store keeps each list of a context once"""


class Ticket(NamedTuple):
    """A place in the queue for the lock of a context (`memci.storage.locks`)."""

    context: str
    token: str  # a random word, unique among all tickets
    holder: str  # name of the holder, for people
    process: str  # a unique name of its process, which shows whether that has ended; "" if there is none
    since: float  # when the ticket, or later the lock, was taken; in seconds since 1970
    expires: float  # when the ticket ends unless it is renewed


class Field(NamedTuple):
    """One field of a row, as every store keeps it."""

    name: str
    kind: type  # int, float, str, bytes, `PageState`; tuple: a JSON array
    nullable: bool


@dataclass(frozen=True, eq=False)
class Table:
    """What stores, encryption and exports need to know of one kind of row."""

    name: str  # the name of the table, and what encryption binds its rows to
    row: Any  # the named tuple
    key: str  # the field that is unique in a context
    apart: tuple[str, ...] = ()  # fields that a sum of their own covers; the check sum of the row covers all others
    packed: tuple[str, ...] = ()
    """texts that a store keeps as bytes: compressed, or once in a context by their digest"""
    sealed: tuple[str, ...] = ()  # fields that encryption hides
    bound: tuple[str, ...] = ()  # fields that encryption binds the sealed ones to: elsewhere they can't be read

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The fields, in order."""
        return tuple(Field(name, *_kind(hint)) for name, hint in get_type_hints(self.row).items())


def _kind(hint: Any) -> tuple[type, bool]:
    """Return how a store keeps a field of this type, and whether it may be None."""
    options = [each for each in get_args(hint) if each is not NoneType] if NoneType in get_args(hint) else [hint]
    return get_origin(options[0]) or options[0], NoneType in get_args(hint)


CONTEXT: Final = Table(
    "context",
    ContextRecord,
    "id",
    sealed=("settings", "state"),
    bound=tuple(name for name in ContextRecord._fields if name not in {"settings", "state"}),
)
ENTRY: Final = Table(
    "entry",
    EntryRow,
    "seq",
    apart=("codec", "digest", "body"),
    sealed=("body",),
    bound=("seq", "codec", "quotes", "at", "spans"),
)
VIEW: Final = Table("view", ViewRow, "seq")
PAGE: Final = Table("page", PageRow, "index")
COMPACTION: Final = Table(
    "compaction", CompactionRow, "revision", packed=("text",), sealed=("text",), bound=("revision", "head", "turn")
)
OP: Final = Table("op", OpRow, "op_id", sealed=("digest",), bound=("op_id",))
CALL: Final = Table("call", CallRow, "revision", packed=("tools",), sealed=("tools",))
TICKET: Final = Table("ticket", Ticket, "token")
