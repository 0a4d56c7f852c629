"""Exporting: a context as lines of JSON, one at a time, as its store is read.

    header, entry …, page …, compaction …, op …, call …, end        one batch of rows in memory, whatever the size

If another writer changes the context meanwhile, the last line is not written. An import refuses lines without it.
"""

from collections.abc import Iterator

from ..errors import InvalidSetting, WriteConflict
from ..rows import ContextRecord
from ..storage import Storage
from ..storage.arguments import checked
from .export_format import Checksum, line_of, line_of_row
from .reader import Reader
from .row_stream import Row, detach, rows_of


@checked
def export_lines(storage: Storage, context_id: str, *, chat: bool = False, key: bytes | None = None) -> Iterator[str]:
    """Yield *context_id* as lines without their newlines (see `Context.export`).

    O(rows of the context), in bounded memory. As a *chat* only the messages, each as the JSON object that other
    programs use: the system prompt first, without undone and erased messages. A chat can't be signed with a *key*.

    Raises:
        InvalidSetting: If there is no such context, or the key can't sign.
        WriteConflict: Before the last line, if the context has changed since the first one: export it again.
        CorruptRecord: When a damaged row is reached.
    """
    checksum = Checksum(key)
    found = storage.load(context_id)
    if found is None:
        raise InvalidSetting("id", f"there is no context {context_id!r:.60} in this store")
    record = found[0]
    return _check_unchanged(
        storage, record, _chat_lines(storage, record) if chat else _row_lines(storage, record, checksum)
    )


def _check_unchanged(storage: Storage, record: ContextRecord, lines: Iterator[str]) -> Iterator[str]:
    """Yield *lines*, and the last one only if the context is still at the revision of *record*."""
    held: str | None = None
    for line in lines:
        if held is not None:
            yield held
        held = line
    if storage.revision(record.id) != record.revision:
        raise WriteConflict(f"context {record.id!r:.60} changed while it was exported: export it again")
    if held is not None:
        yield held


def _row_lines(storage: Storage, record: ContextRecord, checksum: Checksum) -> Iterator[str]:
    before: Row = record
    for row in rows_of(storage, detach(record)):
        line = line_of_row(row, before)
        checksum.add(line)
        yield line
        before = row
    yield checksum.end()


def _chat_lines(storage: Storage, record: ContextRecord) -> Iterator[str]:
    system = record.read_settings().get("system")
    if system is not None:
        yield line_of({"role": "system", "content": system})
    for message in Reader(storage, record.id).messages(record):
        yield line_of(message)
