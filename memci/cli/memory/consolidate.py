"""`memci consolidate`: feed waiting pages to the memories, and run the steps that are due.
It changes no context, so no writer of one is disturbed. A context that can't be read is named, and the others go on.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from rich.text import Text
from typer import Option

from ...errors import CorruptRecord, InvalidSetting, MemciError, WriteConflict
from ...rows import ContextRecord
from ...storage import Storage
from ..options import CONTEXT, BaseUrl, Int, Store, Str, named_model, tokens
from ..printer import Part, Printer, Result
from ..stores import choose_context, choose_contexts, open_store
from ..tables import table
from .overview import COUNTED, column_figures

if TYPE_CHECKING:
    from ...llm import Spent
    from ...memory import TieredMemory
    from ...memory.inspect import Counts

ATTEMPTS = 5  # tries to feed a context that another process changes meanwhile: five changes in a row are unlikely
BATCH = 100  # pages fed at once before a model works on them: a queue holds at most `jobs.MOST` jobs
_ALL = 2**62  # more pages than a context can have


@dataclass(frozen=True, slots=True)
class FedContext:
    """The result of feeding one context's pages to its memory."""

    id: str
    owner: str
    fed: int  # pages that the memory took in
    waiting: int  # pages that still wait for it
    problem: str = ""  # why pages still wait; empty if all were fed


def run_consolidate(
    store: Store,
    *,
    context: Annotated[Str, Option(*CONTEXT, metavar="ID", help="Only this context; default: all.")] = None,
    owner: Annotated[Str, Option(metavar="NAME", help="Only the contexts of this owner.")] = None,
    rebuild: Annotated[
        bool, Option("--rebuild", help="Delete the derived memory, and derive it again from the pages.")
    ] = False,
    model: Annotated[Str, Option(metavar="NAME", help="A model that improves what is derived; default: none.")] = None,
    base_url: BaseUrl = None,
    ceiling: Annotated[Int, tokens(help="Tokens that the model may use for an owner in a UTC day.")] = None,
    printer: Printer,
) -> Result:
    """Feed memories the pages that wait for them: for cron. They do what is due; no context is changed."""
    from ...memory import TieredMemory
    from ...memory.backend import Scope
    from ...memory.inspect import Counts, counts

    for option, value in (("--base-url", base_url), ("--ceiling", ceiling)):
        if model is None and value is not None:
            raise InvalidSetting(option, "is for a model: name it by --model")
    if rebuild and context is not None:
        raise InvalidSetting("--rebuild", "derives the whole memory of an owner again: name the --owner")
    with ExitStack() as stack:
        chat = None if model is None else stack.enter_context(named_model(model, base_url))
        storage = stack.enter_context(open_store(store, write=True))
        one = None if context is None else choose_context(storage, store, context, owner)
        records = [one] if one else choose_contexts(storage, store, owner)
        memories = {
            name: stack.enter_context(closing(TieredMemory(storage, owner=name, chat=chat, ceiling=ceiling)))
            for name in dict.fromkeys(each.owner for each in records)
        }
        before = dict.fromkeys(memories, Counts())
        for name, memory in memories.items():
            rules = None
            with suppress(*([CorruptRecord] if rebuild else [])):  # what is damaged is what is made again
                before[name], rules = counts(memory), memory.rules
            if rebuild:
                memory.erase(Scope())
                memory.session.given = rules  # they are settings, and nothing that is derived
        fed = [*_feed_all(printer, storage, records, memories)]
        after = {name: counts(memory) for name, memory in memories.items()}
        jobs = sum(memory.work().waiting for memory in memories.values())
    spent = None if chat is None else chat.ledger.total
    silent = spent is not None and spent.failed > 0 and jobs > 0
    well = not silent and not any(each.problem for each in fed)
    facts = {
        "store": store,
        "rebuilt": rebuild,
        "well": well,
        "contexts": fed,
        "owners": [{"owner": name, "before": was, "after": after[name]} for name, was in before.items()],
        "model": None if spent is None else {**asdict(spent), "waiting": jobs},
    }
    view = [*_show(fed, before, after, rebuilt=rebuild)]
    if fed and spent is not None:
        view.append(_show_model(spent, jobs, silent=silent))
    return Result(facts, view, well)


