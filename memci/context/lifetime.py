"""The life of a context: opened, read again, forked, erased, closed.

    open  ──▶  refresh …  ──▶  fork  ──▶  a context of its own          erase  ──▶  bytes that do not exist any more
                                          (it shares the past)          close

What an agent does with an open context is in `context`. This module knows nothing of rendering or appending.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..chapters.unload import UnloadRule
from ..errors import HandlePoisoned, InvalidSetting, StorageError, StorageReadOnly
from ..history.as_of import Past
from ..history.erase import ErasureReceipt, erased, forgotten
from ..history.events import Event
from ..history.fork import forked
from ..history.loader import Wanted, opened
from ..history.reader import Reader
from ..history.verify import problems
from ..history.writer import Writer
from ..memory.backend import MemoryBackend
from ..storage import SQLiteStorage, Storage
from ..storage.locks import check_seconds
from ..tools.search_memory import ANSWERED
from ..window.window import Window
from ..workers import called
from .memory_client import Remembering
from .memory_page import MemoryPage
from .renderer import Renderer
from .report import CacheMeter
from .tool_dispatch import Answerer

if TYPE_CHECKING:
    from ..llm.model import ChatModel

Store = str | os.PathLike[str] | Storage
"""a path (one SQLite file for many contexts), or a store"""


class Parts(NamedTuple):
    """What a context consists of in memory. Read anew, all of it is replaced at once."""

    window: Window
    reader: Reader
    writer: Writer
    renderer: Renderer
    answerer: Answerer
    memory_page: MemoryPage | None


class Lifetime:
    """How a context comes and goes."""

    def __init__(
        self,
        store: Store,
        wanted: Wanted,
        *,
        rules: Sequence[UnloadRule] | None,
        memory: MemoryBackend | None,
        chat: ChatModel | None,
        at: int | None,
        wait: float,
        on_event: Callable[[Event], None] | None,
    ) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._store, self._wanted, self._rules, self._memory, self._chat = store, wanted, rules, memory, chat
        self._release: Callable[[], None] | None = None
        self.on_event = on_event
        """called with every `Event`, after it was committed; what it raises reaches the caller"""
        self._owned = not isinstance(store, Storage)
        self._storage = _storage(store, read_only=wanted.read_only)
        try:
            check_seconds(wait)
            if wait and not wanted.read_only:  # a reader needs no lock
                self._release = self._storage.hold(wanted.id, wait)
            if at is not None:
                self._storage = Past(self._storage, wanted.id, at)
            self._remembering = Remembering(
                memory,
                self._tiers,
                self._lock,
                read_only=wanted.read_only,
                past=at is not None,
                models=chat is not None,
            )
            self._read()
        except BaseException:
            self._let_go()
            raise

    def _read(self, meter: CacheMeter | None = None) -> None:
        """Take the context as its store has it, all at once; *meter* goes on counting, if there is one."""
        window, reader, unwritten = opened(self._storage, self._wanted)
        writer = Writer(
            self._storage,
            window,
            reader,
            rules=self._rules,
            notify=self._notify,
            summaries=self._remembering.summaries,
            unwritten=unwritten,
            read_only=self._wanted.read_only,
        )
        renderer = Renderer(window, writer, meter or CacheMeter())
        if meter is not None:
            meter.breaks(window)
        answerer = Answerer(window, reader, writer, partial(self._remembering.search, k=ANSWERED))
        self._remembering.follows(self._storage, window)
        page = None
        if window.settings.remember and not self._remembering.off:
            page = MemoryPage(
                window, writer, renderer.meter, self._remembering.search, read_only=self._wanted.read_only
            )
        self._parts = Parts(window, reader, writer, renderer, answerer, page)

    @property
    def id(self) -> str:
        """The context's name in its store."""
        return self._parts.window.record.id

    @property
    def read_only(self) -> bool:
        """Whether it was opened for reading only, or as it was in a turn of the past."""
        return self._wanted.read_only

    def refresh(self) -> None:
        """Read the context anew, as its store has it now: after `WriteConflict`, or to see what others appended.

        O(messages in the window). What was appended here is in the store and stays.

        Raises:
            HandlePoisoned: If it was erased meanwhile: nothing is made in its place.
            StorageError: If it can't be read.
        """
        with self._usable():
            if not self._storage.revision(self.id):
                raise HandlePoisoned(f"the context {self.id!r:.60} was erased: there is nothing to read any more")
            self._read(self._parts.renderer.meter)

    def fork(self, id: str, *, at: int | None = None, owner: str | None = None) -> Self:  # noqa: A002
        """Make the context *id*, which shares the past of this one, and return it; each goes its own way then.

        No message is copied, only a small row per page: O(pages). It lives in the same store, and has the settings,
        counter and rules of this one. What is erased in one is erased in both.

        Args:
            id: Its name.
            at: The last turn that is shared; default: all that was appended.
            owner: Whose memory it is; default: this one's owner.

        Raises:
            InvalidSetting: If there is a context of this name, or no such turn.
            WriteConflict: If another writer has changed this context: `refresh` first.
        """
        with self._usable():
            then = self._wanted._replace(read_only=True, given={}, system=None, recount=True)
            wanted = then._replace(id=id, owner=owner, nonce=None, read_only=False, recount=False)
            writable = self._storage
            if isinstance(writable, Past):
                writable = writable.storage
            if at is not None or isinstance(self._storage, Past):
                seen = self._storage if at is None else Past(writable, self.id, at)
                forked(seen, writable, opened(seen, then).window, id, owner)
            else:
                self._parts.writer.check_revision()
                forked(self._storage, writable, self._parts.window, id, owner)
            store = self._store if self._owned else writable
            memory = self._memory if owner is None else None
            return type(self)(
                store, wanted, rules=self._rules, memory=memory, chat=self._chat, at=None, wait=0, on_event=None
            )

    def erase(self, page: int, entry: int | None = None) -> ErasureReceipt:
        """Erase page *page*, or its one *entry*, for good: the bytes go from this context and from all its forks.

        What the model reads of it goes too: lines of the Contents Page, answers that quoted it, earlier compactions
        (the past before can't be opened by `at=` any more). The page's number is not used again. O(entries +
        contexts in the store).

        Raises:
            PageNotFound: If no page has this index, or it has no such entry; `Erased` if it is gone already.
            WriteConflict: If another writer has changed one of these contexts: `refresh` first.
        """
        with self._usable():
            if self._wanted.read_only:
                raise StorageReadOnly(f"context {self.id!r:.60} was opened for reading only")
            self._parts.writer.check_revision()
            try:
                self._parts.writer.write_out()
                receipt = erased(
                    self._storage, self._parts.window, self._parts.reader, page, entry, counter=self._wanted.counter
                )
            except StorageError:  # it may be erased although not all was done
                with suppress(StorageError):
                    self._read()
                raise
            self._read()
            if not (self._remembering.tell_fates() and forgotten(self._storage, {})):
                receipt = replace(receipt, memory="pending")
            return receipt

    def export(self) -> Iterator[str]:
        """Yield the whole context as lines of JSON, without their newlines; `import_` reads them. O(entries).

        Every byte of every message comes back, and all that is known of pages, compactions and ops (docs/storage.md
        says which line holds what).
        """
        from ..history import exported

        with self._usable():
            return exported(self._storage, self.id)

    def verify(self) -> list[str]:
        """Read everything that is stored, and return what is wrong with it; [] is well.

        O(messages). A SQLite file is checked as a whole, with all contexts in it: O(bytes).
        """
        with self._usable():
            damage = self._storage.damage() if isinstance(self._storage, SQLiteStorage) else []
            return [*damage, *problems(self._storage, self.id)]

    def flush(self) -> None:
        """Tell the memory of all closed pages, and let it do what is due. O(pages that it was not told of).

        What was appended is stored anyway when `append_turn` returns. The worker does the same, in moments in which
        the context is left alone; tests and jobs by the clock call this. With a model, it waits for all of the model's
        jobs that are due, each once; others may go on using the context meanwhile.

        Raises:
            StorageError: If the memory can't keep it; it is told again then.
        """
        with self._usable():
            self._remembering.flush()
            with suppress(StorageError):  # it is told: a store that can't note it costs time, nothing else
                self._parts.writer.write_state()
        self._remembering.look_after()

    def close(self) -> None:
        """Close the context, release its lock, and close its store if it opened it. Closing twice is fine."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        record = self._parts.window.record
        return f"<Context {record.id!r:.60}: {record.head:,} messages, page #{record.next_page - 1}>"

    def _let_go(self) -> None:
        release, self._release = self._release, None
        try:
            if (remembering := getattr(self, "_remembering", None)) is not None:
                remembering.close()
            if self._owned:
                self._storage.close()
        finally:
            if release is not None:
                release()

    def _usable(self) -> threading.RLock:
        """Return the lock that every call holds.

        Raises:
            HandlePoisoned: If the context was closed.
        """
        if self._closed:
            raise HandlePoisoned(f"the context {self.id!r:.60} is closed: open it again")
        return called(self._lock)

    def _tiers(self) -> MemoryBackend:
        """Return the memory that a context has if it was opened without one."""
        from ..memory.tiered_memory import TieredMemory

        window, storage = self._parts.window, self._storage
        return TieredMemory(
            storage.storage if isinstance(storage, Past) else storage,
            owner=window.record.owner,
            counter=window.count,
            read_only=self._wanted.read_only,
            chat=self._chat,
        )

    def _notify(self, event: Event) -> None:
        if self.on_event is not None:
            self.on_event(event)


@contextmanager
def kept_open(store: Store) -> Iterator[Storage]:
    """Give the storage that *store* stands for, and close it at the end if it was a path."""
    storage = _storage(store, read_only=False)
    try:
        yield storage
    finally:
        if not isinstance(store, Storage):
            storage.close()


def _storage(store: Any, *, read_only: bool) -> Storage:
    if isinstance(store, (str, os.PathLike)):
        return SQLiteStorage(store, read_only=read_only)
    if isinstance(store, type) or not isinstance(store, Storage):
        raise InvalidSetting("store", f"expected a path or a Storage, got {type(store).__name__}")
    return store
