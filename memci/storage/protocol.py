"""The rows that a store keeps of a context, and the methods of every store.

A context changes by transitions. One transition is one transaction: a store applies all of it or nothing.

    append_turn  ──▶  Transition(entries, pages, record)            ──▶  commit
    a compaction   ──▶  Transition(pages, record, compaction, views)     ──▶  commit
    fork         ──▶  Transition(pages, record with parent, …)      ──▶  commit
    erase        ──▶  Erasure(tombstones, transitions)              ──▶  erase

Entries are the truth: their bytes are written once, and only `erase` removes them. Pages say which entries belong
together:

    page #5   first=10  end=90  cut=(11, 60)     the entries 10 and 60–89: its middle was split off as #6
    page #6   first=11  end=60  continues=5

What is taken back message by message is cut out in the same way: `cut` has more such runs then, and the pages that
hold them are undone.

A fork reads the entries before its `base` from its parent, and has all other rows of its own:

    alice    entries 0 … 811                     alice-2    parent alice, base 400: entries 400 … are its own

What some stores can do besides is a protocol of its own, which `isinstance` asks for: `SidecarStorage` (a database
for the memory), `CheckedStorage` (a check of all files). Rows are named tuples, the fastest values to make.
This module knows nothing of tokens, windows or SQL.
"""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from ..errors import KeyMissing


class PageState(IntEnum):
    """Where a page is. A page has exactly one state."""

    ACTIVE = 0
    """whole in the window"""
    ARCHIVED = 1
    """on a line of the Contents Page"""
    UNLOADED = 2
    """no longer listed: only the memory finds it"""
    UNDONE = 3
    """taken back by undo or pop: kept, never shown"""
    ERASED = 4
    """erased on request: the bytes do not exist any more, the index is not used again"""


class EntryRow(NamedTuple):
    """One message as it is stored. `seq` counts the messages of a context from 0, without gaps."""

    seq: int
    codec: int
    """how `body` is encoded (`memci.storage.codec`)"""
    body: bytes
    digest: bytes
    """16 bytes over codec and body; reading checks it"""
    tokens: int
    """what the message costs in the window, in tokens of the context's counter"""
    clip: int = 0
    """0, or the tokens that its view in the window is clipped to"""
    quotes: tuple[int, int | None] | None = None
    """the page (and entry) that this message quotes, if it is the answer to a recall"""
    at: str | None = None
    """when it happened (ISO 8601), given by the caller or its clock; it orders nothing"""


class PageRow(NamedTuple):
    """One page: which entries it holds, its state, how it was used. Runs of seqs are `[first, end)`."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which rows do not need
    first: int
    end: int | None
    """None while the page is open: it reaches to the head"""
    turn: int
    """the turn that it opened in"""
    state: PageState = PageState.ACTIVE
    cut: tuple[int, ...] | None = None
    """(a, b), or more such pairs in order: the entries [a, b) of this run belong to other pages"""
    continues: int | None = None
    """the index of the page that this one was split off from"""
    archived_turn: int | None = None
    recall_count: int = 0
    last_recalled_turn: int | None = None

    def spans(self, head: int) -> tuple[tuple[int, int], ...]:
        """Return the runs of seqs `[a, b)` that make up the page, oldest first; *head* is the context's next seq."""
        bounds = (self.first, *(self.cut or ()), head if self.end is None else self.end)
        return tuple((a, b) for a, b in zip(bounds[::2], bounds[1::2], strict=True) if a < b)

    def without(self, first: int, end: int) -> "PageRow":
        """Return the row without the entries `[first, end)`, which belong to other pages from now on. O(runs)."""
        cut, apart = self.cut or (), []
        for a, b in zip(cut[::2], cut[1::2], strict=True):
            if b < first or end < a:
                apart.append((a, b))
            else:
                first, end = min(a, first), max(b, end)
        return self._replace(cut=tuple(chain(*sorted([*apart, (first, end)]))))


class ContextRecord(NamedTuple):
    """The few facts of a context that change with every transition."""

    id: str
    owner: str
    settings: str
    """a JSON object"""
    state: str
    """a JSON object, bounded by the window: pins, open calls, ratios"""
    head: int = 0
    """the next seq"""
    next_page: int = 1
    turn: int = 0
    open_page: int | None = None
    revision: int = 1
    """how many transitions were applied; each one must follow the one before"""
    parent: str | None = None
    """the context whose entries before `base` are also this one's, if this is a fork; never changes"""
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


