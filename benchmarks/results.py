"""Results: figures with the commit and the machine that they are of, printed and kept.

    {"date": "…", "commit": "b1921ac", "python": "3.11.7", "machine": {…}, "options": {…}, "figures": {…}}

A host's name or a path is never among them. This module knows nothing of what was measured.
"""

import contextlib
import json
import os
import platform
import subprocess
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

HERE = Path(__file__).resolve().parent / "results"
_TERMINAL = Console()
CONSOLE = _TERMINAL if _TERMINAL.is_terminal else Console(width=130)


def record(options: dict[str, Any], figures: dict[str, Any]) -> dict[str, Any]:
    """Return *figures* with all that is needed to judge them."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "python": platform.python_version(),
        "machine": machine(),
        "options": options,
        "figures": figures,
    }


def keep(result: dict[str, Any], *, log: Path | None, file: Path | None) -> None:
    """Append *result* to *log* (JSON lines), and write it to *file*, where they are given."""
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(result) + "\n")
    if file is not None:
        file.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def commit() -> str:
    """Return the commit that is checked out, "-dirty" if something was changed since."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """Return what kind of machine this is."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = (line.partition(":") for line in info.read_text(encoding="utf-8").splitlines())
        model = next((value.strip() for key, _, value in lines if key.strip() == "model name"), model)
    facts: dict[str, Any] = {"cpu": model, "cores": os.cpu_count(), "system": platform.system()}
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["GiB"] = round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)
    if hasattr(os, "getloadavg"):
        facts["load"] = round(os.getloadavg()[0], 1)
    with contextlib.suppress(OSError):
        facts["system"] = platform.freedesktop_os_release()["PRETTY_NAME"]
    return facts


def headline(result: dict[str, Any]) -> str:
    """Return in one line whose figures these are."""
    at = result["machine"]
    return f"commit {result['commit']} · Python {result['python']} · {at['cpu']}, {at['cores']} cores, {at['system']}"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, note: str = "") -> None:
    """Print a table; a plain one where there is no terminal."""
    drawn = Table(title=title, title_justify="left", caption=note or None, caption_justify="left", box=SIMPLE_HEAD)
    for position, column in enumerate(columns):
        drawn.add_column(column, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*row)
    CONSOLE.print(drawn)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; all columns but the first are aligned to the right."""
    lines = [columns, ("---", *["---:"] * (len(columns) - 1)), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def progress() -> Progress:
    """Return a progress bar, which stays silent where there is no terminal."""
    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


def line(bar: Progress, what: str, total: int) -> Callable[[int], None]:
    """Add a line to *bar*, and return what moves it on."""
    task = bar.add_task(what, total=total)

    def reached(count: int) -> None:
        bar.update(task, completed=count, visible=count < total)

    return reached
