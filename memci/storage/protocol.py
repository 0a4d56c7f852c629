"""The methods of every store, and the changes that they apply to rows (`memci.rows`).

A context changes by transitions. One transition is one transaction: a store applies all of it or nothing.

    append_turn  ──▶  Transition(entries, pages, record)             ──▶  commit
    a compaction ──▶  Transition(pages, record, compactions, views)  ──▶  commit
    fork         ──▶  Transition(pages, record with parent, …)       ──▶  commit
    erase        ──▶  Erasure(tombstones, transitions)               ──▶  erase

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
"""The rows are public here, too, so that the author of a store imports all from one module."""


class Transition(NamedTuple):
    """One change of one context. One that arrives brings all its compactions, ops and calls; a change adds one each."""

    head: int  # the next seq as the writer last read it, 0 for a new context; another one is a `WriteConflict`
    record: ContextRecord
    """the record after the change; its revision is one above the stored one, or 1 for a new context"""
    entries: tuple[EntryRow, ...] = ()  # new entries, with seqs from `head` on (a new fork: from its `base` on)
    pages: tuple[PageRow, ...] = ()  # new and changed pages, with all fields; matched by index
    views: tuple[tuple[int, int, int], ...] = ()
    """(seq, tokens, clip) of entries whose view in the window changed; their bytes never change"""
    compactions: tuple[CompactionRow, ...] = ()  # new ones, oldest first; earlier ones are kept
    ops: tuple[OpRow, ...] = ()
    calls: tuple[CallRow, ...] = ()  # oldest first
    arrives: bool = False  # whether the context is new in this store and keeps the revision that it had elsewhere

    @property
    def op(self) -> OpRow | None:
        """The op of the append, which is made only once; None if it has no op, or the context arrives."""
        return self.ops[-1] if self.ops and not self.arrives else None


class Erasure(NamedTuple):
    """What one transaction erases."""

    contexts: tuple[str, ...] = ()  # contexts to remove whole
    entries: tuple[tuple[str, EntryRow], ...] = ()
    """(context, tombstone): the tombstone replaces the entry with its seq, in all forks that share it"""
    transitions: tuple[Transition, ...] = ()
    """one for each context that shows one of these entries. Its earlier compactions are removed, and the digests of the
    ops that appended such an entry become 16 zero bytes."""


class ErasedRows(NamedTuple):
    """The numbers of removed rows."""

    contexts: int = 0
    entries: int = 0
    pages: int = 0
    compactions: int = 0
    ops: int = 0
    scrubbed: bool = True
    """whether no byte is left in the store's files; False while another reader keeps an older state: erase again"""


@runtime_checkable
class Storage(Protocol):
    """A store of contexts. Thread-safe; one store holds many contexts.

    Every method may raise a `memci.errors.StorageError`. A store checks what it reads: if the bytes differ from those
    that were written, it raises `CorruptRecord` and skips nothing. Only `erase` deletes or rewrites an entry.
    """

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context. O(1)."""

    def revision(self, context: str) -> int:
        """Return the revision of *context*, 0 if there is no such context. O(1). It is called often: make it cheap."""

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* as one transaction and return None.

        If its `op` is already stored, apply nothing and return the stored row. The caller compares the digests.

        Raises:
            WriteConflict: If the stored head is not `transition.head`, or the stored revision is not the one before
                that of `transition.record` (both are 0 for a new context): another writer was first.
            CommitUnknown: If it is unknown whether it was applied: open the store again.
        """

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, state: PageState | None = None
    ) -> Iterator[PageRow]:
        """Yield the pages with index *first* to *last* (inclusive), by index; only those in *state* if it is given.

        O(pages yielded) by index; by `PageState.ACTIVE` O(pages in the window), whatever the size of the archive.
        """

    def pages_at(self, context: str, indexes: Collection[int]) -> Sequence[PageRow]:
        """Return the pages with *indexes*, in order of index; missing ones are left out. O(these), in one read."""

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

        A fork reads shared entries from its parent, with its own views. *as_appended*: without any views.
        O(entries in the range), in bounded memory.

        Raises:
            CorruptRecord: At the first row that is missing or damaged.
        """

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        """Return the entries with *seqs*, in order; seqs beyond the head are left out. O(these), in one read.

        It raises as `entries`.
        """

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions of *context*, newest first; only those at *head* or before it, if it is given."""

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops of *context* by their first seq. O(ops)."""

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return the op *op_id* of *context*, or None. O(1)."""

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

        It may name contexts that are already gone. `Erasure()` only removes bytes that earlier erasures left.

        Raises:
            WriteConflict: As for `commit`, for any of its transitions.
            InvalidSetting: If a fork would lose entries that it shares; the error names the fork.
        """

    def tickets(self, context: str | None = None) -> Sequence[Ticket]:
        """Return the queue for the lock of *context*, or of all contexts, in order of arrival.

        O(tickets). It is called often while a lock is waited for: make it cheap.
        """

    def replace_ticket(self, old: Ticket | None, new: Ticket | None) -> bool:
        """Replace *old* by *new* in one transaction, and return whether *old* was there, with all fields equal.

        If it was not, nothing changes. Without *old*, add *new* behind all other tickets; without *new*, remove *old*.
        The context need not exist. `erase` removes the tickets of the contexts that it removes.
        """

    def close(self) -> None:
        """Release the store. Closing twice is fine; any other call afterwards raises `HandlePoisoned`."""


CACHE_BYTES: Final = 256 * 2**20  # bytes of a sidecar that stay in RAM by default: some thousand pages of an owner


class Sidecar(NamedTuple):
    """A SQLite database for data that is derived from the pages, as by the memory."""

    path: str  # the absolute path of the file, which its user makes if it is missing; ":memory:" for RAM
    shared: bool = False
    """whether it is the store's own file: a synced commit of the store then also syncs earlier writes to it"""
    read_only: bool = False  # whether it must not be written
    cache_bytes: int = CACHE_BYTES  # bytes of it that may stay in RAM until the store is closed


@runtime_checkable
class SidecarStorage(Protocol):
    """Optional: a store with a database beside its pages, which a memory needs."""

    def sidecar(self, release: Callable[[], None]) -> Sidecar:
        """Return the database, for one user at a time. `close` first calls the *release* of the last user. O(1)."""


@runtime_checkable
class DatabaseStorage(Protocol):
    """Optional: a store in a Postgres database, in which the memory keeps tables of its own.

    The memory may write while the store may.
    """

    @property
    def database(self) -> Any:
        """The database (`memci.storage.postgres.database.Database`)."""


@runtime_checkable
class KeyedStorage(Protocol):
    """Optional: a store that is encrypted together with its memory."""

    @property
    def keys(self) -> Any:
        """The keys that wrap data keys (`memci.storage.encrypted.keys.KeyRing`)."""

    def rotate(self) -> int:
        """Wrap the data keys of all contexts with the first key; return how many had another one. O(contexts)."""


@runtime_checkable
class CheckedStorage(Protocol):
    """Optional: a store that can check its files as a whole."""

    def damage(self) -> list[str]:
        """Return one sentence for each problem of the files. O(bytes)."""
