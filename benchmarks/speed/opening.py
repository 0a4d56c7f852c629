"""Opening: how long a long conversation takes to be there again, and one of its pages to be read.

    Context.open(file) + render()      as many rows as the window shows, whatever was archived
    context.recall_page(4_711)         one page, and the note that it was recalled

Both by the wall clock, warm: the file is in the system's cache. This module knows nothing of how the file was made.
"""

import time
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from memci import Context, SQLiteStorage
from memci.rows import PageState


def opening(path: Path, *, times: int = 20, recalls: int = 200) -> dict[str, Any]:
    """Open the context in the file at *path*, and recall pages of it. In milliseconds and microseconds."""
    took = []
    for _ in range(times + 1):
        began = time.perf_counter_ns()
        with Context.open(path, id="bench") as context:
            context.render()
            took.append(time.perf_counter_ns() - began)
    store = SQLiteStorage(path, durability="fast")
    context = Context.open(store, id="bench")
    shown = {page.index for page in store.pages("bench", state=PageState.ACTIVE)}
    highest = max(shown)
    chosen = [index for index in Random(1).sample(range(1, highest), min(recalls, highest - 1)) if index not in shown]
    reads = []
    for index in chosen:
        began = time.perf_counter_ns()
        context.recall_page(index)
        reads.append(time.perf_counter_ns() - began)
    context.close()
    store.close()
    return {
        "pages": highest,
        "first_open_ms": round(took[0] / 1e6, 2),
        "open_ms": round(median(took[1:]) / 1e6, 3),
        "recall_us": round(median(reads) / 1e3, 1),
    }
