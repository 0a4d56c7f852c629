"""Which test reaches which function: a plugin of pytest, for a mutation run.

    MEMCI_REACH_OUT=out.json   pytest -p tests.faults.reach tests/window     writes {test: [seconds, [function, …]]}
    MEMCI_REACH_ONLY=in.json   pytest -p tests.faults.reach tests/window     runs the tests of that list, in its order

A function is named as "memci/window/window.py:Window.clip"; what is inside it counts as it. A test that reaches it only
in another process is not seen. Properties draw the same examples in each run and do not shrink: a mutant is caught or
not, the smallest example does not matter. This module knows nothing of mutants.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

import pytest
from hypothesis import Phase, settings

PACKAGE = str(Path.cwd() / "memci") + os.sep
OUT, ONLY = "MEMCI_REACH_OUT", "MEMCI_REACH_ONLY"

_reached: dict[str, tuple[float, list[str]]] = {}
_seen: set[CodeType] = set()


def pytest_sessionstart() -> None:
    """Let properties draw the same examples each time."""
    quick = settings(derandomize=True, database=None, phases=[Phase.explicit, Phase.generate], deadline=None)
    settings.register_profile("mutation", quick)
    settings.load_profile("mutation")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests that were asked for, in that order."""
    if path := os.environ.get(ONLY):
        place = {test: at for at, test in enumerate(json.loads(Path(path).read_text("utf-8")))}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> object:
    """Note the functions that *item* calls."""
    if OUT not in os.environ:
        return (yield)
    _seen.clear()
    begin = time.process_time()
    threading.settrace(_called)
    sys.settrace(_called)
    try:
        return (yield)
    finally:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type]
        functions = {name for code in tuple(_seen) if (name := _function(code)) is not None}
        _reached[item.nodeid] = round(time.process_time() - begin, 3), sorted(functions)


def pytest_sessionfinish() -> None:
    """Write what was noted."""
    if path := os.environ.get(OUT):
        Path(path).write_text(json.dumps(_reached), "utf-8")


def _called(frame: FrameType, _event: str, _argument: object) -> None:
    _seen.add(frame.f_code)


def _function(code: CodeType) -> str | None:
    """Return the name of the function that *code* is in, None if it is not of the package."""
    if not code.co_filename.startswith(PACKAGE):
        return None
    return f"memci/{code.co_filename.removeprefix(PACKAGE)}:{code.co_qualname.partition('.<locals>')[0]}"
