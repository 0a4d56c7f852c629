"""Contexts that leave a store or enter it: `memci export`, `memci import` and `memci copy`.

An imported file is read twice: first to check all of it, then to store it.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer
from typer import Argument, Option

from ..errors import InvalidSetting
from ..storage import Storage
from ..storage.audit import audit
from ..storage.names import new
from ..storage.opening import is_url, name_of
from .files import Source, new_file, read_key
from .options import CONTEXT, WINDOW, Int, NewStore, Store, Str, Target, tokens
from .printer import Part, Printer, Result, many, many_messages
from .stores import NAMED, check_path, choose_context, choose_contexts, open_store

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
    printer: Printer,
) -> Result:
    """Write contexts as lines of JSON. They hold all that is stored, for memci import. Changes nothing."""
    if everything and (chat or context is not None):
        raise InvalidSetting("--all", "takes every context, as memci import reads them: leave --chat and --context out")
    if printer.json and target is None:
        raise InvalidSetting("--json", "the export itself goes to standard output: name a file with -o")
    if chat and key is not None:
        raise InvalidSetting("--key", "a chat can't be signed: leave --chat or --key out")
    secret = read_key(key)
    with open_store(store) as storage:
        one = None if everything else choose_context(storage, store, context, owner)
        ids = [record.id for record in ([one] if one else choose_contexts(storage, store, owner))]
        if target is not None:
            return write_export(storage, ids, target, chat=chat, key=secret)
        stream = typer.get_binary_stream("stdout")
        _write(stream, storage, ids, chat=chat, key=secret)
        stream.flush()
        return Result({})


def write_export(
    storage: Storage, ids: Sequence[str], target: str, *, chat: bool = False, key: bytes | None = None
) -> Result:
    """Write the contexts *ids* to the new file *target*. O(messages)."""
    with new_file(target) as stream:
        lines = _write(stream, storage, ids, chat=chat, key=key)
    size = Path(target).stat().st_size
    names = ", ".join(ids[:NAMED]) + (", …" if len(ids) > NAMED else "") or "no contexts"
    line = f"{target}: {names}, {many(lines, 'line')}, {size:,} bytes"
    return Result({"file": target, "contexts": list(ids), "lines": lines, "bytes": size}, [line])


def run_import(
    store: NewStore,
    file: Annotated[str, Argument(metavar="FILE", help="An export of memci, or a chat in JSON; - is standard input.")],
    *,
    id: Annotated[Str, Option("--id", metavar="NEW", help="The context's name here.")] = None,  # noqa: A002
    window: Annotated[Int, tokens(*WINDOW, help="For a chat: the context length.")] = None,
    model: Annotated[Str, Option(metavar="NAME", help="For a chat: count tokens for this model.")] = None,
    key: Annotated[
        Str, Option(metavar="FILE", help="Refuse it unless it is signed with the secret bytes in this file.")
    ] = None,
) -> Result:
    """Read an export back, or the chat of another program. A context is stored whole, or not at all."""
    from ..history.import_ import commit_import, read_transitions

    source, secret = Source(file), read_key(key)
    lines = source.lines
    if secret is None and not source.is_export():
        lines = _chat_as_export(source, id, window, model).__iter__
    elif window is not None or model is not None:
        raise InvalidSetting("--window", "an export of memci has its settings: --window and --model are for chats")
    found = [each.record for each in read_transitions(lines(), key=secret)]
    if id is not None and len(found) > 1:
        raise InvalidSetting("--id", f"{source.name} has {len(found):,} contexts: leave --id out")
    names = [each.id if id is None else id for each in found]
    if len(set(names)) < len(names):
        raise InvalidSetting("file", "it has two contexts of one name: import each by itself, with --id")
    with open_store(store, write=True, make=True) as storage:
        for name, record in zip(names, found, strict=True):
            new(storage, name, record.owner)
        names = [commit_import(storage, each, id=id) for each in read_transitions(lines(), key=secret)]
    contexts = [{"id": name, "messages": each.head} for name, each in zip(names, found, strict=True)]
    view = [f"{name}: {many(each.head, 'message')} imported" for name, each in zip(names, found, strict=True)]
    return Result({"store": store, "contexts": contexts}, view)


def run_copy(
    source: Store,
    target: Target,
    *,
    decrypt: Annotated[bool, Option("--decrypt", help="Do not encrypt the copy, although there is a key.")] = False,
    printer: Printer,
) -> Result:
    """Copy all contexts of a store to another one, exactly. After an interruption, run it again."""
    from ..history.copying import copy_contexts

    if source == target:
        raise InvalidSetting("target", "name another store than the one that is copied")
    made = there = messages = 0
    renamed: dict[str, str] = {}
    with open_store(source) as storage, open_store(target, write=True, make=True, plain=decrypt) as into:
        sizes = {record.id: record.head for record in storage.contexts()}
        with printer.progress("messages", sizes) as done:
            for each in copy_contexts(storage, into):
                made, there = made + each.new, there + (not each.new)
                messages += each.messages if each.new else 0
                renamed |= {each.id: each.stored} if each.stored != each.id else {}
                done(each.id, each.messages)
    already = f", {many(there, 'context')} there already" if there else ""
    view = [f"{many(made, 'context')} with {many(messages, 'message')} copied{already}"]
    view += [
        f"  {name} is {stored} there, where another owner has a context {name}" for name, stored in renamed.items()
    ]
    figures = {"copied": made, "there": there, "messages": messages, "renamed": renamed}
    return Result({"source": source, "target": target, **figures}, view)


def run_backup(
    store: Store,
    target: Annotated[str, Argument(metavar="NEW", help="The place of the copy: it must be free.")],
    *,
    erasures_of: Annotated[
        Str, Option("--apply-erasures", metavar="FROM", help="STORE is an older copy: erase what FROM erased since.")
    ] = None,
) -> Result:
    """Copy a store that is in use, whole and verified. It is a file or a folder; its memory is copied, too."""
    from ..history.backup import backup

    if not is_url(store):
        check_path(store, filled=True)
    if erasures_of is not None and not is_url(erasures_of):
        check_path(erasures_of, filled=True)
    made = backup(store, target, erasures_of=erasures_of)
    figures = f"{many(made.contexts, 'context')} with {many_messages(made.messages, made.erased)}"
    facts = {"store": store, "target": target, **made._asdict()}
    view: list[Part] = [f"{target}: {figures}, copied and verified"]
    view += [
        (f"! {name}: still there: {name_of(erasures_of or '')} neither has it nor says that it was erased", "yellow")
        for name in made.unknown
    ]
    return Result(facts, view)


def _write(stream: BinaryIO, storage: Storage, ids: Iterable[str], *, chat: bool, key: bytes | None) -> int:
    from ..history.export import export_lines

    lines = 0
    for each in ids:
        audit(storage, "export", context=each)
        for line in export_lines(storage, each, chat=chat, key=key):
            stream.write(line.encode() + b"\n")
            lines += 1
    return lines


def _chat_as_export(source: Source, id: str | None, window: int | None, model: str | None) -> list[str]:  # noqa: A002
    """Return the chat in *source* as the lines of an export."""
    from ..context.context import Context
    from ..history.plain_chat import export_chat, read_chat

    read = read_chat(source.lines(), source.name)
    if id is None:
        raise InvalidSetting("--id", "a chat has no name: give it one, with --id")
    if window is None:
        raise InvalidSetting("--window", "a chat does not say how large its window is: give it, with --window")

    def open_context(storage: Storage, chat: "PlainChat") -> Callable[..., object]:
        return Context.open(storage, id, system=chat.system, window=window, model=model, clock=None).append_turn

    return list(export_chat(read, id, open_context))
