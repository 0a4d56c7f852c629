"""What `memci erase` does: it shows what would go, asks, erases, and says what went.

    $ memci erase agent.db --context alice --page 12
    $ memci erase agent.db --owner ada --yes

This module knows nothing of how a command line is written.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ..context.context import Context
from ..errors import InvalidSetting
from ..history.erase import ErasureReceipt, erase
from ..messages import Message, call_name, text_of, tool_calls
from ..storage import Storage
from ..storage.protocol import ContextRecord, Erasure
from .output import Output, visible
from .stores import chosen, writable

_PLACES = (
    ("contexts", "contexts, whole"),
    ("pages", "pages"),
    ("entries", "messages"),
    ("compactions", "earlier states of Contents Pages"),
    ("ops", "digests of named appends"),
)
_LONGEST = 100
"""characters that are shown of a message"""


def erased_from(
    output: Output,
    path: str,
    *,
    context: str | None,
    page: int | None,
    entry: int | None,
    owner: str | None,
    scrub: bool,
    yes: bool,
) -> bool:
    """Erase what is named from the store at *path*, and return whether no byte of it is left there.

    Raises:
        InvalidSetting: If nothing or too much is named, or it is not there.
        PageNotFound: If there is no such page or entry.
        StorageError: If it could not be done.
    """
    _check(context, page, entry, owner, scrub=scrub)
    if output.json and not yes and not scrub:
        raise InvalidSetting("--yes", "nobody is asked with --json: add --yes to erase without being asked")
    with writable(path) as storage:
        if scrub:
            gone = storage.erase(Erasure())
            receipt = ErasureReceipt(0, 0, 0, 0, 0, "done" if gone.scrubbed else "pending")
        elif page is not None:
            receipt = _page_erased(output, storage, chosen(storage, path, context), page, entry, yes=yes)
        else:
            records = _records(path, storage, context, owner)
            if not yes:
                _show_contexts(output, records)
                _ask()
            receipt = erase(storage, context=context, owner=owner)
    _print_receipt(output, path, receipt)
    return receipt.physical == "done"


def _check(context: str | None, page: int | None, entry: int | None, owner: str | None, *, scrub: bool) -> None:
    if (context is not None) + (owner is not None) + scrub != 1:
        raise InvalidSetting("--context", "name one of --context, --owner and --scrub")
    if page is not None and context is None:
        raise InvalidSetting("--page", "belongs to one context: name it with --context")
    if entry is not None and page is None:
        raise InvalidSetting("--entry", "belongs to one page: name it with --page")


def _records(path: str, storage: Storage, context: str | None, owner: str | None) -> list[ContextRecord]:
    if context is not None:
        context = chosen(storage, path, context)
    found = [each for each in storage.contexts() if each.id == context or (context is None and each.owner == owner)]
    if not found:
        raise InvalidSetting("--owner", f"{Path(path).name} has no context of {owner!r:.60}")
    return found


def _page_erased(
    output: Output, storage: Storage, context: str, page: int, entry: int | None, *, yes: bool
) -> ErasureReceipt:
    if not yes:
        with Context.open(storage, id=context, read_only=True) as seen:
            messages = seen.recall_page(page, entry)
        _show_messages(output, context, page, messages)
        if any(each.parent == context or (each.id == context and each.parent) for each in storage.contexts()):
            output.console.print("it goes from every fork that shares it, too")
        _ask()
    with Context.open(storage, id=context) as opened:
        return opened.erase(page, entry)


def _show_contexts(output: Output, records: Sequence[ContextRecord]) -> None:
    output.console.print(f"{len(records):,} contexts go, whole:", style="bold")
    for record in records:
        told = f"{record.head:,} messages on {record.next_page - 1:,} pages"
        output.console.print(Text(f"  {visible(record.id)} of {visible(record.owner)}: {told}"), soft_wrap=True)


def _show_messages(output: Output, context: str, page: int, messages: Sequence[Message]) -> None:
    told = f"page #{page} of {visible(context)}: {len(messages):,} messages go, and what quotes them:"
    output.console.print(Text(told, style="bold"))
    for message in messages:
        text = " ".join(text_of(message).split()) or ", ".join(call_name(call) for call in tool_calls(message))
        shown = text[:_LONGEST] + ("…" if len(text) > _LONGEST else "")
        output.console.print(Text(f"  {message['role']}: {visible(shown)}"), soft_wrap=True)


def _ask() -> None:
    if not typer.confirm("Erase it for good?", err=True):
        sys.stderr.write("memci: nothing was erased\n")
        raise typer.Exit(1)


def _print_receipt(output: Output, path: str, receipt: ErasureReceipt) -> None:
    done = receipt.physical == "done"
    if output.json:
        value: dict[str, Any] = {"store": path, **asdict(receipt)}
        output.print_json(value)
        return
    fields = asdict(receipt)
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    table.add_column("erased")
    table.add_column("", justify="right")
    for name, told in _PLACES:
        table.add_row(told, f"{fields[name]:,}")
    output.console.print(table)
    if done:
        output.console.print("✓ no byte of it is left in the store's own files", style="green")
        output.console.print("backups, exports and a provider's cache are out of reach", style="dim")
    else:
        told = "✗ pending: somebody still reads an older state of the store; once they have ended: memci erase --scrub"
        output.console.print(Text(told, style="yellow"), soft_wrap=True)
