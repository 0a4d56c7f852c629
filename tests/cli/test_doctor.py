"""`memci doctor`: what memci runs on, and how a store is kept."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memci import SQLiteStorage
from memci.cli import doctor
from memci.storage.locks import hold
from memci.testing.storage.rows import append


def found(run, *arguments):
    """The findings by their names, and how the command ended."""
    result = run("doctor", *arguments, "--json")
    told = json.loads(result.stdout)
    assert told["well"] == (result.exit_code == 0)
    return {each["name"]: each for each in told["findings"]}, result.exit_code


def test_doctor_when_no_store_is_named(run):
    """It tells the versions of what memci runs on, and that this SQLite is safe."""
    findings, code = found(run)

    assert code == 0
    assert {"memci", "Python", "SQLite", "apsw", "typer"} <= set(findings)
    assert findings["SQLite"]["text"].startswith(apsw.sqlite_lib_version())
    assert all(each["state"] == "ok" and not each["advice"] for each in findings.values())
    assert "✓ SQLite" in run("doctor").stdout


@pytest.mark.parametrize("kind", ["store", "folder"])
def test_doctor_when_a_store_is_well(run, kind, request):
    """A store of either kind is well, its contexts are counted, and its bytes stay."""
    path = request.getfixturevalue(kind)
    files = [each for each in [path, *path.rglob("*")] if each.is_file()]
    before = [each.read_bytes() for each in files]

    findings, code = found(run, path)

    assert code == 0
    assert findings["contexts"]["text"] == "2, 122 messages"
    assert findings["locks"]["text"].startswith("0 held now")
    assert {"file system", "space"} <= set(findings)
    assert [each.read_bytes() for each in files] == before


def test_doctor_when_a_lock_is_held(run, store):
    """It says how many locks are held, and takes none away."""
    with closing(SQLiteStorage(store)) as storage:
        lock = hold(storage, "alice", 0)
        hold(storage, "bob", 0).release()

        findings, _ = found(run, store)

        assert findings["locks"]["text"] == "1 held now"
        assert findings["lock"]["text"].startswith("of 'alice': held by process")
        lock.release()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("PRAGMA user_version = 99", "schema"),
        ("PRAGMA user_version = 0", "schema"),
        ("PRAGMA application_id = 5", "schema"),
        ("UPDATE context SET owner = 'eve'", "contexts"),
    ],
)
def test_doctor_when_a_store_is_not_well(run, store, statement, name):
    """What can't be used, or is damaged, is a problem with an advice, and ends with 1."""
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute(statement)

    findings, code = found(run, store)

    assert code == 1
    assert findings[name]["state"] == "problem"
    assert findings[name]["advice"]
    assert "✗" in run("doctor", store).stdout


def test_doctor_when_commits_are_lost_and_that_is_accepted(run, store, tmp_path):
    """An older copy in the place of a store is a problem, for verify too; with --accept it is taken as it is."""
    older = shutil.copy(store, tmp_path / "older.db")
    with closing(SQLiteStorage(store)) as storage:
        append(storage, "new", b"1")
    shutil.copy(older, store)

    findings, code = found(run, store)
    assert (code, findings["contexts"]["state"]) == (1, "problem")
    assert "--accept" in findings["contexts"]["advice"]
    assert run("verify", store).exit_code == 1

    assert found(run, store, "--accept")[0]["accepted"]["state"] == "warning"
    findings, code = found(run, store, "--accept")
    assert (code, findings["accepted"]["state"], findings["witness"]["text"]) == (
        0,
        "ok",
        "holds the last commits of 0 contexts",
    )
    assert run("doctor", "--accept").exit_code == 2


def test_doctor_when_it_is_no_store(run, tmp_path):
    """A file of another kind is a problem; a file that is not there ends with 2, and is not made."""
    other = tmp_path / "other.db"
    other.write_bytes(b"not a store " * 200)

    findings, code = found(run, other)

    assert code == 1
    assert findings["schema"]["text"] == "is not a SQLite file"
    missing = run("doctor", tmp_path / "none.db")
    assert (missing.exit_code, missing.stdout) == (2, "")
    assert not (tmp_path / "none.db").exists()


def test_doctor_when_there_is_nothing_in_it(run, tmp_path):
    """A folder that is no store is a problem, an empty file becomes one; both stay empty."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.db").touch()

    folder, empty = found(run, tmp_path / "folder"), found(run, tmp_path / "empty.db")

    assert (folder[1], folder[0]["schema"]["state"]) == (1, "problem")
    assert (empty[1], empty[0]["schema"]["state"]) == (0, "warning")
    assert list((tmp_path / "folder").iterdir()) == []
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_doctor_when_something_is_left_over(run, store, folder):
    """What an interrupted write left is a warning, with what removes it."""
    Path(f"{store}-journal").write_bytes(b"half")
    (folder / ".memci.json.tmp").write_bytes(b"half")
    (folder / "store.db-wal.damaged").write_bytes(b"half")

    beside, inside = list(doctor._beside(str(store), 0)), list(doctor._folder(folder))

    assert any(each.name == "rollback journal" and each.state == "warning" for each in beside)
    assert any(each.name == "damaged log" and each.state == "warning" for each in inside)
    assert any(each.name == "leftovers" and each.state == "warning" for each in inside)


def test_doctor_when_the_disk_is_nearly_full():
    """Little space is a warning, next to none a problem."""
    told = [doctor._space(free) for free in (2**30, 100 * 2**20, 2**20)]

    assert [each.state for each in told] == ["ok", "warning", "problem"]
    assert [each.text for each in told] == ["1 GiB are free", "100 MiB are free", "1 MiB are free"]


def test_doctor_when_a_file_system_is_a_network():
    """A file on a network is a problem, a folder a warning."""
    file, plain = doctor._file_system("nfs4", folder=False), doctor._file_system("nfs4", folder=True)

    assert (file.state, plain.state) == ("problem", "warning")


def test_doctor_when_sqlite_is_not_safe():
    """A SQLite that loses commits is a problem, with the version to install."""
    finding = doctor._library("3.46.0")

    assert finding.state == "problem"
    assert "3.51.3" in finding.advice


def test_doctor_when_a_store_cannot_be_opened(run, store, folder):
    """What no command can open is a problem, also if no message is lost: a later format, a second name."""
    (folder / "memci.json").write_text('{"format": "memci folder", "schema": 99}')
    store.with_name("second.db").hardlink_to(store)

    for place, advice in ((folder, "install a later memci"), (store, "keep one")):
        findings, code = found(run, place)
        assert (code, findings["contexts"]["state"], findings["contexts"]["advice"]) == (1, "problem", advice)
