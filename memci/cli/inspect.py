"""What `memci inspect` and `memci verify` print of a store.

context  owner  messages  pages  turns  window  compacted
alice    alice       812     96     95  32,000          3

This module knows nothing of how a store keeps what is printed.
"""

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from typer import Option

from ..errors import CorruptRecord, InvalidSetting, KeyMissing
from ..messages import text_of
from ..rows import ContextRecord, PageState
from ..storage import Storage
from ..storage.audit import AuditedStorage, mark
from ..storage.opening import is_url, name_of
from ..storage.protocol import CheckedStorage
from .app import CONTEXT, Json, Store, Str
from .output import Output, many, terminal
from .show import titled
from .stores import choose_context, choose_contexts, open_store, window_and_compactions, witnessed
from .tables import pages_table, report_tables, table


def run_inspect(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Show this context: report, contents.")] = None,
    pages: Annotated[bool, Option("--pages", help="List all pages of a context, too.")] = False,
    memory: Annotated[bool, Option("--memory", help="Show what the memory holds, tier by tier.")] = False,
    owner: Annotated[Str, Option(metavar="NAME", help="Whose context, or with --memory: whose memory.")] = None,
    audit: Annotated[bool, Option("--audit", help="Show what was erased, imported, exported, and when.")] = False,
    json: Json = False,
) -> None:
    """List the contexts of a store, or show one, or its memory. Changes nothing."""
    output = terminal(json=json)
    if memory and pages:
        raise InvalidSetting("--pages", "lists the pages of a context: leave out --memory")
    if audit and (memory or context is not None or owner is not None):
        raise InvalidSetting("--audit", "shows the log of the whole store: leave out --context, --owner and --memory")
    with open_store(store) as storage:
        if audit:
            _print_audit(output, store, storage)
        elif memory:
            from .memory.inspect import inspect_memory

            inspect_memory(output, storage, store, context=context, owner=owner)
        elif context is None and not pages:
            _print_contexts(output, store, choose_contexts(storage, store, owner))
        else:
            _print_context(output, storage, choose_context(storage, store, context, owner), pages=pages)


def run_verify(store: Store, *, json: Json = False) -> bool:
    """Read everything in a store, and say what is wrong with it. Changes nothing."""
    from ..history.verify import problems

    output = terminal(json=json)
    found: dict[str, list[str]] = {}
    locked: dict[str, str] = {}
    damage: list[str] = []
    records: list[ContextRecord] = []
    try:
        with open_store(store) as storage:
            damage += storage.damage() if isinstance(storage, CheckedStorage) else []
            records += storage.contexts()
            with output.progress("messages", {record.id: record.head for record in records}) as done:
                for id_ in [record.id for record in records]:
                    found[id_] = []
                    try:
                        found[id_] += problems(storage, id_, on_entry=partial(done, id_, 1))
                    except KeyMissing as error:
                        locked[id_] = str(error)
    except CorruptRecord as error:
        damage.append(str(error))
    damaged = bool(damage) or any(found.values())
    well = not damaged and not locked
    if output.json:
        contexts = [
            {"id": each.id, "messages": each.head, "problems": found[each.id], "not_checked": locked.get(each.id)}
            for each in records
        ]
        output.print_json({"store": store, "well": well, "problems": damage, "contexts": contexts})
        return well
    for problem in damage:
        output.line(f"✗ {problem}", "red")
    for record in records:
        if record.id in locked:
            output.proof(False, f"{record.id}: not checked: {locked[record.id]}")
            continue
        wrong = found[record.id]
        result = many(len(wrong), "problem") if wrong else "every one is there, and as it was written"
        output.proof(not wrong, f"{record.id}: {many(record.head, 'message')}, {result}")
        for problem in wrong:
            output.line(f"  {problem}")
    if damaged:
        output.line(f"what can be read goes to a new store: memci salvage {name_of(store)} NEW")
    elif not records:
        output.line(f"{name_of(store)} holds no contexts")
    elif witnessed(store) is None and not is_url(store):
        output.line("no witness is beside it, so that the loss of whole commits can't be seen", "dim")
    return well


def _print_audit(output: Output, path: str, storage: Storage) -> None:
    lines = list(storage.audit_log) if isinstance(storage, AuditedStorage) else []
    names = {mark(name): name for record in storage.contexts() for name in (record.id, record.owner)}
    lines = [{key: names.get(value, value) for key, value in line.items()} for line in lines]
    if output.json:
        output.print_json({"store": path, "audit": lines})
    elif not lines:
        output.line(f"{name_of(path)}: nothing was erased, imported or exported yet")
    else:
        rows = (
            (str(at), str(action), " ".join(f"{name}={fact}" for name, fact in facts))
            for (_, at), (_, action), *facts in (line.items() for line in lines)
        )
        output.console.print(table("at", "action", "what", rows=rows, fills="what"))


def _print_contexts(output: Output, path: str, records: list[ContextRecord]) -> None:
    contexts = [{**_figures(each), "pages": each.next_page - 1, **window_and_compactions(each)} for each in records]
    if output.json:
        output.print_json({"store": path, "contexts": contexts})
    elif not contexts:
        output.line(f"{name_of(path)} holds no contexts")
    else:
        figures = ("messages", "pages", "turns", "window", "compacted")
        forks = ("fork of",) if any(each["parent"] is not None for each in contexts) else ()
        rows = (
            (
                *(each[name] for name in ("id", "owner", *figures[:-1], "compactions")),
                *(f"{each['parent']} at {each['base']:,}" if each["parent"] is not None else "" for _ in forks),
            )
            for each in contexts
        )
        output.console.print(table("context", "owner", *figures, *forks, rows=rows, figures=figures))
        for error in [each["not_shown"] for each in contexts if "not_shown" in each][:1]:
            output.line(error, "yellow")
        output.line("one of them: memci inspect STORE --context ID", "dim")


def _print_context(output: Output, storage: Storage, record: ContextRecord, *, pages: bool) -> None:
    from ..context.context import Context

    erased = [row.index for row in storage.pages(record.id, state=PageState.ERASED)]
    with Context.view(storage, record.id, owner=record.owner) as context:
        report = context.report()
        listed = [titled(context, page) for page in context.pages()] if pages else None
        shown = [text_of(message) for message in context.render(strict=False)]
        contents = [text for text in shown if text.startswith("<memci:contents ")]
    known = _figures(record)
    if output.json:
        value: dict[str, Any] = {
            **known,
            "erased": erased,
            "report": asdict(report),
            "contents": contents,
            "pages": None if listed is None else [asdict(page) for page in listed],
        }
        output.print_json(value)
        return
    figures = (
        f"{many(record.head, 'message')} in {many(known['turns'], 'turn')}, {many(report.compactions, 'compaction')}"
    )
    output.line(f"{record.id} of {record.owner}: {figures}\n", "bold")
    output.console.print(report_tables(report, output.console.width))
    if record.parent is not None:
        output.line(f"a fork of {record.parent}, whose first {record.base:,} messages it shares")
    if erased:
        output.line(f"erased pages: {', '.join(f'#{index}' for index in erased)}")
    output.line("\nthe contents, as the model sees them", "bold")
    for text in contents or ["none: nothing was archived yet"]:
        output.line(text)
    if listed is not None:
        output.console.print(pages_table(listed))


def _figures(record: ContextRecord) -> dict[str, Any]:
    return {
        "id": record.id,
        "owner": record.owner,
        "messages": record.head,
        "turns": record.turn + (record.open_page is not None),  # the open one, too
        "parent": record.parent,
        "base": record.base,
    }
