"""What `memci consolidate` does: it tells memories what waits for them, and lets them do what is due.

    every context of the store ──▶ what waits is told ──▶ queues are handed over, what is warm is analysed

It changes no context, so that nobody who is writing one is disturbed. A context that can't be told of is named, and the
others go on. This module knows nothing of how a command line is written.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from ..errors import InvalidSetting, LeaseLost, MemciError
from ..handover import Handover
from ..memory import TieredMemory
from ..memory.backend import Scope
from ..memory.overview import Counts, counts, waiting
from ..opening import Wanted, opened
from ..storage import Storage
from ..storage.protocol import ContextRecord
from .memory_owners import chosen_owner
from .output import Output, visible
from .stores import chosen, writable

ATTEMPTS = 5
"""how often a context is told of that somebody goes on with meanwhile"""
_ALL = 2**62
_SHOWN = ("queue", "episodes", "facts", "events", "concepts")


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


def consolidated(output: Output, path: str, *, context: str | None, owner: str | None, rebuild: bool) -> bool:
    """Tell the memories of the store at *path* what waits, print what moved, and return whether all was told.

    Args:
        output: Where it is printed.
        path: The store.
        context: Only this context.
        owner: Only the contexts of this owner.
        rebuild: Whether what is derived is forgotten first, and made anew from the pages.

    Raises:
        InvalidSetting: If there is no such store, context or owner.
        StorageError: If the store or its memory can't be used at all.
    """
    if rebuild and context is not None:
        raise InvalidSetting("--rebuild", "makes the whole memory of an owner anew: name the --owner")
    with writable(path) as storage:
        records = _records(storage, path, context, owner)
        memories = {name: TieredMemory(storage, owner=name) for name in dict.fromkeys(each.owner for each in records)}
        try:
            before = {name: counts(memory) for name, memory in memories.items()}
            if rebuild:
                for memory in memories.values():
                    memory.erase(Scope())
            told = _all_told(output, storage, records, memories)
            after = {name: counts(memory) for name, memory in memories.items()}
        finally:
            for memory in memories.values():
                memory.close()
    well = not any(each.problem for each in told)
    if output.json:
        moved = [{"owner": name, "before": asdict(was), "after": asdict(after[name])} for name, was in before.items()]
        contexts = [asdict(each) for each in told]
        output.print_json({"store": path, "rebuilt": rebuild, "well": well, "contexts": contexts, "owners": moved})
    else:
        _print(output, told, before, after, rebuilt=rebuild)
    return well


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
        TextColumn("pages"),
    )
    told = []
    with Progress(*columns, console=output.console, transient=True, disable=not output.live) as progress:
        task = progress.add_task("consolidate", total=sum(waits.values()))
        for record in records:
            progress.update(task, description=visible(record.id)[:30])
            memory = memories[record.owner]
            problem = _told(storage, record.id, memory)
            left = waiting(memory, record.id)
            told.append(Told(record.id, record.owner, max(0, waits[record.id] - left), left, problem))
            progress.advance(task, waits[record.id])
    return told


def _told(storage: Storage, context: str, memory: TieredMemory) -> str:
    """Tell *memory* of the pages of *context*, and return what went wrong, "" if nothing did.

    `Context.flush` would note in the context what was told: whoever writes it would lose it to a job by the clock.
    """
    try:
        for _ in range(ATTEMPTS):
            window = opened(storage, Wanted(context, read_only=True, searchable=True)).window
            Handover(storage, window, memory).tell(_ALL)
            if storage.revision(context) == window.record.revision:  # else a page may have been undone meanwhile
                break
        memory.upkeep()
    except LeaseLost as error:
        return f"somebody else goes on with it: {error}"
    except MemciError as error:
        return str(error)
    return ""


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
