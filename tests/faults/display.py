"""What one sees of a run: a bar for each harness on a terminal, lines elsewhere, and a table at the end.

    bombs  ━━━━━━━━━╸━━━━━━━━━  212/400  66/s  0:03 left

This module knows nothing of harnesses.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from .tally import Tally, Tell

LINE_SECONDS = 60.0
"""how often a line tells how far a harness is, where there are no bars"""


class Shown(Protocol):
    """What there is to show of a harness that is over."""

    @property
    def tally(self) -> Tally: ...
    @property
    def aim(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def bad(self) -> bool: ...


class Display:
    """Shows how far each harness is."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars: Progress | None = None
        if console.is_terminal and not console.is_dumb_terminal:
            columns = (
                TextColumn("{task.description:>9}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[pace]}"),
            )
            self._bars = Progress(*columns, console=console)

    def __enter__(self) -> Self:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def say(self, line: str) -> None:
        """Write one line."""
        self._console.print(line, markup=False, soft_wrap=True)
        self._console.file.flush()

    @contextmanager
    def shown(self, name: str, unit: str, aim: int, seconds: float) -> Iterator[Tell]:
        """Give what is told of the runs of a harness, which has *seconds*."""
        begin = last = time.monotonic()
        task = self._bars.add_task(name, total=aim, pace="") if self._bars is not None else None

        def tell(runs: int) -> None:
            nonlocal last
            now = time.monotonic()
            rate = runs / max(now - begin, 0.001)
            left = max(min(begin + seconds - now, (aim - runs) / max(rate, 0.001)), 0.0)
            pace = f"{rate:,.1f}/s, {left / 60:.0f}:{left % 60:02.0f} left"
            if self._bars is not None and task is not None:
                self._bars.update(task, completed=runs, pace=pace)
            elif now - last > LINE_SECONDS:
                last = now
                self.say(f"{name}: {runs:,} of {aim:,} {unit}, {pace}")

        yield tell


def told(outcome: Shown) -> str:
    """Return *outcome* in one line."""
    tally = outcome.tally
    return (
        f"{tally.name}: {tally.runs:,} of {outcome.aim:,} {tally.unit}, {len(tally.violations)} broken promises, "
        f"{outcome.seconds:.0f} s"
    )


def table(outcomes: Sequence[Shown], title: str) -> Table:
    """Return *outcomes* with all that they counted."""
    made = Table("harness", "runs / aim", "broken", "seconds", "what happened how often", title=title, show_lines=True)
    for outcome in outcomes:
        tally = outcome.tally
        made.add_row(
            f"{tally.name} ({tally.unit})",
            f"{tally.runs:,} / {outcome.aim:,}",
            f"[red]{len(tally.violations):,}[/red]" if outcome.bad else "0",
            f"{outcome.seconds:.0f}",
            ", ".join(f"{what} {times:,}" for what, times in sorted(tally.counts.items())),
        )
    return made
