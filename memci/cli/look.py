"""Looking into a store: `memci inspect`, `memci show` and `memci files`. Looking does not count as use."""

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ..errors import InvalidSetting
from ..messages import text_of
from ..storage import Storage
from ..storage.opening import name_of
from ..storage.protocol import ContextRecord, PageState
from .files import new_file
from .options import CONTEXT, Int, Store, Str, needs_extra
from .printer import Part, Result, many, many_messages, total
from .stores import choose_context, choose_contexts, open_store
from .tables import ReportTables, message_lines, pages_table, table, with_title

if TYPE_CHECKING:
    from ..serve.page_files import Written

_WATCH_SECONDS = 1.0  # pause of a watcher between two looks: short enough for a person who waits for a page


def run_inspect(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Show this context: report, contents.")] = None,
    pages: Annotated[bool, Option("--pages", help="List all pages of a context, too.")] = False,
    memory: Annotated[bool, Option("--memory", help="Show what the memory holds, tier by tier.")] = False,
    owner: Annotated[Str, Option(metavar="NAME", help="Owner of the context; with --memory, of the memory.")] = None,
    audit: Annotated[bool, Option("--audit", help="Show what was erased, imported, exported, and when.")] = False,
) -> Result:
    """List the contexts of a store, or show one, or its memory. Changes nothing."""
    if memory and pages:
        raise InvalidSetting("--pages", "lists the pages of a context: leave out --memory")
    if audit and (memory or context is not None or owner is not None):
        raise InvalidSetting("--audit", "shows the log of the whole store: leave out --context, --owner and --memory")
    with open_store(store) as storage:
        if audit:
            return _show_audit(store, storage)
        if memory:
            from .memory.overview import inspect_memory

            return inspect_memory(storage, store, context=context, owner=owner)
        if context is None and not pages:
            return _list_contexts(store, storage, choose_contexts(storage, store, owner))
        return _show_context(storage, choose_context(storage, store, context, owner), pages=pages)


def run_show(
    store: Store,
    *,
    page: Annotated[Int, Option("--page", "-p", metavar="N", help="Print the page of this number.")] = None,
    target: Annotated[Str, Option("-o", "--output", metavar="FILE", help="Write a new file of HTML.")] = None,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Of this context; default: the only one.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Of this owner's context.")] = None,
    turn: Annotated[list[int] | None, Option(min=0, metavar="N", help="With -o: the request of this turn.")] = None,
    memory: Annotated[bool, Option("--memory", help="With -o: include the whole memory of its owner.")] = False,
) -> Result:
    """Print a page, or write a conversation as one HTML file. Each message is as it was appended. Changes nothing."""
    if (page is None) == (target is None):
        raise InvalidSetting("show", "say which page to print, by --page N, or which file to write, by -o FILE")
    with open_store(store) as storage:
        record = choose_context(storage, store, context, owner=owner)
        if target is not None:
            return _write_html(storage, record, target, turns=turn or (), memory=memory)
        assert page is not None, "it was checked above"
        return _show_page(storage, record, page)


def run_files(
    store: Store,
    folder: Annotated[str, Argument(metavar="FOLDER", help="A new folder, or one that this command has written.")],
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Only this context.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    watch: Annotated[bool, Option("--watch", help="Go on until Ctrl-C: write what changes, as it changes.")] = False,
) -> Iterator[Result]:
    """Write the pages as files that coding agents search. The store is only read."""
    from ..serve.page_files import PageFiles

    with open_store(store) as storage:
        if context is not None:
            context = choose_context(storage, store, context, owner).id
        elif not watch:
            choose_contexts(storage, store, owner)  # an error if the owner has none; with --watch they may come
        with closing(PageFiles(storage, folder, owner=owner, context=context)) as files, suppress(KeyboardInterrupt):
            if not watch:
                written = files.update()
                yield _show_written(folder, written, well=not written.problems)
                return
            for written in files.updates(partial(time.sleep, _WATCH_SECONDS)):
                yield _show_written(folder, written)


def _show_written(folder: str, done: "Written", *, well: bool = True) -> Result:
    figures = f"{many(done.contexts, 'context')}, {many(done.pages, 'page')}"
    line = f"{folder}: {figures}, {done.written:,} written, {done.removed:,} removed"
    problems = [(f"✗ {problem}", "red") for problem in done.problems]
    return Result({"folder": folder, **done._asdict()}, [line, *problems], well)


