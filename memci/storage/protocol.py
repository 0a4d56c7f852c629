"""The methods of every store, and the changes that they apply to rows (`memci.rows`).

A context changes by transitions. One transition is one transaction: a store applies all of it or nothing.

    append_turn  ──▶  Transition(entries, pages, record)            ──▶  commit
    a compaction ──▶  Transition(pages, record, compaction, views)  ──▶  commit
    fork         ──▶  Transition(pages, record with parent, …)      ──▶  commit
    erase        ──▶  Erasure(tombstones, transitions)              ──▶  erase

What only some stores can do is a protocol of its own, which `isinstance` asks for: `SidecarStorage` (a database for the
memory), `CheckedStorage` (a check of all files).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from ..rows import CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Ticket

__all__ = [
    "CACHE_BYTES",
    "CallRow",
    "CheckedStorage",
    "CompactionRow",
    "ContextRecord",
    "DatabaseStorage",
    "EntryRow",
    "ErasedRows",
    "Erasure",
    "KeyedStorage",
    "OpRow",
    "PageRow",
    "PageState",
    "Sidecar",
    "SidecarStorage",
    "Storage",
    "Ticket",
    "Transition",
]
"""the rows are public here, too: who writes a store imports all from one module"""


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
