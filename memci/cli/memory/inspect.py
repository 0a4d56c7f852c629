"""What `memci inspect --memory` prints: what a memory holds, or what it knows around a concept.

    memory of ada: 96 pages; 8 still in a window or listed, 9 short-term, 79 in 6 episodes
    episodes, hottest first …

Looking is not use: nothing grows warmer by it. This module knows nothing of how a command line is written.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from ...memory import TieredMemory
from ...memory.backend import Concept
from ...memory.inspect import Overview, concept, overview, waiting
from ...storage import Storage
from ..output import Output, visible
from ..stores import existing
from .owners import chosen_owner, owners_of
from .tables import concepts_table, memory_tables


def memory_inspected(
    output: Output, path: str, *, context: str | None, owner: str | None, concept_name: str | None
) -> None:
    """Print what the memory of an owner holds; of several ones, if none is named, how much each does.

    Raises:
        InvalidSetting: If there is no such store, context, owner or concept.
        StorageError: If it can't be read.
    """
    with existing(path) as storage:
        names = owners_of(storage)
        if context is None and owner is None and concept_name is None and len(names) != 1:
            _print_owners(output, path, storage, names)
            return
        chosen = chosen_owner(storage, path, context=context, owner=owner)
        memory = TieredMemory(storage, owner=chosen, read_only=True)
        try:
            if concept_name is None:
                _print_memory(output, path, overview(memory), _waiting(storage, memory))
            else:
                _print_concept(output, path, chosen, concept_name, concept(memory, concept_name))
        finally:
            memory.close()


def empty_memory(owner: str, pages: int) -> str:
    """Return the line that tells that *owner* has no memory yet, and what waits for it."""
    if pages:
        told = f"{pages:,} pages wait: they are told when a program leaves its context alone, or by memci consolidate"
    else:
        told = "no page was closed yet"
    return f"{visible(owner)}: nothing was remembered yet: {told}"


def _print_owners(output: Output, path: str, storage: Storage, names: list[str]) -> None:
    rows = []
    for name in names:
        memory = TieredMemory(storage, owner=name, read_only=True)
        try:
            rows.append((overview(memory), _waiting(storage, memory)))
        finally:
            memory.close()
    if output.json:
        owners = [_figures(seen, waits) for seen, waits in rows]
        output.print_json({"store": path, "owners": owners})
        return
    if not rows:
        output.console.print(Text(f"{visible(Path(path).name)} holds no contexts, and nothing was remembered yet"))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("owner", overflow="fold", min_width=5)
    for column in ("pages", "queue", "episodes", "facts", "events", "concepts", "waiting"):
        table.add_column(column, justify="right", no_wrap=True)
    for seen, waits in rows:
        counts = seen.counts
        facts = counts.user_facts + counts.assistant_facts
        figures = (counts.pages, counts.short, counts.episodes, facts, counts.events, counts.concepts, waits)
        table.add_row(Text(visible(seen.owner)), *(f"{each:,}" for each in figures))
    output.console.print(table)
    output.console.print("one of them: memci inspect STORE --memory --owner NAME", style="dim")


def _print_memory(output: Output, path: str, seen: Overview, waits: int) -> None:
    if output.json:
        value = asdict(seen) | _figures(seen, waits) | {"store": path}
        value["days"] = [asdict(day) | {"mood": day.mood} for day in seen.days]
        value["concepts"] = [{"name": name, "told": count} for name, count in seen.concepts]
        output.print_json(value)
    elif not seen:
        output.console.print(Text(empty_memory(seen.owner, waits)), soft_wrap=True)
    else:
        output.console.print(memory_tables(seen))
        if waits:
            output.console.print(Text(f"\n{waits:,} pages wait: memci consolidate tells of them", style="yellow"))


def _print_concept(output: Output, path: str, owner: str, name: str, found: tuple[Concept, ...]) -> None:
    if output.json:
        concepts = [asdict(each) for each in found]
        output.print_json({"store": path, "owner": owner, "concept": name, "concepts": concepts})
    elif not found:
        told = f"the graph of {visible(owner)} has no concept {visible(repr(name))}; memci inspect --memory names some"
        output.console.print(Text(told), soft_wrap=True)
    else:
        output.console.print(concepts_table(found))


def _figures(seen: Overview, waits: int) -> dict[str, Any]:
    return {"owner": seen.owner, "counts": asdict(seen.counts), "waiting": waits}


def _waiting(storage: Storage, memory: TieredMemory) -> int:
    return sum(waiting(memory, record.id) for record in storage.contexts() if record.owner == memory.owner)