class OpRow(NamedTuple):
    """An append that its caller named: an `op_id` is unique in its context, and kept as long as it."""

    op_id: str
    digest: bytes
    first: int
    """seq of its first message"""
    entries: tuple[tuple[int, int], ...]
    """(page, ordinal) of each message"""


class CompactionRow(NamedTuple):
    """What a compaction left behind: how the window stood then."""

    revision: int
    """of the record that it was committed with; counts up within a context"""
    head: int
    """the next seq at that time"""
    turn: int
    text: str
    """JSON"""


class CallRow(NamedTuple):
    """One call of the model, as its caller reported it with an append. All sizes are tokens."""

    revision: int
    """of the record that it was committed with; counts up within a context"""
    seq: int
    """the next seq before the append: the request held messages before it, and perhaps some that were appended then"""
    turn: int
    at: str | None
    """when it was appended (ISO 8601), as `EntryRow.at`"""
    model: str | None
    """the model of the context's settings"""
    predicted: int
    """what the request was counted as; 0 if the handle that appended had not rendered it"""
    input: int
    """what the provider reported for the request, with what its cache kept"""
    cached_read: int
    cached_written: int
    output: int
    """for the answer, with its reasoning"""
    tools: str | None = None
    """the list of tools that was sent, as JSON; a store keeps each list of a context once"""


class Transition(NamedTuple):
    """One change of one context."""

    head: int
    """the next seq as the writer read it last, 0 for a new context; another one in the store is `WriteConflict`"""
    record: ContextRecord
    """the context's record afterwards; its revision is one above the stored one, or 1 for a new context"""
    entries: tuple[EntryRow, ...] = ()
    """new entries, with seqs from `head` on (a new fork: from its `base` on)"""
    pages: tuple[PageRow, ...] = ()
    """pages that are new or changed, whole; matched by index"""
    views: tuple[tuple[int, int, int], ...] = ()
    """(seq, tokens, clip) of entries whose view in the window changed; their bytes never do"""
    compaction: str | None = None
    """the window afterwards (JSON), None if this is no compaction; kept beside the compactions before it"""
    op: OpRow | None = None
    history: tuple[CompactionRow, ...] = ()
    """compactions before this one, oldest first; only a context that comes with its past has any"""
    ops: tuple[OpRow, ...] = ()
    """the same for ops of the past"""
    call: CallRow | None = None
    calls: tuple[CallRow, ...] = ()
    """the same for calls of the past, oldest first"""
    arrives: bool = False
    """whether the context is new here and comes with its past: it starts at the revision that it had"""


class Erasure(NamedTuple):
    """What one transaction removes."""

    contexts: tuple[str, ...] = ()
    """contexts to remove whole"""
    entries: tuple[tuple[str, EntryRow], ...] = ()
    """(context, tombstone): the tombstone takes the place of the entry with its seq, for all forks that share it"""
    transitions: tuple[Transition, ...] = ()
    """the next state of each context that shows one of these entries; its earlier compactions are removed, and the
    digests of its ops that appended one of them become 16 zero bytes"""


class ErasedRows(NamedTuple):
    """How many rows were removed, by table."""

    contexts: int = 0
    entries: int = 0
    pages: int = 0
    compactions: int = 0
    ops: int = 0
    scrubbed: bool = True
    """whether no byte is left in the store's own files; False while another reader keeps an older state: erase again"""


class Ticket(NamedTuple):
    """A place in the queue for the lock of a context (`memci.storage.locks`)."""

    context: str
    token: str
    """a random word, unlike that of any other ticket"""
    holder: str
    """who has it, to be read by people"""
    process: str
    """a name that no other process ever has, from which others see whether it has ended; "" if there is none"""
    since: float
    """when it was taken, or the lock with it; in seconds since 1970"""
    expires: float
    """when it ends unless it is renewed"""


