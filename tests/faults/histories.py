"""What many writers say that they did, against what is stored.

    writer-3.log    start 3-7 shared a · lost 3-7 · acked 3-7 12.2 · start 3-8 shared a · (killed) · known 3-8
    shared a        … 3-7 asks · 3-7 answers · 3-8 asks · 3-8 answers …

    acknowledged: there, once        a run of one handle: nobody else in it, for that is what WriteConflict is for
    started only: there once or not  a context of one's own, or locked: never lost

A run is what one handle acknowledges between two moments at which it read the context. This module knows nothing of
processes.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import apsw

from memci import Context
from memci.history.verify import problems
from memci.storage.protocol import Storage

Turn = list[dict[str, Any]]


class History(NamedTuple):
    """What one writer said, in all its lives."""

    started: dict[str, str]
    """the context of each op, in order"""
    runs: dict[str, str]
    """the run of each op that was stored when it was acknowledged"""
    known: set[str]
    """ops that were stored by a call that died before it returned"""
    lost: list[str]
    """contexts in which another writer was first"""
    stale: list[str]
    """contexts of which a handle that had lost nothing showed something else than what was stored"""
    again: int
    """ops that were in flight when a life ended"""
    refused: int = 0
    """times that the store was busy or full"""

    @property
    def acknowledged(self) -> Set[str]:
        return self.runs.keys() | self.known

    @property
    def pending(self) -> Sequence[str]:
        return [op for op in self.started if op not in self.acknowledged]


def history(folder: Path, writer: int) -> History:
    """Return what *writer* said."""
    told = History({}, {}, set(), [], [], 0)
    path = folder / f"writer-{writer}.log"
    for line in path.read_text("utf-8").splitlines() if path.exists() else []:
        word, what = line.split(" ", 1)
        op, _, rest = what.partition(" ")
        if word == "start":
            told.started[op] = rest
        elif word == "acked":
            told.runs[op] = rest
        elif word == "known":
            told.known.add(op)
        elif word == "lost":
            told.lost.append(told.started.get(op, what))
        elif word == "stale":
            told.stale.append(what)
        elif word == "refused":
            told = told._replace(refused=told.refused + 1)
        else:
            told = told._replace(again=told.again + 1)
    return told


def said(op: str) -> Turn:
    """Return the turn that *op* appends; its text is like no other."""
    more = " fare" * (crc32(op.encode()) % 60)
    return [{"role": "user", "content": f"{op} asks{more}"}, {"role": "assistant", "content": f"{op} answers{more}"}]


def examined(
    folder: Path,
    make: Callable[[Path], Storage],
    opened: Callable[[Storage, str], Context],
    *,
    apart: Set[str],
    writers: int,
) -> tuple[Counter[str], list[str]]:
    """Return what the histories in *folder* count, and which promises were broken; all writers are dead.

    Args:
        folder: Where the store and the logs are.
        make: Opens the store.
        opened: Opens a context.
        apart: Contexts in which a writer must hold the lock.
        writers: How many there were.
    """
    told = {writer: history(folder, writer) for writer in range(writers)}
    found = [f"a writer ended by itself: {path.read_text('utf-8')}" for path in sorted(folder.glob("error-*.txt"))]
    stored: dict[str, list[str]] = {}
    with closing(make(folder)) as storage:
        for record in storage.contexts():
            seqs = [row.seq for row in storage.entries(record.id)]
            if seqs != list(range(record.head)):
                found.append(f"{record.id}: its {len(seqs)} entries are not 0 to {record.head - 1}")
            try:
                found += problems(storage, record.id)
                with opened(storage, record.id) as context:
                    stored[record.id], torn = _ops(list(context.messages()))
                    context.render(strict=False)
            except Exception as error:  # a store that keeps no promise can raise anything: that is a finding
                found.append(f"{record.id}: it can't be shown: {error!r}")
            else:
                found += [f"{record.id}: {each}" for each in torn]
    for path in folder.glob("*.db"):
        connection = apsw.Connection(str(path))
        found += [f"{path.name}: {each}" for (each,) in connection.execute("PRAGMA integrity_check") if each != "ok"]
        connection.close()
    found += against(told, stored, apart)
    counts = Counter(
        {
            "appends acknowledged": sum(len(each.acknowledged) for each in told.values()),
            "in flight at a death": sum(each.again for each in told.values()),
            "of them stored already": sum(len(each.known) for each in told.values()),
            "refused": sum(each.refused for each in told.values()),
            "write conflicts": sum(len(each.lost) for each in told.values()),
            "runs of one handle": len({run for each in told.values() for run in each.runs.values()}),
        }
    )
    return counts, found


def against(told: Mapping[int, History], stored: Mapping[str, Sequence[str]], apart: Set[str]) -> Iterator[str]:
    """Yield what is wrong with the ops that are *stored* in each context, if that is what the writers *told*."""
    started = {op: name for each in told.values() for op, name in each.started.items()}
    runs = {op: run for each in told.values() for op, run in each.runs.items()}
    for writer, each in told.items():
        for name in sorted({*each.lost} & ({f"of writer {writer}"} | apart)):
            yield f"{name}: writer {writer} lost a context that nobody else may write"
        yield from (f"{name}: writer {writer} did not notice that it was overtaken" for name in each.stale)
        for op in sorted(each.acknowledged):
            if op not in stored.get(started[op], ()):
                yield f"{started[op]}: {op} was acknowledged, and is lost"
    for name, ops in stored.items():
        yield from (f"{name}: {op} is there {times} times" for op, times in Counter(ops).items() if times > 1)
        yield from (f"{name}: nobody said {op} here" for op in ops if started.get(op) != name)
        for writer in told:
            own = [int(op.split("-")[1]) for op in ops if op.startswith(f"{writer}-")]
            if own != sorted(own):
                yield f"{name}: the order of writer {writer} is lost"
        yield from (f"{name}: {each}" for each in _interleaved(ops, runs))


def _interleaved(ops: Sequence[str], runs: Mapping[str, str]) -> Iterator[str]:
    places: dict[str, list[int]] = {}
    for place, op in enumerate(ops):
        if op in runs:
            places.setdefault(runs[op], []).append(place)
    for run, held in places.items():
        between = [op for op in ops[held[0] : held[-1] + 1] if runs.get(op) != run]
        if between:
            yield f"{between[0]} came between the appends of one handle, {ops[held[0]]} and {ops[held[-1]]}"


def _ops(messages: Sequence[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the ops whose turns *messages* are, and what is no whole turn."""
    ops, torn, at = [], [], 0
    while at < len(messages):
        op = str(messages[at].get("content")).split(" ", 1)[0]
        if list(messages[at : at + 2]) == said(op):
            ops.append(op)
            at += 2
        else:
            torn.append(f"message {at} ({messages[at].get('content')!r:.60}) is not of a whole append")
            at += 1
    return ops, torn
