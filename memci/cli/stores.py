"""Stores, as `memci inspect` and `memci verify` read them: nothing is made, nothing is changed.

    with existing(path) as storage:          an error if there is no such file, instead of a new store
        Context.open(storage, id="alice")    what opening would write stays in memory

This module knows nothing of the terminal.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..errors import CorruptRecord, InvalidSetting
from ..storage import SQLiteStorage, Storage
from ..storage.protocol import ContextRecord, EntryRow, OpRow, PageRow, Place, Transition
from ..verifying import problems


class Reading:
    """A store that is only read: a commit changes nothing.

    Args:
        storage: The store itself.
        seen: Called for every entry that is read.
    """

    def __init__(self, storage: Storage, seen: Callable[[], None] | None = None) -> None:
        self._storage = storage
        self._seen = seen

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return what is stored of *context*."""
        return self._storage.load(context)

    def commit(self, transition: Transition) -> OpRow | None:  # noqa: ARG002 -- nothing of it is wanted
        """Change nothing: what a reader reckons is not stored."""
        return None

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, place: Place | None = None
    ) -> Iterator[PageRow]:
        """Yield pages, as the store does."""
        return self._storage.pages(context, first=first, last=last, place=place)

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries, as the store does."""
        for entry in self._storage.entries(context, first, end, containing=containing):
            if self._seen is not None:
                self._seen()
            yield entry

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context."""
        return self._storage.contexts()

    def close(self) -> None:
        """Close the store itself."""
        self._storage.close()


@contextmanager
def existing(path: Path) -> Iterator[SQLiteStorage]:
    """Yield the store at *path*, which is not made if it does not exist.

    Raises:
        InvalidSetting: If there is no store there.
        StorageError: If it can't be opened.
    """
    try:
        if not path.exists():
            raise InvalidSetting(str(path), "there is no such file: check the path; nothing was made")
        if not path.is_file():
            raise InvalidSetting(str(path), "is a folder, not a store: name a file in it")
        if not path.stat().st_size:
            raise InvalidSetting(str(path), "is empty, not a store; it was left as it is")
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidSetting):
            raise
        raise InvalidSetting(str(path), f"can't be read: {error}") from None
    storage = SQLiteStorage(path)
    try:
        yield storage
    finally:
        storage.close()


def summary(record: ContextRecord) -> tuple[ContextRecord, int, int]:
    """Return *record* with the context's window in tokens and the number of its editions."""
    settings, state = json.loads(record.settings), json.loads(record.state)
    return record, settings["settings"]["window"], state["editions"]


def problems_of(storage: Storage, context: str, seen: Callable[[], None]) -> list[str]:
    """Return what is wrong with *context*; *seen* is called for every entry that is read. O(entries)."""
    found: list[str] = []
    try:
        found.extend(problems(Reading(storage, seen), context))
    except CorruptRecord as error:
        found.append(str(error))
    return found
