"""What `memci erase` does: it shows what would be erased, asks, erases, and prints a receipt.

    $ memci erase agent.db --context alice --page 12
    $ memci erase agent.db --owner ada --yes

This module knows nothing of how a command line is written.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import typer

from ..context.context import Context
from ..errors import InvalidSetting
from ..history.erase import ErasureReceipt, erase
from ..messages import Message, call_name, text_of, tool_calls
from ..storage import Storage
from ..storage.protocol import ContextRecord, Erasure
from .output import Output
from .stores import choose, choose_context, open_store
from .tables import table

_ERASED = (
    ("contexts", "contexts, whole"),
    ("pages", "pages"),
    ("entries", "messages"),
    ("compactions", "earlier states of Contents Pages"),
    ("ops", "digests of named appends"),
)
_LONGEST = 100
"""characters that are shown of a message"""


@dataclass(frozen=True, slots=True)
class EraseOptions:
    """What is to be erased: one of a context (or a page of it, or an entry of that), an owner, and what is pending.

    Raises:
        InvalidSetting: If nothing is named, or too much.
    """

    context: str | None = None
    page: int | None = None
    entry: int | None = None
    """from 1"""
    owner: str | None = None
    scrub: bool = False
    """only finish an erasure that was left pending"""
    yes: bool = False
    """do not ask"""

    def __post_init__(self) -> None:
        if (self.context is not None) + (self.owner is not None) + self.scrub != 1:
            raise InvalidSetting("--context", "name one of --context, --owner and --scrub")
        if self.page is not None and self.context is None:
            raise InvalidSetting("--page", "belongs to one context: name it with --context")
        if self.entry is not None and self.page is None:
            raise InvalidSetting("--entry", "belongs to one page: name it with --page")


def run_erase(output: Output, path: str, options: EraseOptions) -> bool:
    """Erase what is named from the store at *path*, and return whether no byte of it is left there.

    Raises:
        InvalidSetting: If it is not there, or --json is given without --yes.
        PageNotFound: If there is no such page or entry.
        StorageError: If it could not be done.
    """
    if output.json and not options.yes and not options.scrub:
        raise InvalidSetting("--yes", "--json does not ask: add --yes to erase without a question")
    with open_store(path, write=True) as storage:
        if options.scrub:
            gone = storage.erase(Erasure())
            receipt = ErasureReceipt(0, 0, 0, 0, 0, "done" if gone.scrubbed else "pending")
        elif options.page is not None:
            context = choose_context(storage, path, options.context).id
            receipt = _erase_page(output, storage, context, options.page, options)
        else:
            records = _records(path, storage, options)
            if not options.yes:
                _show_contexts(output, records)
                _ask()
            receipt = erase(storage, context=options.context, owner=options.owner)
    _print_receipt(output, path, receipt)
    return receipt.physical == "done"


def _records(path: str, storage: Storage, options: EraseOptions) -> list[ContextRecord]:
    if options.context is not None:
        return [choose_context(storage, path, options.context)]
    records = storage.contexts()
    owners = list(dict.fromkeys(record.owner for record in records))
    owner = choose("--owner", options.owner, owners, what="context of", path=path)
    return [record for record in records if record.owner == owner]


def _erase_page(output: Output, storage: Storage, context: str, page: int, options: EraseOptions) -> ErasureReceipt:
    if not options.yes:
        with Context.view(storage, context) as seen:
            messages = seen.recall_page(page, options.entry)
        _show_messages(output, context, page, messages)
        if any(each.parent == context or (each.id == context and each.parent) for each in storage.contexts()):
            output.line("it is erased from every fork that shares it, too")
        _ask()
    with Context.open(storage, id=context) as opened:
        return opened.erase(page, options.entry)


def _show_contexts(output: Output, records: Sequence[ContextRecord]) -> None:
    output.line(f"{len(records):,} whole contexts would be erased:", "bold")
    for record in records:
        output.line(f"  {record.id} of {record.owner}: {record.head:,} messages on {record.next_page - 1:,} pages")


def _show_messages(output: Output, context: str, page: int, messages: Sequence[Message]) -> None:
    output.line(f"page #{page} of {context}: {len(messages):,} messages would be erased, and what quotes them:", "bold")
    for message in messages:
        text = " ".join(text_of(message).split()) or ", ".join(call_name(call) for call in tool_calls(message))
        output.line(f"  {message['role']}: {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''}")


def _ask() -> None:
    if not typer.confirm("Erase it for good?", err=True):
        sys.stderr.write("memci: nothing was erased\n")
        raise typer.Exit(1)


def _print_receipt(output: Output, path: str, receipt: ErasureReceipt) -> None:
    fields = asdict(receipt)
    if output.json:
        output.print_json({"store": path, **fields})
        return
    made = table("erased", "", figures=("",))
    for name, description in _ERASED:
        made.add_row(description, f"{fields[name]:,}")
    output.console.print(made)
    if receipt.physical == "done":
        output.line("✓ no byte of it is left in the store's own files", "green")
        output.line("backups, exports and a provider's cache are out of reach", "dim")
    else:
        output.line(
            "✗ pending: another process still reads an older state of the store; once it has ended: "
            "memci erase STORE --scrub",
            "yellow",
        )
