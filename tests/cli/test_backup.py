"""memci backup: a whole, verified copy of a store that is in use."""

import fcntl
import os
import sqlite3
from contextlib import closing
from threading import Event, Thread

import pytest

from memci import Context, SQLiteStorage
from memci.errors import CorruptRecord, InvalidSetting, KeyMissing, StorageFull
from memci.history.backup import backup
from memci.history.erase import erase
from memci.history.export import export_lines
from memci.history.placing import moved_to
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
    assert "holds the last commits of 2 contexts" in run("doctor", new).stdout
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
            while not done.wait(0.002):
                context.append_turn("Again.", "Yes.")

    thread = Thread(target=write)
    thread.start()
    results = [run("backup", store, tmp_path / f"{number}.db") for number in range(3)]
    done.set()
    thread.join()

    assert [result.exit_code for result in results] == [0] * 3
    assert all(run("verify", tmp_path / f"{number}.db").exit_code == 0 for number in range(3))


@pytest.mark.parametrize("damage", ["row", "index"])
def test_backup_of_a_damaged_store_leaves_nothing(damage, run, store, tmp_path):
    """A copy that is not whole is no backup: a row has another digest, or SQLite's own index of active pages none."""
    with closing(sqlite3.connect(store)) as connection:
        if damage == "row":
            connection.execute("UPDATE entry SET digest = zeroblob(16) WHERE (key & 0xffffffffff) = 5")
            connection.commit()
        [root] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'page_active'").fetchone()
        [size] = connection.execute("PRAGMA page_size").fetchone()
    if damage == "index":
        with store.open("r+b") as file:
            file.seek((root - 1) * size + 3)  # the number of its cells
            file.write(b"\0\0")
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


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_later_erasures_are_repeated_in_a_copy(run, request, tmp_path, kind):
    """A page, an entry, a context that was forked and made again, one that changed its owner, and an owner: what was
    erased since is in no file of the new copy, and all else is there."""
    store, old, new = request.getfixturevalue(kind), tmp_path / "old", tmp_path / "new"
    told = {"diary": "ann", "moved": "ann", "left": "cid", "kept": "cid"}
    with closing(open_plain(store)) as storage:
        for name, owner in told.items():
            with Context.open(storage, name, owner=owner, window=4_000) as context:
                context.append_turn(f"canary{name}", {"role": "assistant", "content": f"canaryanswer{name}"})
        with Context.open(storage, "diary", owner="ann") as context:
            context.fork("diary-2").close()
    assert run("backup", store, old).exit_code == 0
    with closing(open_plain(store)) as storage:
        with Context.open(storage, "alice") as context:
            context.append_turn("The newest.", {"role": "assistant", "content": "One that the copy never had."})
            context.erase(1)
            context.erase(2, 2)
            context.erase(61, 2)
        Context.open(storage, "moved", owner="bea", change_owner=True).close()
        erase(storage, owner="bea")
        for name in ("diary-2", "diary", "left"):
            erase(storage, context=name)
        with Context.open(storage, "diary", owner="ann", window=4_000) as context:
            context.append_turn("Another one.")
    before = lines(old, "diary")

    result = run("backup", old, new, "--apply-erasures", store)

    assert result.stdout.replace("\n", "").endswith("124 messages, 3 of them erased, copied and verified")
    assert lines(old, "diary") == before
    held = b"".join(each.read_bytes() for each in tmp_path.rglob("new*") if each.is_file())
    held += b"".join(each.read_bytes() for each in new.rglob("*") if each.is_file())
    gone = [b"canarydiary", b"canarymoved", b"canaryleft", b"canaryanswerleft", b"marker-0,"]
    assert [word for word in gone if word in held] == []
    assert run("verify", new).exit_code == 0
    with Context.view(new, "alice") as copied, Context.view(store, "alice") as live:
        assert list(copied.messages()) == list(live.messages())[:-2]
        assert [page.where for page in copied.pages()].count("erased") == 1
    with Context.view(new, "kept") as copied:
        assert "canarykept" in str(copied.render())


