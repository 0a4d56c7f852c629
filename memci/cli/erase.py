"""Changes that can't be undone: `memci erase` and `memci rotate`.

`erase` lists what it would remove, asks, erases, and prints a receipt.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..errors import Erased, InvalidSetting
from ..messages import call_name, text_of, tool_calls
from ..rows import ContextRecord
from ..storage import Storage
from .options import CONTEXT, Int, Store, Str
from .printer import Part, Printer, Result, many
from .stores import choose_context, choose_contexts, open_store
from .tables import table

if TYPE_CHECKING:
    from ..history.retention import Outdated

_ERASED = (
    ("contexts", "contexts, whole"),
    ("pages", "pages"),
    ("entries", "messages"),
    ("compactions", "earlier states of Contents Pages"),
    ("ops", "digests of named appends"),
)
_PAGES = 8  # pages of a context that are named at most: they fit on a line
_LONGEST = 100  # characters of a message that are shown: about one line


def run_erase(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="This context.")] = None,
    page: Annotated[Int, Option(metavar="N", help="Only this page of it.")] = None,
    entry: Annotated[Int, Option(metavar="M", help="Only this message of the page, from 1.")] = None,
    owner: Annotated[
        Str, Option(metavar="NAME", help="All contexts of this owner; with --context, only that one.")
    ] = None,
    before: Annotated[
        Str, Option(metavar="DATE", help="Pages whose newest message is older; with --owner, only of that one.")
    ] = None,
    scrub: Annotated[bool, Option("--scrub", help="Only finish an erasure that was left pending.")] = False,
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
    printer: Printer,
) -> Result:
    """Erase a page, a context or all of an owner, for good.

    The bytes are removed from the store's files, and from every fork that shares them.
    """
    from ..context.context import Context
    from ..history.erase import erase, finish_erasures
    from ..history.retention import erase_outdated, find_outdated
    from ..memory.forgetting import remembers

    if before is not None and (scrub or context is not None):
        raise InvalidSetting("--before", "is for all contexts, or those of --owner: leave the other options out")
    if before is None and (context is not None or owner is not None) == scrub:
        raise InvalidSetting("--context", "name --context, --owner, --before or --scrub")
    if page is not None and context is None:
        raise InvalidSetting("--page", "belongs to one context: name it with --context")
    if entry is not None and page is None:
        raise InvalidSetting("--entry", "belongs to one page: name it with --page")
    if printer.json and not yes and not scrub:
        raise InvalidSetting("--yes", "--json does not ask: add --yes to erase without a question")
    outdated: list[Outdated] = []
    with open_store(store, write=True) as storage:
        if scrub:
            receipts = [finish_erasures(storage)]
        elif before is not None:
            choose_contexts(storage, store, owner)
            outdated = list(find_outdated(storage, before, owner))
            _ask(printer, _list_outdated(outdated), yes=yes)
            receipts = erase_outdated(storage, outdated)
        elif page is not None:
            found = choose_context(storage, store, context, owner)
            with suppress(Erased):  # then its receipt is asked for
                _ask(printer, _list_messages(storage, found, page, entry), yes=yes)
            with Context.open(storage, found.id, owner=found.owner) as opened:
                receipts = [opened.erase(page, entry)]
        else:
            try:
                one = None if context is None else choose_context(storage, store, context, owner)
                chosen = [one] if one else choose_contexts(storage, store, owner)
            except InvalidSetting as error:  # what was erased before is not there, but its receipt
                if context is None and remembers(storage, owner or ""):
                    _ask(printer, iter([(f"to be erased: the memory of {owner}, who has no context", "bold")]), yes=yes)
                try:
                    receipts = [erase(storage, context=context, owner=owner)]
                except InvalidSetting:
                    raise error from None
            else:
                _ask(printer, _list_contexts(chosen), yes=yes)
                receipts = [erase(storage, context=one.id, owner=one.owner) if one else erase(storage, owner=owner)]
    facts = {name: sum(getattr(each, name) for each in receipts) for name, _ in _ERASED}
    pending = {kind: any(getattr(each, kind) == "pending" for each in receipts) for kind in ("physical", "memory")}
    done = not any(pending.values())
    left = {kind: "pending" if late else "done" for kind, late in pending.items()}
    kept = (
        {} if before is None else {"untimed": {each.context.id: [*each.untimed] for each in outdated if each.untimed}}
    )
    view = [*_show_receipt(facts, done=done), *_list_untimed(outdated)]
    return Result({"store": store, **facts, **left, **kept}, view, done)


def _list_outdated(found: "list[Outdated]") -> Iterator[Part]:
    yield f"to be erased: {many(sum(len(each.pages) for each in found), 'page')}", "bold"
    for each in found:
        if each.pages:
            yield f"  {each.context.id} of {each.context.owner}: {many(len(each.pages), 'page')}: {_few(each.pages)}"
    yield from _list_untimed(found)


def _list_untimed(found: "list[Outdated]") -> Iterator[Part]:
    for each in found:
        if each.untimed:
            yield f"  kept, since no message has a time: {each.context.id}: {_few(each.untimed)}", "dim"


def _few(pages: Sequence[int]) -> str:
    return ", ".join(f"#{page}" for page in pages[:_PAGES]) + (", …" if pages[_PAGES:] else "")


def run_rotate(store: Store) -> Result:
    """Change the key of an encrypted store.

    All data keys are wrapped with the first key of the environment. No message is encrypted again.
    """
    from ..history.rotation import rotate

    with open_store(store, write=True) as storage:
        count = rotate(storage)
    line = f"{many(count, 'data key')} wrapped with the new key" if count else "all data keys have the new key"
    return Result({"store": store, "wrapped": count}, [line])


def _list_messages(storage: Storage, context: ContextRecord, page: int, entry: int | None) -> Iterator[Part]:
    from ..history.erase import find_messages

    messages = find_messages(storage, context, page, entry)
    erased = f"{many(len(messages), 'message')} would be erased, and what quotes them"
    yield f"page #{page} of {context.id}: {erased}:", "bold"
    for message in messages:
        text = " ".join(text_of(message).split()) or ", ".join(call_name(call) for call in tool_calls(message))
        yield f"  {message['role']}: {text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''}"
    if storage.forks(context.id) or context.parent:
        yield "it is erased from every fork that shares it, too"


def _list_contexts(records: list[ContextRecord]) -> Iterator[Part]:
    yield f"to be erased whole: {many(len(records), 'context')}", "bold"
    for each in records:
        counts = f"{many(each.head, 'message')} on {many(each.next_page - 1, 'page')}"
        yield f"  {each.id} of {each.owner}: {counts}"


def _ask(printer: Printer, question: Iterator[Part], *, yes: bool) -> None:
    if yes:
        return
    printer.show(*question)
    if not typer.confirm("Erase it for good?", err=True):
        typer.echo("memci: nothing was erased", err=True)
        raise typer.Exit(1)


def _show_receipt(removed: Mapping[str, Any], *, done: bool) -> Iterator[Part]:
    rows = ((description, removed[name]) for name, description in _ERASED)
    some = any(removed.values())
    yield table("erased", "", rows=rows, figures=("",)) if some else "nothing was there to erase"
    if done:
        yield f"✓ no byte of {'it' if some else 'what was erased before'} is left in the store's own files", "green"
        yield "backups, exports and a provider's cache are out of reach", "dim"
    else:
        why = "another process still reads an older state of the store, no space was left, or the file has more than "
        way_out = "512 MB and is not written again at once; finish it with memci erase STORE --scrub"
        yield f"✗ pending: {why}{way_out}", "yellow"
