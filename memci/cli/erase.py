"""What `memci erase` does: it shows what would be erased, asks, erases, and prints a receipt.

$ memci erase agent.db --context alice --page 12
$ memci erase agent.db --owner ada --yes

This module knows nothing of how a store erases.
"""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ..errors import InvalidSetting
from ..messages import call_name, text_of, tool_calls
from ..rows import ContextRecord
from ..storage import Storage
from .app import CONTEXT, Int, Json, Store, Str
from .output import Output, many, terminal
from .stores import choose_context, choose_contexts, open_store
from .tables import table

if TYPE_CHECKING:
    from ..history.erase import ErasureReceipt

_ERASED = (
    ("contexts", "contexts, whole"),
    ("pages", "pages"),
    ("entries", "messages"),
    ("compactions", "earlier states of Contents Pages"),
    ("ops", "digests of named appends"),
)
_LONGEST = 100
"""characters that are shown of a message"""


def run_erase(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="This context.")] = None,
    page: Annotated[Int, Option(metavar="N", help="Only this page of it.")] = None,
    entry: Annotated[Int, Option(metavar="M", help="Only this message of the page, from 1.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="All contexts of this owner, or the named one of it.")] = None,
    scrub: Annotated[bool, Option("--scrub", help="Only finish an erasure that was left pending.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    json: Json = False,
) -> bool:
    """Erase a page, a context or all of an owner, for good.

    The bytes are removed from the store's files, and from every fork that shares them.
    """
    from ..context.context import Context
    from ..history.erase import erase, finish_erasures

    output = terminal(json=json)
    if (context is not None or owner is not None) == scrub:
        raise InvalidSetting("--context", "name --context, --owner or --scrub")
    if page is not None and context is None:
        raise InvalidSetting("--page", "belongs to one context: name it with --context")
    if entry is not None and page is None:
        raise InvalidSetting("--entry", "belongs to one page: name it with --page")
    if output.json and not yes and not scrub:
        raise InvalidSetting("--yes", "--json does not ask: add --yes to erase without a question")
    with open_store(store, write=True) as storage:
        if scrub:
            receipt = finish_erasures(storage)
        elif page is not None:
            found = choose_context(storage, store, context, owner)
            if not yes:
                _show_messages(output, storage, found, page, entry)
                _ask()
            with Context.open(storage, found.id, owner=found.owner) as opened:
                receipt = opened.erase(page, entry)
        else:
            one = None if context is None else choose_context(storage, store, context, owner)
            records = [one] if one else choose_contexts(storage, store, owner)
            if not yes:
                output.line(f"to be erased whole: {many(len(records), 'context')}", "bold")
                for each in records:
                    counts = f"{many(each.head, 'message')} on {many(each.next_page - 1, 'page')}"
                    output.line(f"  {each.id} of {each.owner}: {counts}")
                _ask()
            [name, whose] = [one.id, one.owner] if one else [None, owner]
            receipt = erase(storage, context=name, owner=whose)
    done = receipt.physical == receipt.memory == "done"
    _print_receipt(output, store, receipt, done=done)
    return done


def _show_messages(output: Output, storage: Storage, context: ContextRecord, page: int, entry: int | None) -> None:
    from ..context.context import Context

    with Context.view(storage, context.id, owner=context.owner) as seen:
        messages = seen.recall_page(page, entry)
    output.line(
        f"page #{page} of {context.id}: {many(len(messages), 'message')} would be erased, and what quotes them:", "bold"
    )
    for message in messages:
        text = " ".join(text_of(message).split()) or ", ".join(call_name(call) for call in tool_calls(message))
        output.line(f"  {message['role']}: {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''}")
    if storage.forks(context.id) or context.parent:
        output.line("it is erased from every fork that shares it, too")


def _ask() -> None:
    if not typer.confirm("Erase it for good?", err=True):
        sys.stderr.write("memci: nothing was erased\n")
        raise typer.Exit(1)


def _print_receipt(output: Output, path: str, receipt: "ErasureReceipt", *, done: bool) -> None:
    fields = asdict(receipt)
    if output.json:
        output.print_json({"store": path, **fields})
        return
    rows = ((description, fields[name]) for name, description in _ERASED)
    output.console.print(table("erased", "", rows=rows, figures=("",)))
    if done:
        output.line("✓ no byte of it is left in the store's own files", "green")
        output.line("backups, exports and a provider's cache are out of reach", "dim")
    else:
        output.line(
            "✗ pending: another process still reads an older state of the store, no space was left, or the file has "
            "more than 512 MB and is not written again at once; finish it with memci erase STORE --scrub",
            "yellow",
        )