def _feed_all(
    printer: Printer, storage: Storage, records: Sequence[ContextRecord], memories: dict[str, "TieredMemory"]
) -> Iterator[FedContext]:
    from ...memory.inspect import waiting

    waits = {each.id: waiting(memories[each.owner], each.id) for each in records}
    with printer.progress("pages", waits) as done:
        for id_, owner in ((each.id, each.owner) for each in records):
            done(id_, 0)
            problem = feed(storage, id_, memories[owner])
            left = waiting(memories[owner], id_)
            yield FedContext(id_, owner, max(0, waits[id_] - left), left, problem)
            done(id_, waits[id_])


def _finish(memory: "TieredMemory") -> None:
    """Run the steps of *memory* that are due, and the jobs of its model, until none is left."""
    memory.maintain(time.time())  # what was fed just now may be silent for long
    while memory.has_model and memory.work().waiting > 0 and memory.run_job():
        pass
    if memory.has_model:
        memory.maintain(time.time())


def feed(storage: Storage, context: str, memory: "TieredMemory") -> str:
    """Feed *memory* the pages of *context*, and return the error as text, "" if there was none.

    `Context.flush` would commit a cursor to the context, and its writer would get a `WriteConflict` for it.
    """
    from ...context.memory_feed import MemoryFeed
    from ...history.loader import OpenRequest, load_context

    try:
        for _ in range(ATTEMPTS):
            window = load_context(storage, OpenRequest(context, read_only=True, searchable=True, exact=True)).window
            pages = MemoryFeed(storage, window, memory)
            pages.retry()
            while pages.send(BATCH if memory.has_model else _ALL) and memory.has_model:
                _finish(memory)
            if storage.revision(context) == window.record.revision:  # else a page may have been undone meanwhile
                break
        _finish(memory)
    except WriteConflict as error:
        return f"another process writes it: {error}"
    except MemciError as error:
        return str(error)
    return ""


def _show_model(spent: "Spent", jobs: int, *, silent: bool) -> Part:
    """Return a line with the cost of the model and the number of *jobs* that still wait for it."""
    line = f"the model: {spent.calls:,} calls, {spent.prompt:,} + {spent.completion:,} tokens"
    if jobs:
        why = "it did not answer" if silent else "the ceiling is reached, or they are tried later"
        line += f"; {jobs:,} jobs wait: {why}"
    return line, "red" if silent else "dim"


def _show(
    fed: Sequence[FedContext], before: dict[str, "Counts"], after: dict[str, "Counts"], *, rebuilt: bool
) -> Iterator[Part]:
    if not fed:
        yield "there are no contexts: nothing waits"
        return
    rows = []
    for owner, was in before.items():
        pages = sum(each.fed for each in fed if each.owner == owner)
        now = after[owner]
        moved = now.mid + now.evicted - (0 if rebuilt else was.mid + was.evicted)
        changes = zip(column_figures(was), column_figures(now), strict=True)
        rows.append((owner, pages, moved, *(_change(old, new) for old, new in changes)))
    figures = ("fed", "moved", *COUNTED)
    yield table("owner", *figures, rows=rows, figures=figures)
    if rebuilt:
        yield "how often something was found counts from 0 again: pages do not hold it", "dim"
    for each in fed:
        if each.problem:
            yield f"✗ {each.id}: {' '.join(each.problem.split())}; {each.waiting:,} pages wait", "red"


def _change(old: int, new: int) -> Text:
    """Return the *new* figure and its difference from the *old* one."""
    text = Text(f"{new:,}")
    return text if new == old else text.append(f" {new - old:+,}", style="green" if new > old else "yellow")
