"""What `memci inspect` and `memci verify` print of a store.

    context  owner  messages  pages  turns  window  compactions
    alice    alice       812     96     95  32,000         3

This module knows nothing of how a command line is written.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from ..context.context import Context
from ..errors import CorruptRecord, InvalidSetting
from ..messages import text_of
from ..storage import Storage
from ..storage.protocol import ContextRecord, PageState
from .output import Output, visible
from .stores import chosen, existing, file_problems, problems_of, summary
from .tables import contents_of, contexts_table, pages_table, report_tables, turns_of


def inspected(output: Output, path: str, context: str | None, *, pages: bool) -> None:
    """Print the contexts in the store at *path*, or one *context* of it.

    Raises:
        InvalidSetting: If there is no such store, or no such context in it.
        StorageError: If it can't be read.
    """
    with existing(path) as storage:
        records = {record.id: record for record in storage.contexts()}
        if context is None:
            _print_contexts(output, path, list(records.values()))
        else:
            _print_context(output, storage, records[chosen(storage, path, context)], pages=pages)


def check_memory_options(*, memory: bool, pages: bool, owner: str | None, concept: str | None) -> None:
    """Check that options of the memory come with --memory, and others do not.

    Raises:
        InvalidSetting: If they do not fit together.
    """
    for name, value in (("--owner", owner), ("--concept", concept)):
        if value is not None and not memory:
            raise InvalidSetting(name, "belongs to the memory: add --memory")
    if memory and pages:
        raise InvalidSetting("--pages", "lists the pages of a context: leave out --memory")


def verified(output: Output, path: str) -> bool:
    """Verify every context in the store at *path*, print what is wrong, and return whether all is well.

    Raises:
        InvalidSetting: If there is no such store.
        StorageError: If it can't be read at all.
    """
    found: dict[str, list[str]] = {}
    with existing(path) as storage:
        damage = file_problems(path)
        records: list[ContextRecord] = []
        try:
            records = list(storage.contexts())
        except CorruptRecord as error:
            damage.append(str(error))
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("messages"),
        )
        with Progress(*columns, console=output.console, transient=True, disable=not output.live) as progress:
            task = progress.add_task("verify", total=sum(record.head for record in records))
            for record in records:
                progress.update(task, description=visible(record.id)[:30])
                found[record.id] = problems_of(storage, record.id, lambda: progress.advance(task))
    well = not damage and not any(found.values())
    if output.json:
        contexts = [{"id": each.id, "messages": each.head, "problems": found[each.id]} for each in records]
        output.print_json({"store": path, "well": well, "problems": damage, "contexts": contexts})
        return well
    for problem in damage:
        output.console.print(Text(f"✗ {visible(problem)}", style="red"), soft_wrap=True)
    for record in records:
        wrong = found[record.id]
        mark, style = ("✗", "red") if wrong else ("✓", "green")
        told = f"{len(wrong):,} problems" if wrong else "every one is there, and as it was written"
        output.console.print(
            Text(f"{mark} {visible(record.id)}: {record.head:,} messages, {told}", style=style), soft_wrap=True
        )
        for problem in wrong:
            output.console.print(Text(f"  {visible(problem)}"), soft_wrap=True)
    if not records and not damage:
        output.console.print(f"{visible(Path(path).name)} holds no contexts")
    return well


def _print_contexts(output: Output, path: str, records: list[ContextRecord]) -> None:
    rows = [summary(record) for record in records]
    if output.json:
        contexts = [
            {
                "id": record.id,
                "owner": record.owner,
                "messages": record.head,
                "pages": record.next_page - 1,
                "turns": turns_of(record),
                "window": window,
                "compactions": compactions,
                "parent": record.parent,
                "base": record.base,
            }
            for record, window, compactions in rows
        ]
        output.print_json({"store": path, "contexts": contexts})
    elif not rows:
        output.console.print(f"{visible(Path(path).name)} holds no contexts")
    else:
        output.console.print(contexts_table(rows))
        output.console.print("one of them: memci inspect STORE --context ID", style="dim")


def _print_context(output: Output, storage: Storage, record: ContextRecord, *, pages: bool) -> None:
    erased = [row.index for row in storage.pages(record.id, state=PageState.ERASED)]
    with Context.open(storage, id=record.id, read_only=True) as context:
        report = context.report()
        listed = list(context.pages()) if pages else None
        shown = context.render(strict=False)
    contents = contents_of(shown)
    if output.json:
        value: dict[str, Any] = {
            "id": record.id,
            "owner": record.owner,
            "messages": record.head,
            "turns": turns_of(record),
            "parent": record.parent,
            "base": record.base,
            "erased": erased,
            "report": asdict(report),
            "contents": [text_of(message) for message in contents],
            "pages": None if listed is None else [asdict(page) for page in listed],
        }
        output.print_json(value)
        return
    console = output.console
    told = f"{record.head:,} messages in {turns_of(record):,} turns, {report.compactions:,} compactions"
    console.print(Text(f"{visible(record.id)} of {visible(record.owner)}: {told}\n", style="bold"))
    console.print(report_tables(report, console.width))
    if record.parent is not None:
        console.print(
            Text(f"a fork of {visible(record.parent)}, whose first {record.base:,} messages it shares"), soft_wrap=True
        )
    if erased:
        console.print(Text(f"erased pages: {', '.join(f'#{index}' for index in erased)}"), soft_wrap=True)
    console.print(Text("\nthe contents, as the model sees them", style="bold"))
    for message in contents:
        console.print(Text(visible(text_of(message))), soft_wrap=True)
    if not contents:
        console.print("none: nothing was archived yet")
    if listed is not None:
        console.print(pages_table(listed))
