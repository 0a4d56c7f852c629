"""What `memci export` and `memci import` do: contexts as lines of JSON, to keep or to take elsewhere.

    $ memci export agent.db --context alice -o alice.jsonl
    $ memci import other.db alice.jsonl --id alice-2

A file is read twice: first to check all of it, then to store it. This module knows nothing of the format of a line.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from typer import Argument, Option

from ..errors import InvalidSetting
from ..storage import Storage
from ..storage.audit import audit
from ..storage.names import new
from .app import CONTEXT, WINDOW, Int, Json, NewStore, Store, Str, tokens
from .output import Output, many, new_file, terminal
from .source import Source
from .stores import NAMED, choose_context, choose_contexts, open_store

if TYPE_CHECKING:
    from ..history.plain_chat import PlainChat


def run_export(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="This context; default: the only one.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Of this owner's contexts.")] = None,
    everything: Annotated[bool, Option("--all", help="All contexts, one after another.")] = False,
    chat: Annotated[bool, Option("--chat", help="Only the messages, a line each, for other programs.")] = False,
    target: Annotated[Str, Option("-o", "--output", metavar="FILE", help="A new file; default: the screen.")] = None,
    key: Annotated[Str, Option(metavar="FILE", help="Sign it with the secret bytes in this file.")] = None,
    json: Json = False,
) -> None:
    """Write contexts as lines of JSON. They hold all that is stored, for memci import. Changes nothing."""
    output = terminal(json=json)
    if everything and (chat or context is not None):
        raise InvalidSetting("--all", "takes every context, as memci import reads them: leave --chat and --context out")
    if output.json and target is None:
        raise InvalidSetting("--json", "the export itself goes to standard output: name a file with -o")
    if chat and key is not None:
        raise InvalidSetting("--key", "a chat can't be signed: leave --chat or --key out")
    secret = _key(key)
    with open_store(store) as storage:
        one = None if everything else choose_context(storage, store, context, owner)
        records = [one] if one else choose_contexts(storage, store, owner)
        ids = [record.id for record in records]
        if target is None:
            stream = typer.get_binary_stream("stdout")
            _write(stream, storage, ids, chat=chat, key=secret)
            stream.flush()
        else:
            write_export(output, storage, ids, target, chat=chat, key=secret)


def write_export(
    output: Output, storage: Storage, ids: Sequence[str], target: str, *, chat: bool = False, key: bytes | None = None
) -> None:
    """Write the contexts *ids* to the new file *target*, and print a line about it. O(messages)."""
    with new_file(target) as stream:
        lines = _write(stream, storage, ids, chat=chat, key=key)
    size = Path(target).stat().st_size
    if output.json:
        output.print_json({"file": target, "contexts": list(ids), "lines": lines, "bytes": size})
    else:
        names = ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "") or "no contexts"
        output.line(f"{target}: {names}, {many(lines, 'line')}, {size:,} bytes")


def run_import(
    store: NewStore,
    file: Annotated[str, Argument(metavar="FILE", help="An export of memci, or a chat in JSON; - is standard input.")],
    *,
    id: Annotated[Str, Option("--id", metavar="NEW", help="The context's name here.")] = None,  # noqa: A002
    window: Annotated[Int, tokens(*WINDOW, help="For a chat: the context length.")] = None,
    model: Annotated[Str, Option(metavar="NAME", help="For a chat: counts tokens as this one.")] = None,
    key: Annotated[Str, Option(metavar="FILE", help="It must be signed with the secret bytes in this file.")] = None,
    json: Json = False,
) -> None:
    """Read an export back, or the chat of another program. A context is stored whole, or not at all."""
    from ..history.import_ import committed, transitions

    output = terminal(json=json)
    source, secret = Source(file), _key(key)
    lines = source.lines
    if secret is None and not source.is_export():
        lines = _lines_of_chat(source, id, window, model).__iter__
    elif window is not None or model is not None:
        raise InvalidSetting("--window", "an export of memci has its settings: --window and --model are for chats")
    found = [(each.record.id, each.record.head, each.record.owner) for each in transitions(lines(), key=secret)]
    if id is not None and len(found) > 1:
        raise InvalidSetting("--id", f"{source.name} has {len(found):,} contexts: leave --id out")
    names = [name if id is None else id for name, *_ in found]
    if len(set(names)) < len(names):
        raise InvalidSetting("file", "it has two contexts of one name: import each by itself, with --id")
    with open_store(store, write=True, make=True) as storage:
        for name, (_, _, owner) in zip(names, found, strict=True):
            new(storage, name, owner)
        names = [committed(storage, each, id=id) for each in transitions(lines(), key=secret)]
    if output.json:
        contexts = [{"id": name, "messages": messages} for name, (_, messages, _) in zip(names, found, strict=True)]
        output.print_json({"store": store, "contexts": contexts})
        return
    for name, (_, messages, _) in zip(names, found, strict=True):
        output.line(f"{name}: {many(messages, 'message')} imported")


def _key(file: str | None) -> bytes | None:
    """Return the bytes of *file*, None if there is none."""
    try:
        return None if file is None else Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidSetting("--key", f"{file!r} can't be read: {error}") from None


def _write(stream: BinaryIO, storage: Storage, ids: Iterable[str], *, chat: bool, key: bytes | None) -> int:
    from ..history.export import exported

    lines = 0
    for each in ids:
        audit(storage, "export", context=each)
        for line in exported(storage, each, chat=chat, key=key):
            stream.write(line.encode() + b"\n")
            lines += 1
    return lines


def _lines_of_chat(source: Source, id: str | None, window: int | None, model: str | None) -> list[str]:  # noqa: A002
    """Return the lines of an export of the chat in *source*."""
    from ..context.context import Context
    from ..history.plain_chat import exported_chat, read_chat

    read = read_chat(source.lines(), source.name)
    if id is None:
        raise InvalidSetting("--id", "a chat has no name: give it one, with --id")
    if window is None:
        raise InvalidSetting("--window", "a chat does not say how large its window is: give it, with --window")

    def open_context(storage: Storage, chat: "PlainChat") -> Context:
        return Context.open(storage, id, system=chat.system, window=window, model=model, clock=None)

    return list(exported_chat(read, id, open_context))
