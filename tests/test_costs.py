"""How much code one call walks through: an append and a compaction enter few modules.

A reader who follows one call should not have to open more files than these. Where a limit is exceeded, a module was
added between two others whose work one of them could do; where a call enters fewer modules, lower the limit.
"""

import gc
import sys
from collections.abc import Callable

from memci import Context, EphemeralStorage, SQLiteStorage

APPEND = 15
"""modules that an append may enter: lower it when it enters fewer"""
COMPACTION = 30
"""modules that a rendering may enter that compacts: lower it when it enters fewer"""

ROUTE = [
    {"role": "user", "content": "Which trains go to Oslo? " * 12},
    {"role": "assistant", "content": "The 9:15 and the 14:40. " * 12},
]


def entered(call: Callable[[], object]) -> list[str]:
    """Return the modules of memci in which *call* runs a function, sorted."""
    found = set()

    def note(frame, event, _argument):
        if event == "call":
            found.add(frame.f_globals.get("__name__", ""))

    gc.collect()  # what earlier tests left is no part of the call
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sorted(name for name in found if name.split(".")[0] == "memci")


def filled(store, turns: int = 4) -> Context:
    """Return a context in which some turns stand."""
    context = Context.open(store, id="alice", system="Be brief.", window=4_000)
    for _ in range(turns):
        context.append_turn(*ROUTE)
        context.render()
    return context


def appending(store) -> list[str]:
    """Return the modules that one ordinary append enters."""
    with filled(store) as context:
        found = entered(lambda: context.append_turn(*ROUTE))
        assert context.report().tokens["contents"] == 0, "nothing was archived meanwhile"
        return found


def compacting(store) -> list[str]:
    """Return the modules that a rendering enters which archives pages; its pending message brings it to that."""
    with filled(store, 12) as context:
        pending = {"role": "user", "content": "And back? " * 600}
        found = entered(lambda: context.render(pending))
        assert context.report().tokens["contents"] > 0, "pages were archived"
        return found


def test_an_append_enters_few_modules(tmp_path):
    """One append walks through at most so many modules of memci, whatever the store."""
    for store in (SQLiteStorage(tmp_path / "agent.db", durability="fast"), EphemeralStorage()):
        found = appending(store)
        assert len(found) <= APPEND, found


def test_a_compaction_enters_few_modules(tmp_path):
    """One rendering that compacts walks through at most so many modules of memci, whatever the store."""
    compacting(EphemeralStorage())  # what is imported at first use is no step of the call
    for store in (SQLiteStorage(tmp_path / "agent.db", durability="fast"), EphemeralStorage()):
        found = compacting(store)
        assert len(found) <= COMPACTION, found
