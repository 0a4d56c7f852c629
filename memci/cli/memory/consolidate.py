"""What `memci consolidate` does: it tells memories what waits for them, and lets them do what is due.

    every context of the store ──▶ what waits is told ──▶ queues are handed over, what is warm is analysed
                                   with a model           its jobs are done, until none is due

It changes no context, so that nobody who is writing one is disturbed. A context that can't be told of is named, and the
others go on. This module knows nothing of how a command line is written.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import NamedTuple

from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ...context.memory_feed import Handover
from ...errors import InvalidSetting, MemciError, WriteConflict
from ...history.loader import Wanted, opened
from ...llm import Chat, Spent
from ...memory import TieredMemory
from ...memory.backend import Scope
from ...memory.inspect import Counts, counts, waiting
from ...storage import Storage
from ...storage.protocol import ContextRecord
from ..model_option import named_model
from ..output import Output, visible
from ..stores import chosen, writable
from .owners import chosen_owner

ATTEMPTS = 5
"""how often a context is told of that somebody goes on with meanwhile"""
BATCH = 100
"""pages that are told before a model does what they leave for it: more jobs than `jobs.MOST` do not wait"""
_ALL = 2**62
_SHOWN = ("queue", "episodes", "facts", "events", "concepts")


class Improvement(NamedTuple):
    """A model that makes better what is derived."""

    model: str
    base_url: str | None = None
    """default: that of the environment"""
    ceiling: int | None = None
    """tokens that it may cost for each owner in a UTC day"""


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one context's pages."""

    id: str
    owner: str
    told: int
    """pages that the memory was told of"""
    waiting: int
    """pages that it still has to be told of"""
    problem: str = ""
    """why, if it could not be told of all"""


def consolidated(
    output: Output,
    path: str,
    *,
    context: str | None,
    owner: str | None,
    rebuild: bool,
    by: Improvement | None = None,
) -> bool:
    """Tell the memories of the store at *path* what waits, print what moved, and return whether all was told.

    Args:
        output: Where it is printed.
        path: The store.
        context: Only this context.
        owner: Only the contexts of this owner.
        rebuild: Whether what is derived is forgotten first, and made anew from the pages.
        by: What makes better what is derived; None: nothing.

    Raises:
        InvalidSetting: If there is no such store, context or owner.
        StorageError: If the store or its memory can't be used at all.
    """
    if rebuild and context is not None:
        raise InvalidSetting("--rebuild", "makes the whole memory of an owner anew: name the --owner")
    with _chat(by) as chat, writable(path) as storage:
        records = _records(storage, path, context, owner)
        names = dict.fromkeys(each.owner for each in records)
        memories = {name: TieredMemory(storage, owner=name, chat=chat, ceiling=by and by.ceiling) for name in names}
        try:
            before = {name: counts(memory) for name, memory in memories.items()}
            if rebuild:
                for memory in memories.values():
                    memory.erase(Scope())
            told = _all_told(output, storage, records, memories)
            after = {name: counts(memory) for name, memory in memories.items()}
            left = sum(memory.work().waiting for memory in memories.values())
        finally:
            for memory in memories.values():
                memory.close()
    spent = None if chat is None else chat.ledger.total
    silent = spent is not None and spent.failed > 0 and left > 0
    well = not silent and not any(each.problem for each in told)
    if output.json:
        moved = [{"owner": name, "before": asdict(was), "after": asdict(after[name])} for name, was in before.items()]
        contexts = [asdict(each) for each in told]
        model = None if spent is None else {**asdict(spent), "waiting": left}
        value = {"store": path, "rebuilt": rebuild, "well": well, "contexts": contexts, "owners": moved, "model": model}
        output.print_json(value)
    else:
        _print(output, told, before, after, rebuilt=rebuild)
        if spent is not None and told:
            _print_model(output, spent, left, silent=silent)
    return well


@contextmanager
def _chat(by: Improvement | None) -> Iterator[Chat | None]:
    if by is None:
        yield None
        return
    with named_model(by.model, by.base_url) as chat:
        yield chat


def _records(storage: Storage, path: str, context: str | None, owner: str | None) -> list[ContextRecord]:
    records = list(storage.contexts())
    if context is not None:
        chosen_owner(storage, path, context=context, owner=owner)
        wanted = chosen(storage, path, context)
        return [each for each in records if each.id == wanted]
    if owner is not None:
        name = chosen_owner(storage, path, context=None, owner=owner)
        return [each for each in records if each.owner == name]
    return records


