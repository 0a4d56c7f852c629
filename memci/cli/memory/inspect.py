"""What `memci inspect --memory` prints: what a memory holds.

    memory of ada: 96 pages; 8 still in a window or listed, 9 short-term, 79 in 6 episodes
    episodes, hottest first …

Whose memory it is: --owner ada is ada; --context alice is the owner of that context; neither is the only owner.
Looking does not count as use: no heat rises. This module knows nothing of how a command line is written.
"""

from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ...storage import Storage
from ...storage.opening import name_of
from ..output import Output
from ..stores import choose, choose_context
from ..tables import table
from .tables import COUNTED, counted, memory_tables

if TYPE_CHECKING:
    from ...memory import TieredMemory
    from ...memory.inspect import Overview


def inspect_memory(output: Output, storage: Storage, path: str, *, context: str | None, owner: str | None) -> None:
    """Print what the memory of an owner holds; if none is named and there are several, how much each of them holds."""
    from ...memory import TieredMemory
    from ...memory.inspect import overview

    names = owners_of(storage)
    if context is None and owner is None and len(names) != 1:
        _print_owners(output, path, storage, names)
        return
    name = choose_owner(storage, path, context=context, owner=owner)
    with closing(TieredMemory(storage, owner=name, read_only=True)) as memory:
        _print_memory(output, path, overview(memory), waiting_pages(storage, memory))


def owners_of(storage: Storage) -> list[str]:
    """Return all who have a context or a memory in *storage*. O(contexts)."""
    from ...memory.inspect import owners

    return list(dict.fromkeys([*(record.owner for record in storage.contexts()), *owners(storage)]))


def choose_owner(storage: Storage, path: str, *, context: str | None, owner: str | None) -> str:
    """Return the owner who is named, or whose *context* is named, or the only one. O(contexts)."""
    if context is not None:
        return choose_context(storage, path, context, owner).owner
    return choose("--owner", owner, owners_of(storage), what="owner", path=path)


def waiting_pages(storage: Storage, memory: "TieredMemory") -> int:
    """Return how many pages of its owner's contexts the memory was not fed yet. O(contexts)."""
    from ...memory.inspect import waiting

    return sum(waiting(memory, record.id) for record in storage.contexts(owner=memory.owner))


def _print_owners(output: Output, path: str, storage: Storage, names: list[str]) -> None:
    from ...memory import TieredMemory
    from ...memory.inspect import overview

    rows = []
    for name in names:
        with closing(TieredMemory(storage, owner=name, read_only=True)) as memory:
            rows.append((overview(memory), waiting_pages(storage, memory)))
    if output.json:
        output.print_json({"store": path, "owners": [_figures(seen, waits) for seen, waits in rows]})
        return
    if not rows:
        output.line(f"{name_of(path)} holds no contexts, and no memory")
        return
    figures = ("pages", *COUNTED, "waiting")
    cells = ((seen.owner, seen.counts.pages, *counted(seen.counts), waits) for seen, waits in rows)
    output.console.print(table("owner", *figures, rows=cells, figures=figures))
    output.line("one of them: memci inspect STORE --memory --owner NAME", "dim")


def _print_memory(output: Output, path: str, seen: "Overview", waits: int) -> None:
    if output.json:
        value = asdict(seen) | _figures(seen, waits) | {"store": path}
        value["days"] = [asdict(day) | {"mood": day.felt} for day in seen.days]
        value["concepts"] = [{"name": name, "statements": count} for name, count in seen.concepts]
        output.print_json(value)
    elif not seen:
        why = "no page was closed yet"
        if waits:
            why = f"{waits:,} pages wait: a program feeds them when its context is idle, or memci consolidate does"
        output.line(f"{seen.owner}: the memory is empty: {why}")
    else:
        output.console.print(memory_tables(seen))
        if waits:
            output.line(f"\n{waits:,} pages wait: memci consolidate feeds them", "yellow")


def _figures(seen: "Overview", waits: int) -> dict[str, Any]:
    return {"owner": seen.owner, "counts": asdict(seen.counts), "waiting": waits}
