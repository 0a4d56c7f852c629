"""What the tests of the tiers share: raw pages in a store without a context, and a look into the tables. It tests nothing."""

from collections.abc import Callable

import apsw

from memci.memory.backend import PageRecord
from memci.memory.store import MemoryStore
from memci.memory.tiered import TieredMemory
from memci.storage import Storage
from memci.storage.codec import ERASED, digest, encode
from memci.storage.protocol import ContextRecord, EntryRow, PageRow, Place, Transition


def keeping(storage: Storage) -> Callable[[PageRecord], None]:
    """Return what stores a raw page as a context would have, another text in place of the first."""

    def keep(page: PageRecord) -> None:
        loaded = storage.load(page.context)
        record = loaded[0] if loaded else ContextRecord(page.context, page.context, "{}", "{}", revision=0)
        head, said = record.head, dict(page.entries)
        entries = tuple(
            _entry(head + ordinal - 1, said.get(ordinal), page, ordinal)
            for ordinal in range(1, max(said, default=0) + 1)
        )
        end = head + len(entries)
        after = record._replace(
            head=end, next_page=max(record.next_page, page.index + 1), revision=record.revision + 1
        )
        row = PageRow(page.index, head, end, page.turn, Place.UNLOADED)
        storage.commit(Transition(head, after, entries, (row,)))

    return keep


def _entry(seq: int, message: dict | None, page: PageRecord, ordinal: int) -> EntryRow:
    codec, body = (ERASED, b"user") if message is None else encode(message)[:2]
    quotes = (1, None) if ordinal in page.quotes else None
    at = None if page.at is None else _iso(page.at)
    return EntryRow(seq, codec, body, digest(codec, body), 7, quotes=quotes, at=at)


def _iso(at: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(at, UTC).isoformat()


def rows(memory: TieredMemory, statement: str, *values: object) -> list[tuple]:
    """Return rows of the tables of *memory*."""
    return memory._store.read_rows(statement, *values)


def connection(memory: TieredMemory) -> apsw.Connection:
    """Return the connection of *memory*, which has been used."""
    made = memory._store._connection
    assert made is not None
    return made


def cold(storage: Storage) -> MemoryStore:
    """Forget what is in RAM of all owners, as a process that dies does."""
    store = MemoryStore.beside(storage)
    store.close()
    store.owners.clear()
    return store
