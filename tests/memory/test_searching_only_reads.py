"""A search reads: where nothing can be written, it finds what is indexed, and says what waits."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from memci import Context, SQLiteStorage
from memci.memory import TieredMemory
from tests.context.kit import opened, turn

LAMP = {"role": "user", "content": "The storm lamp is in the cellar."}
ASKED = '{"query": "storm lamp", "since": null, "until": null}'


def apart(do):
    """Return what *do* returns in a process without the power of root to write everywhere."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(65_534)
                os.setuid(65_534)
            said = do()
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of its own")
def test_a_view_of_a_folder_that_can_not_be_written_finds_what_is_indexed(tmp_path):
    """By a path, and by the model's tool."""
    folder = tmp_path / "there"
    folder.mkdir()
    with opened(SQLiteStorage(folder / "agent.db")) as context:
        context.append_turn(LAMP, *turn(1)[1:])
        for number in range(3):
            context.append_turn(*turn(number))
        context.flush()
    context._storage.close()
    for each in [*folder.iterdir(), folder, *folder.parents]:
        if each.stat().st_uid == os.getuid() and (each == folder or folder in each.parents or each in tmp_path.parents):
            each.chmod(0o755 if each in tmp_path.parents else 0o555 if each.is_dir() else 0o444)
    tmp_path.chmod(0o755)

    def search():
        with Context.view(Path(folder / "agent.db"), "alice") as view:
            found = view.search_memory("storm lamp", seen=False)
            told = view.functions["search_memory"]("word question")
            return f"{found.pages[0].text} {'error' in told}"

    try:
        assert apart(search) == "The storm lamp is in the cellar. False"
    finally:
        folder.chmod(0o755)


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
