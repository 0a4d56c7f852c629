"""Calls beside the context with values of every wrong kind: each is a typed error, and nothing has changed."""

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from functools import partial
from inspect import signature
from itertools import product
from typing import Any

import pytest

from memci import Context
from memci.errors import InvalidSetting, MemciError
from memci.history.backup import repeat_erasures
from memci.history.copying import copy_contexts
from memci.history.erase import erase, finish_erasures
from memci.history.export import export_lines
from memci.history.import_ import import_lines
from memci.history.listing import list_contexts
from memci.history.retention import erase_outdated, find_outdated
from memci.history.salvage import salvage_contexts
from memci.history.verify import problems
from memci.memory import NullMemory, PageRecord, TieredMemory, inspect
from memci.memory.backend import Learned, Scope
from memci.storage import EphemeralStorage, Storage

HELLO = {"role": "user", "content": "I live in Oslo."}
PAGE = PageRecord("x", 9, 9, ((0, HELLO),))
HOSTILE = [
    *(None, True, 0, -1, 7, 2**70, 1.5, math.nan, math.inf, 1e300, "", "x", "\ud800", "a\0b", b"x", [7], [None], [[]]),
    *((), (1, 2), ("x", 1, 2, 3), {}, {"a": 1}, {7}, object(), object, len, iter([1]), date(2026, 1, 1)),
    *(PAGE, Scope(), Learned(1, "user", "")),
    *(PageRecord(7, "x", None, ((0, HELLO),)), PageRecord("x", 1, 1, ((0, 7),)), PageRecord("x", 1, 1, 7)),  # type: ignore[arg-type]
    *(PageRecord("x", 1, 1, (("0", HELLO),)), PageRecord("x", 1, 1, ((0, HELLO),), times={0: 7})),  # type: ignore[arg-type,dict-item]
    *(PageRecord("x", 1, 1, ()), PageRecord("x", -1, 1, ((0, HELLO),)), PageRecord("x", 1, 1, ((0, {"role": 7}),))),
    *(Scope(7), Scope("x", 7), Scope("x", ["1"]), Learned("1", 7, None), Learned(1, "nobody", "x")),  # type: ignore[arg-type,list-item]
]
GOOD: dict[str, tuple[Any, ...]] = {
    "observe": (PAGE,),
    "admit": (PAGE,),
    "acknowledged": ("x",),
    "set_aside": ("x",),
    "observed": ("x",),
    "end_session": ("x",),
    "search": ("Oslo",),
    "erase": (Scope("nowhere"),),
    "summaries": ("x", [1]),
    "learn": ("She lives in Oslo.",),
    "correct": (1, "She lives in Bergen."),
    "forget": (1,),
    "keep_learned": ("x", Learned(1, "user", "She swims.")),
    "quarantine": ("x", 1),
    "rollback": (1,),
    "waiting": ("x",),
}
"""the arguments that each call needs"""
NEEDED: dict[str, dict[str, Any]] = {"learn": {"context": "x", "index": 1}}
SEES = ("overview", "counts", "waiting")
METHODS = [name for name, each in vars(TieredMemory).items() if callable(each) and name[0] != "_" and name != "close"]


def calls(name: str, call: Callable[..., object]) -> Iterator[tuple[str, object, Callable[[], object]]]:
    """Yield a call for each argument of *call* and each hostile value."""
    needed = [*signature(call).parameters]
    given = dict(zip(needed, GOOD.get(name, ()), strict=False)) | NEEDED.get(name, {})
    for argument in needed:
        for value in HOSTILE:
            yield argument, value, lambda more={**given, argument: value}: call(**more)  # type: ignore[misc]


@pytest.fixture
def memory(context: Context, storage: Storage) -> Iterator[TieredMemory]:
    """The memory of the context."""
    context.flush()
    with closing(TieredMemory(storage, owner="x", clock=lambda: 1.8e9)) as made:
        made.learn("She lives in Oslo.", context="x", index=1)
        yield made


@pytest.mark.parametrize("name", [*METHODS, *SEES])
def test_memory_refuses_what_is_of_another_kind(memory: TieredMemory, name: str) -> None:
    """Each argument of each public call takes what it says, or raises a typed error; then nothing has changed."""
    call = getattr(memory, name) if name in METHODS else partial(getattr(inspect, name), memory)
    before = None
    for argument, value, act in calls(name, call):
        before = before or inspect.overview(memory, now=1.8e9)
        try:
            act()
            before = None
        except MemciError:
            assert inspect.overview(memory, now=1.8e9) == before, (argument, value)
        except Exception as error:
            raise AssertionError((argument, value)) from error
    memory.maintain(2e9)  # what was taken breaks no later call
    assert memory.search("Oslo").query == "Oslo"


HISTORY: dict[Callable[..., object], dict[str, Any]] = {
    import_lines: {"lines": ()},
    export_lines: {"context_id": "x"},
    salvage_contexts: {},
    copy_contexts: {},
    problems: {"context": "x"},
    repeat_erasures: {},
    find_outdated: {"before": "2026-01-01"},
    erase_outdated: {"found": ()},
    erase: {"context": "nowhere"},
    finish_erasures: {},
    list_contexts: {"owner": None, "after": None, "limit": 1},
}
"""the functions of a store's history, and the arguments that each needs besides stores"""


def test_a_store_refuses_what_is_of_another_kind() -> None:
    """Each call of the history refuses what its annotations do not name, before anything has changed."""
    store = EphemeralStorage()
    Context.open(store, id="x", window=2_000, memory=NullMemory()).append_turn(HELLO)
    before = store.contexts()
    stores = dict.fromkeys(("storage", "store", "source"), store)
    stores |= {name: EphemeralStorage() for name in ("copy", "target")}
    for call, given in HISTORY.items():
        names = signature(call).parameters
        needed = {name: value for name, value in (stores | given).items() if name in names}
        for argument, value in product(names, (7.5, 2**70, "\ud800", b"x\0", [[]], (7,), object(), complex)):
            with pytest.raises(InvalidSetting, match=f"^({argument}|file)"):
                [*found] if isinstance(found := call(**{**needed, argument: value}), Iterator) else found
        assert store.contexts() == before, call
