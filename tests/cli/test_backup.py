"""memci backup: a whole, verified copy of a store that is in use."""

import sqlite3
from contextlib import closing
from threading import Event, Thread

import pytest

from memci import Context, SQLiteStorage
from memci.history.export import export_lines
from memci.storage.opening import open_plain


def lines(path, context="alice"):
    with closing(open_plain(path, read_only=True)) as storage:
        return list(export_lines(storage, context))


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_backup_of_a_store_in_use_is_whole(run, request, tmp_path, kind):
    """The newest commit, which only the log has, is there; the copy is verified, has its memory and no lock."""
    store, new = request.getfixturevalue(kind), tmp_path / "new"
    with Context.open(store, "alice", wait=1) as context:
        context.append_turn("The newest.")
        context.flush()
        result = run("backup", store, new)
        expected = lines(store)
        context.append_turn("A later one.")

    assert result.stdout.replace("\n", "").endswith("new: 2 contexts with 123 messages, copied and verified")
    assert lines(new) == expected
    assert run("verify", new).exit_code == 0
    assert "knows of 2 contexts" in run("doctor", new).stdout
    with Context.open(new, "alice", wait=0.1) as context:
        assert context.search_memory("marker-7").pages
        context.append_turn("A turn of the copy.")
    if kind == "folder":
        assert len(list((new / "contexts").iterdir())) == 2


def test_backup_while_another_handle_writes_is_one_state(run, store, tmp_path):
    """Each copy is whole, whatever is committed meanwhile."""
    done = Event()

    def write():
        with Context.open(store, "bob") as context:
            while not done.is_set():
                context.append_turn("Again.", "Yes.")

    thread = Thread(target=write)
    thread.start()
    results = [run("backup", store, tmp_path / f"{number}.db") for number in range(5)]
    done.set()
    thread.join()

    assert [result.exit_code for result in results] == [0] * 5
    assert all(run("verify", tmp_path / f"{number}.db").exit_code == 0 for number in range(5))


def test_backup_of_a_damaged_store_leaves_nothing(run, store, tmp_path):
    """A copy that is not whole is no backup."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE entry SET digest = zeroblob(16) WHERE (key & 0xffffffffff) = 5")
        connection.commit()
    before = sorted(tmp_path.iterdir())

    result = run("backup", store, tmp_path / "new.db")

    assert result.exit_code == 2
    assert "was not copied" in result.stderr
    assert [each for each in sorted(tmp_path.iterdir()) if "agent.db-" not in each.name] == before


def test_backup_overwrites_nothing_and_names_the_tool_of_postgres(run, store):
    """Another store stays as it is, and so does what is beside its place."""
    SQLiteStorage(store).close()
    for arguments, said in (((store, store), "there already"), (("postgresql://h/d", "new.db"), "pg_dump --schema")):
        result = run("backup", *arguments)
        assert result.exit_code == 2
        assert said in result.stderr
