"""A search reads: where nothing can be written, it finds what is indexed, and says what waits."""

import subprocess
import sys
from contextlib import closing

import pytest

from memci import SQLiteStorage
from memci.memory import TieredMemory
from tests.context.kit import opened, turn

LAMP = {"role": "user", "content": "The storm lamp is in the cellar."}


LOOK = """
import ctypes, os, sys
if os.getuid() == 0:  # without its powers, root may write only what its permissions say
    libc = ctypes.CDLL(None, use_errno=True)
    libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)())
assert not os.access(sys.argv[1], os.W_OK)
from memci import Context
with Context.view(sys.argv[1], "alice") as view:
    print(view.search_memory("storm lamp", seen=False).pages[0].text)
    print("error" in view.functions["search_memory"]("word question"))
"""


def test_a_view_of_a_folder_that_can_not_be_written_finds_what_is_indexed(tmp_path):
    """For a program, and for the model's tool."""
    folder = tmp_path / "there"
    folder.mkdir()
    with closing(SQLiteStorage(folder / "agent.db")) as storage, opened(storage) as context:
        context.append_turn(LAMP, *turn(1)[1:])
        for number in range(3):
            context.append_turn(*turn(number))
        context.flush()
    for each in (*folder.iterdir(), folder):
        each.chmod(0o555)
    look = [sys.executable, "-c", LOOK, str(folder / "agent.db")]
    try:
        done = subprocess.run(look, capture_output=True, text=True, timeout=60, check=False)
    finally:
        folder.chmod(0o755)

    if "AssertionError" in done.stderr:
        pytest.skip("this user can write everywhere")
    assert (done.stdout, done.stderr) == ("The storm lamp is in the cellar.\nFalse\n", "")


@pytest.mark.parametrize("seen", [True, False])
def test_a_search_finds_what_is_indexed_when_the_memory_can_not_be_written(tmp_path, seen):
    """What waits is counted, and the model is told."""
    memory_file = tmp_path / "memory.db"
    with closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        memory = TieredMemory(storage, owner="alice", path=memory_file)
        with opened(storage, memory=memory, window=900) as context:
            context.append_turn(LAMP, *turn(1)[1:])
            for number in range(3):
                context.append_turn(*turn(number))
            context.flush()
            pages = memory.session.store._connection.pragma("page_count")
            memory.session.store._connection.pragma("max_page_count", pages)
            context.archive(keep=0)
            for number in range(40):
                context.append_turn(*turn(number, 90))

            found = context.search_memory("storm lamp", seen=seen)

            assert found.pages[0].text == LAMP["content"]
            assert found.pending > 0
            told = context.functions["search_memory"]("storm lamp")
            assert LAMP["content"] in told
            assert told.endswith(f"{found.pending} pages are not searchable yet")
            assert "not searchable yet" in context.functions["search_memory"]("zebra")
        memory.close()


def test_a_page_that_was_taken_back_is_not_found_though_the_memory_can_not_forget_it_now(tmp_path):
    """What is known of it does not hold any more."""
    with closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        memory = TieredMemory(storage, owner="alice", path=tmp_path / "memory.db")
        with opened(storage, memory=memory) as context:
            context.append_turn(*turn(1))
            context.append_turn(LAMP, *turn(1)[1:])
            context.append_turn(*turn(2))
            context.flush()
            memory.session.store.read_only = True
            context.undo()
            context.undo()

            assert LAMP["content"] not in {each.text for each in context.search_memory("storm lamp", seen=False).pages}
            assert context.search_memory("question 1", seen=False).pages
            memory.session.store.read_only = False
            assert context.search_memory("question 1", seen=False).pending == 0
        memory.close()


def test_dates_that_leave_nothing_are_named(tmp_path):
    """The model is told what there is at other times, and not to try other words."""
    with opened() as context:
        context.append_turn(LAMP, *turn(1)[1:], at="2026-03-02T08:00:00+01:00")
        context.append_turn(*turn(2), at="2026-03-03T08:00:00+01:00")
        context.append_turn(*turn(3), at="2026-03-03T09:00:00+01:00")
        context.archive(keep=0)
        told = context.functions["search_memory"]("storm lamp", since="2026-03-03")

        assert "within these dates, but messages of 2 Mar 2026 fit" in told
        assert "other words" not in told
        assert "nor at other times. Try other words" in context.functions["search_memory"]("zebra", until="2026-03-09")