def _show_audit(path: str, storage: Storage) -> Result:
    from ..serve.stored_context import audit_lines

    if not (lines := audit_lines(storage)):
        return Result({"store": path, "audit": []}, [f"{name_of(path)}: nothing was erased, imported or exported yet"])
    rows = (
        (str(at), str(action), " ".join(f"{name}={fact}" for name, fact in facts))
        for (_, at), (_, action), *facts in (line.items() for line in lines)
    )
    return Result({"store": path, "audit": lines}, [table("at", "action", "what", rows=rows, fills="what")])


def _list_contexts(path: str, storage: Storage, records: list[ContextRecord]) -> Result:
    from ..history.listing import count_erased
    from ..serve.stored_context import figures_of

    contexts = [figures_of(each) | {"erased_messages": count_erased(storage, each)} for each in records]
    facts = {"store": path, "contexts": contexts}
    if not contexts:
        return Result(facts, [f"{name_of(path)} holds no contexts"])
    figures = ("messages", "pages", "turns", "window", "compacted")
    forks = ("fork of",) if any(each["parent"] is not None for each in contexts) else ()
    rows = (
        (
            *(each[name] for name in ("id", "owner", *figures[:-1], "compactions")),
            *(f"{each['parent']} at {each['base']:,}" if each["parent"] is not None else "" for _ in forks),
        )
        for each in contexts
    )
    gone = total(each["erased_messages"] for each in contexts)
    erased = [many_messages(sum(each["messages"] for each in contexts), gone)] if gone != 0 else []
    problems = [(each["not_shown"], "yellow") for each in contexts if "not_shown" in each][:1]
    contexts_table = table("context", "owner", *figures, *forks, rows=rows, figures=figures)
    return Result(facts, [contexts_table, *erased, *problems, ("one of them: memci inspect STORE --context ID", "dim")])


def _show_context(storage: Storage, record: ContextRecord, *, pages: bool) -> Result:
    from ..context.context import Context
    from ..history.listing import count_erased
    from ..serve.stored_context import figures_of

    erased = [row.index for row in storage.pages(record.id, state=PageState.ERASED)]
    with Context.view(storage, record.id, owner=record.owner) as context:
        report = context.report()
        listed = [with_title(context, page) for page in context.pages()] if pages else None
        shown = [text_of(message) for message in context.render(strict=False)]
    contents = [text for text in shown if text.startswith("<memci:contents ")]
    known = figures_of(record) | {"erased_messages": count_erased(storage, record)}
    figures = f"{many_messages(record.head, known['erased_messages'])} in {many(known['turns'], 'turn')}"
    view: list[Part] = [
        (f"{record.id} of {record.owner}: {figures}, {many(report.compactions, 'compaction')}\n", "bold"),
        ReportTables(report),
    ]
    if record.parent is not None:
        view.append(f"a fork of {record.parent}, whose first {record.base:,} messages it shares")
    if erased:
        view.append(f"erased pages: {', '.join(f'#{index}' for index in erased)}")
    view += [("\nthe contents, as the model sees them", "bold"), *(contents or ["none: nothing was archived yet"])]
    if listed is not None:
        view.append(pages_table(listed))
    return Result({**known, "erased": erased, "report": report, "contents": contents, "pages": listed}, view)


def _show_page(storage: Storage, record: ContextRecord, page: int) -> Result:
    from ..context.context import Context

    with Context.view(storage, record.id, owner=record.owner) as seen:
        messages = seen.recall_page(page)
        info = with_title(seen, next(each for each in seen.pages() if each.index == page))
    head = (f"{record.id} #{page}, {info.where}: {info.title or 'no text'}\n", "bold")
    return Result({"context": record.id, "page": info, "messages": messages}, [head, *message_lines(messages)])


def _write_html(storage: Storage, record: ContextRecord, target: str, *, turns: Iterable[int], memory: bool) -> Result:
    with needs_extra("ui"):
        from ..serve.inspector.standalone import standalone
    with new_file(target) as stream:
        made = standalone(storage, record.id, turns=turns, memory=memory, at=time.time())
        stream.write(made.html)
    figures = {"pages": made.pages, "left_out": made.left_out, "bytes": len(made.html)}
    older = f" ({made.left_out:,} older ones are left out)" if made.left_out else ""
    line = f"{target}: {record.id}, {many(made.pages, 'page')}{older}, {len(made.html):,} bytes"
    return Result({"file": target, "context": record.id, **figures}, [line])