@runtime_checkable
class Storage(Protocol):
    """Where contexts are kept. Thread-safe; one store holds many contexts.

    Every method may raise a `memci.errors.StorageError`. A store checks what it reads: other bytes than were written
    are `CorruptRecord`, and are never skipped. Only `erase` deletes or rewrites an entry.
    """

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context. O(1)."""

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context. O(1), and called often: make it cheap."""

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* as one transaction and return None.

        If its `op` is known already, apply nothing and return the row that is stored (the caller compares digests).

        Raises:
            WriteConflict: If the stored head is not `transition.head`, or the stored revision is not the one before
                that of `transition.record` (both are 0 for a new context): another writer was first.
            CommitUnknown: If it is not known whether it was applied: open the store again.
        """

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield the pages with index *first* to *last* (inclusive), by index; only those in *state* if it is given.

        O(pages yielded) by index; by `PageState.ACTIVE` O(pages in the window), whatever the size of the archive.
        """

    def pages_at(self, context: str, indexes: Collection[int]) -> Sequence[PageRow]:
        """Return the pages with *indexes*, by index, without those that do not exist. O(these), in one read."""

    def entries(
        self,
        context: str,
        first: int = 0,
        end: int | None = None,
        *,
        containing: bytes | None = None,
        as_appended: bool = False,
    ) -> Iterator[EntryRow]:
        """Yield the entries with seq in `[first, end)`, in order; only bodies with the bytes *containing*, if given.

        Those that a fork shares come from its parent, with the fork's own views; *as_appended*: without any views.
        O(entries in the range), in bounded memory.

        Raises:
            CorruptRecord: When a row is reached that is missing or not what was written.
        """

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        """Return the entries with *seqs*, in order, without those that were not appended yet. O(these), in one read.

        It raises as `entries`.
        """

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions of *context*, newest first; those made at most at *head*, if it is given."""

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops of *context* by their first seq. O(ops)."""

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return the op *op_id* of *context*, None if there is none. O(1)."""

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model with a revision above *after*, oldest first. A fork begins with none."""

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        """Return the records of contexts by id: of *owner* or of all, with an id above *after*, at most *limit*."""

    def forks(self, context: str) -> Sequence[ContextRecord]:
        """Return the records of the contexts whose parent is *context*, by id. O(these)."""

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names as one transaction, then remove its bytes from the store's files.

        It may name contexts that do not exist any more; `Erasure()` only removes bytes that are left.

        Raises:
            WriteConflict: As for `commit`, for any of its transitions.
            InvalidSetting: If a fork would lose entries that it shares; the error names the fork.
        """

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or those of all contexts: in the order in which they came.

        O(tickets), and called often while somebody waits: make it cheap.
        """

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Put *new* in the place of *old* as one transaction, and return whether *old* was there, exactly so.

        If it was not, nothing changes. Without *old*, *new* goes behind all other tickets; without *new*, *old* is
        removed. The context need not exist. `erase` removes the tickets of the contexts that it removes.
        """

    def close(self) -> None:
        """Release the store. Closing twice is fine; anything else afterwards is `HandlePoisoned`."""


CACHE_BYTES: Final = 256 * 2**20
"""how much of a sidecar stays in RAM by default, in bytes"""


class Sidecar(NamedTuple):
    """A SQLite database for what can be derived from the pages again, as the memory does."""

    path: str
    """the absolute path of the file, which the reader makes if it is missing; ":memory:" if it lives in RAM only"""
    shared: bool = False
    """whether it is the store's own file: each synced commit of the store then also syncs what was written before it"""
    read_only: bool = False
    """whether nothing may be written to it"""
    cache_bytes: int = CACHE_BYTES
    """how much of it may stay in RAM until the store is closed"""


@runtime_checkable
class SidecarStorage(Protocol):
    """Optional: a store with a database beside its pages. Without it, a store has no memory."""

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return the database, for one user at a time; `close` calls the *release* of the last one first. O(1)."""


@runtime_checkable
class DatabaseStorage(Protocol):
    """Optional: a store in a Postgres database, in which the memory keeps tables of its own, beside those of the store.

    Who may write there, and until when, is as for the store.
    """

    @property
    def database(self) -> Any:
        """The database (`memci.storage.postgres.database.Database`)."""


@runtime_checkable
class KeyedStorage(Protocol):
    """Optional: a store that is encrypted, and whose memory is, too."""

    @property
    def keys(self) -> Any:
        """What wraps data keys (`memci.storage.encrypted.keys.KeyRing`)."""

    def rotate(self) -> int:
        """Wrap the data keys of contexts with the first key; return how many were not. O(contexts)."""


@runtime_checkable
class CheckedStorage(Protocol):
    """Optional: a store that can check its files as a whole, beyond the rows of one context."""

    def damage(self) -> list[str]:
        """Return one sentence for each thing that is wrong with the files, [] if nothing is. O(bytes)."""
