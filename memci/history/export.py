"""Exporting: a context as lines of JSON, one at a time, as its store is read.

    header, entry …, page …, compaction …, op …, call …, end        one batch of rows in memory, whatever the size

If another writer changes the context meanwhile, the last line is not written: an import refuses lines without it.
This module knows nothing of where the lines go.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from ..errors import CorruptRecord, InvalidSetting, WriteConflict
from ..rows import ContextRecord, EntryRow, PageRow
from ..storage import Storage
from ..storage.codec import ORJSON
from .export_format import FORMAT, Checksum, embedded, line_of
from .reader import Reader


def exported(storage: Storage, context_id: str, *, chat: bool = False, key: bytes | None = None) -> Iterator[str]:
    """Yield *context_id* as lines without their newlines (see `Context.export`).

    O(rows of the context), in bounded memory. As a *chat* only the messages, each as the JSON object that other
    programs use: the system prompt first, without what was undone or erased; it can't be signed with a *key*.

    Raises:
        InvalidSetting: If there is no such context, or the key is none.
        WriteConflict: Before the last line, if the context has changed since the first one: export it again.
        CorruptRecord: When a row is reached that is not what was written.
    """
    checksum = Checksum(key)
    found = storage.load(context_id)
    if found is None:
        raise InvalidSetting("id", f"there is no context {context_id!r:.60} in this store")
    record = found[0]
    return _unchanged(storage, record, _chat(storage, record) if chat else _native(storage, record, checksum))


def _unchanged(storage: Storage, record: ContextRecord, lines: Iterator[str]) -> Iterator[str]:
    """Yield *lines*; the last one only if the context is still at the revision of *record*."""
    held: str | None = None
    for line in lines:
        if held is not None:
            yield held
        held = line
    if storage.revision(record.id) != record.revision:
        raise WriteConflict(f"context {record.id!r:.60} changed while it was exported: export it again")
    if held is not None:
        yield held


def _native(storage: Storage, record: ContextRecord, checksum: Checksum) -> Iterator[str]:
    counts = Counter[str]()
    for kind, line in _rows(storage, record, FORMAT):
        counts[kind] += 1
        checksum.add(line)
        yield line
    ends = {
        "entries": counts["entry"],
        "pages": counts["page"],
        "compactions": counts["compaction"],
        "ops": counts["op"],
    }
    for kind, wanted in (("entries", record.head), ("pages", record.next_page - 1)):
        if ends[kind] != wanted:
            raise CorruptRecord(record.id, -1, f"{ends[kind]} {kind} are there, not {wanted}: memci verify says which")
    if counts["call"]:
        ends["calls"] = counts["call"]
    yield line_of({"kind": "end", **ends, **checksum.fields()})


def _rows(storage: Storage, record: ContextRecord, version: int) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of every line before the last one."""
    context = record.id
    compacted = next(storage.compactions(context), None) is not None
    called = max((call.revision for call in storage.calls(context)), default=1)
    # what has neither is imported as a new context
    yield "context", _header(record._replace(revision=max(record.revision if compacted else 1, called)), version)
    for entry in storage.entries(context, 0, record.head):
        yield "entry", _entry(entry)
    for page in storage.pages(context, last=record.next_page - 1):
        yield "page", _page(page)
    for compaction in storage.compactions(context):
        fields = {**compaction._asdict(), "text": embedded("text", compaction.text)}
        yield "compaction", line_of({"kind": "compaction", **fields})
    for op in storage.ops(context):
        yield "op", line_of({"kind": "op", **op._asdict(), "digest": op.digest.hex()})
    tools = None
    for call in storage.calls(context):
        fields = call._asdict()
        if call.tools == tools:
            del fields["tools"]
        tools = call.tools
        yield "call", line_of({"kind": "call", **fields})


def _header(record: ContextRecord, version: int) -> str:
    fields = record._asdict()
    del fields["parent"], fields["base"]
    fields["settings"], fields["state"] = embedded("settings", record.settings), embedded("state", record.state)
    return line_of({"memci": version, "kind": "context", **fields})


def _entry(entry: EntryRow) -> str:
    fields: dict[str, Any] = {"kind": "entry", "seq": entry.seq, "digest": entry.digest.hex(), "tokens": entry.tokens}
    if entry.clip:
        fields["clip"] = entry.clip
    if entry.quotes is not None:
        fields["quotes"] = entry.quotes
    if entry.at is not None:
        fields["at"] = entry.at
    if entry.codec == ORJSON and orjson.dumps(orjson.loads(entry.body)) == entry.body:
        return f'{line_of(fields)[:-1]},"message":{entry.body.decode()}}}'
    return line_of({**fields, "codec": entry.codec, "body": b64encode(entry.body).decode()})


def _page(page: PageRow) -> str:
    fields = {"place" if name == "state" else name: value for name, value in page._asdict().items()}
    return line_of({"kind": "page", **fields, "place": page.state.name.lower()})


def _chat(storage: Storage, record: ContextRecord) -> Iterator[str]:
    system = record.read_settings().get("system")
    if system is not None:
        yield line_of({"role": "system", "content": system})
    for message in Reader(storage, record.id).messages(record):
        yield line_of(message)