def _all_told(
    output: Output, storage: Storage, records: Sequence[ContextRecord], memories: dict[str, TieredMemory]
) -> list[Told]:
    waits = {each.id: waiting(memories[each.owner], each.id) for each in records}
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
    )
    told = []
    with Progress(*columns, console=output.console, transient=True, disable=not output.live) as progress:
        task = progress.add_task("consolidate", total=sum(waits.values()), unit="pages")
        jobs = _Jobs(progress)
        for record in records:
            progress.update(task, description=visible(record.id)[:30])
            memory = memories[record.owner]
            problem = _told(storage, record.id, memory, jobs)
            left = waiting(memory, record.id)
            told.append(Told(record.id, record.owner, max(0, waits[record.id] - left), left, problem))
            progress.advance(task, waits[record.id])
    return told


class _Jobs:
    """Shows how many jobs a model has done, and lets it do them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("model", total=0, unit="jobs", visible=False)
        self._done = 0

    def __call__(self, memory: TieredMemory) -> None:
        """Let *memory* do what is due, with its model if it has one, until nothing is due."""
        memory.maintain()
        due = memory.has_model and memory.work().waiting > 0
        while due:
            due = memory.run_job()
            self._done += 1
            total = self._done + memory.work().waiting
            self._progress.update(self._task, visible=True, completed=self._done, total=total)
        if memory.has_model:
            memory.maintain()


def _told(storage: Storage, context: str, memory: TieredMemory, look_after: Callable[[TieredMemory], None]) -> str:
    """Tell *memory* of the pages of *context*, and return what went wrong, "" if nothing did.

    `Context.flush` would note in the context what was told: whoever writes it would lose it to a job by the clock.
    """
    try:
        for _ in range(ATTEMPTS):
            window = opened(storage, Wanted(context, read_only=True, searchable=True)).window
            handover = Handover(storage, window, memory)
            while handover.tell(BATCH if memory.has_model else _ALL) and memory.has_model:
                look_after(memory)
            if storage.revision(context) == window.record.revision:  # else a page may have been undone meanwhile
                break
        look_after(memory)
    except WriteConflict as error:
        return f"somebody else goes on with it: {error}"
    except MemciError as error:
        return str(error)
    return ""


def _print_model(output: Output, spent: Spent, left: int, *, silent: bool) -> None:
    """Print what the model cost, and what still waits for it."""
    line = f"the model: {spent.calls:,} calls, {spent.prompt:,} + {spent.completion:,} tokens"
    if not left:
        output.console.print(line, style="dim")
        return
    why = "it did not answer" if silent else "the ceiling is reached, or they are tried later"
    style = "red" if silent else "dim"
    output.console.print(Text(f"{line}; {left:,} jobs wait: {why}", style=style), soft_wrap=True)


def _print(
    output: Output, told: Sequence[Told], before: dict[str, Counts], after: dict[str, Counts], *, rebuilt: bool
) -> None:
    if not told:
        output.console.print("there are no contexts: nothing waits")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("owner", overflow="fold", min_width=5)
    for name in ("told", "moved", *_SHOWN):
        table.add_column(name, justify="right", no_wrap=True)
    for owner, was in before.items():
        pages = sum(each.told for each in told if each.owner == owner)
        is_now = after[owner]
        moved = is_now.mid + is_now.evicted - (0 if rebuilt else was.mid + was.evicted)
        changes = zip(_figures(was), _figures(is_now), strict=True)
        table.add_row(Text(visible(owner)), f"{pages:,}", f"{moved:,}", *(_changed(old, new) for old, new in changes))
    output.console.print(table)
    if rebuilt:
        output.console.print("how often something was found is counted anew: pages do not tell it", style="dim")
    for each in told:
        if each.problem:
            line = f"✗ {visible(each.id)}: {visible(' '.join(each.problem.split()))}; {each.waiting:,} pages wait"
            output.console.print(Text(line, style="red"), soft_wrap=True)


def _figures(own: Counts) -> tuple[int, ...]:
    return own.short, own.episodes, own.user_facts + own.assistant_facts, own.events, own.concepts


def _changed(old: int, new: int) -> Text:
    """Return a figure as it is now, and what became of it."""
    text = Text(f"{new:,}")
    return text if new == old else text.append(f" {new - old:+,}", style="green" if new > old else "yellow")
