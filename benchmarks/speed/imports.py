"""Imports: what `import memci` adds to the start of an interpreter.

    python -c "import memci"   −   python -c "pass"

Both in turn, each in a process of its own, medians. This module knows nothing of what the package does.
"""

import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]


def imports(times: int = 10) -> dict[str, Any]:
    """Return what the import takes, in milliseconds of the wall clock and of CPU."""
    taken: dict[str, list[tuple[float, float]]] = {"pass": [], "import memci": []}
    for _ in range(times):
        for code, each in taken.items():
            each.append(_run(code))
    wall, cpu = (
        median(each[part] for each in taken["import memci"]) - median(each[part] for each in taken["pass"])
        for part in (0, 1)
    )
    return {"wall_ms": round(wall * 1e3, 1), "cpu_ms": round(cpu * 1e3, 1)}


def _run(code: str) -> tuple[float, float]:
    cpu, wall = _children(), time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=_ROOT, check=True)
    return time.perf_counter() - wall, _children() - cpu


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