def test_erasures_of_another_store_are_not_applied(run, store, tmp_path):
    """A context of the same name is another one if it was made elsewhere."""
    with Context.open(tmp_path / "other.db", "alice", owner="ada", window=4_000) as context:
        context.append_turn("Hi.")
        context.erase(1)

    result = run("backup", store, tmp_path / "new.db", "--apply-erasures", tmp_path / "other.db")

    assert result.exit_code == 0
    assert "! alice: still there: other.db neither has it nor says that it was erased" in result.stdout
    assert backup(store, tmp_path / "3.db", erasures_of=tmp_path / "other.db").unknown == ("alice", "bob")
    assert backup(store, tmp_path / "4.db", erasures_of=store).unknown == ()
    assert lines(tmp_path / "new.db") == lines(store)
    assert run("backup", store, tmp_path / "2.db", "--apply-erasures", tmp_path / "none.db").exit_code == 2
    assert not (tmp_path / "2.db").exists()


def test_backup_removes_what_a_killed_one_left(run, store, tmp_path):
    """Nobody locks its hidden folder any more. That of a backup that is made now stays, and a folder of others."""
    left, live, other = (tmp_path / f".memci-unfinished-{name}" for name in ("left", "live", "other"))
    for each in (left, live, other):
        each.mkdir()
        (each / "store").write_bytes(b"text")
    (other / "notes.txt").touch()
    file = os.open(live, os.O_RDONLY)

    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert run("backup", store, tmp_path / "new.db").exit_code == 0
    finally:
        os.close(file)

    assert [each.name for each in sorted(tmp_path.glob(".memci-*"))] == [live.name, other.name]
    assert run("backup", store, tmp_path / "2.db").exit_code == 0
    assert [each.name for each in tmp_path.glob(".memci-*")] == [other.name]


@pytest.mark.parametrize("name", ["", ".", "/", "a\0b"])
def test_backup_to_no_name_of_a_file_is_refused(store, name):
    """A place that can't be that of a store is named."""
    with pytest.raises(InvalidSetting, match="is no name of a file or a folder"):
        backup(store, name)


def test_errors_of_a_backup_are_those_of_the_store(run, store, tmp_path, monkeypatch):
    """An encrypted store without its key is KeyMissing, a damaged one CorruptRecord, as every other call says."""
    monkeypatch.setenv("MEMCI_KEY", "11" * 32)
    assert run("copy", store, tmp_path / "sealed.db").exit_code == 0
    monkeypatch.delenv("MEMCI_KEY")
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("UPDATE entry SET digest = zeroblob(16) WHERE (key & 0xffffffffff) = 5")
        connection.commit()

    with pytest.raises(KeyMissing):
        backup(tmp_path / "sealed.db", tmp_path / "new.db")
    with pytest.raises(CorruptRecord, match="was not copied"):
        backup(store, tmp_path / "new.db")


def test_place_that_was_taken_meanwhile_is_left_as_it_is(tmp_path):
    """Two programs may make a store for one place: the second one to end finds it taken, and mixes nothing."""
    with pytest.raises(InvalidSetting, match="there already"), moved_to(tmp_path / "new") as made:
        made.write_bytes(b"mine")
        made.with_name("store-witness").write_bytes(b"mine, too")
        (tmp_path / "new").write_bytes(b"another one's")

    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"new": b"another one's"}


def test_errors_of_a_new_store_name_its_place(tmp_path):
    """The hidden folder is gone when the error is read."""
    with pytest.raises(StorageFull) as caught, moved_to(tmp_path / "new") as made:
        raise StorageFull(f"no space is left for {str(made)!r}: free some")

    assert str(caught.value) == f"no space is left for {str(tmp_path / 'new')!r}: free some"
