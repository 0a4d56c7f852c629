"""`memci inspect` and `memci verify`: they tell what is there, and change nothing."""

import json
from contextlib import closing

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.errors import StorageUnavailable
from memci.storage import FilesystemStorage


def test_inspect_when_the_store_has_contexts(run, store):
    """Every context is listed with its owner and its figures, and the file keeps its bytes."""
    before = store.read_bytes()

    result = run("inspect", store, "--json")

    value = json.loads(result.stdout)
    assert set(value) == {"store", "contexts"}
    alice, bob = value["contexts"]
    assert alice.pop("compactions") > 0
    whole = {"parent": None, "base": 0, "erased_messages": 0}
    assert alice == {"id": "alice", "owner": "ada", "messages": 120, "pages": 60, "turns": 60, "window": 2000} | whole
    assert bob.pop("compactions") == 0
    assert bob == {"id": "bob", "owner": "bob", "messages": 2, "pages": 1, "turns": 1, "window": 4000} | whole
    told = run("inspect", store).stdout
    assert all(each in told for each in ("alice", "ada", "120", "2,000"))
    assert "fork" not in told, "a column that is empty is left out"
    assert store.read_bytes() == before


def test_erased_messages_are_counted_apart(run, store, tmp_path):
    """Each command that tells how many messages there are tells how many of them are erased."""
    assert run("erase", store, "--context", "bob", "--page", "1", "--yes").exit_code == 0

    _, bob = json.loads(run("inspect", store, "--json").stdout)["contexts"]
    assert (bob["messages"], bob["erased_messages"]) == (2, 2)
    assert "\n122 messages, 2 of them erased" in run("inspect", store).stdout
    assert "2 messages, 2 of them erased" in run("inspect", store, "--context", "bob").stdout
    assert "122 messages, 2 of them erased" in run("doctor", store).stdout
    assert "122 messages, 2 of them erased" in run("backup", store, tmp_path / "new").stdout.replace("\n", "")
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("DELETE FROM entry WHERE key = (SELECT max(key) FROM entry)")  # bob's last one
    told = run("inspect", store)
    assert "122 messages, not known how many of them erased" in told.stdout
    assert json.loads(run("verify", store, "--json").stdout)["contexts"][1]["erased"] is None


def test_inspect_when_the_terminal_is_narrow(run, store, monkeypatch):
    """A table keeps its names and figures: the terminal wraps its lines."""
    wide = run("inspect", store).stdout
    monkeypatch.setenv("COLUMNS", "30")
    assert run("inspect", store).stdout.split() == wide.split()


def test_inspect_when_pages_are_asked_for_and_no_context(run, store):
    """The pages of the only context are listed; where there are several, one is to be named."""
    result = run("inspect", store, "--pages")

    assert (result.exit_code, result.stderr) == (2, "memci: --context: name one: agent.db has 'alice', 'bob'\n")
    assert "#60" in run("inspect", store, "--pages", "--owner", "ada").stdout


def test_inspect_when_a_context_is_chosen(run, store):
    """One context shows its report, its contents as the model sees them, and its pages; the file keeps its bytes."""
    before = store.read_bytes()

    result = run("inspect", store, "--context", "alice", "--json", "--pages")

    value = json.loads(result.stdout)
    assert {"id", "owner", "messages", "turns", "parent", "base", "erased", "report", "contents", "pages"} <= set(value)
    assert value["report"]["pages"]["archived"] > 0
    assert all(text.startswith("<memci:contents ") for text in value["contents"])
    assert len(value["pages"]) == 60
    told = run("inspect", store, "--context", "alice", "--pages")
    assert told.exit_code == 0
    assert value["contents"][0].splitlines()[1] in told.stdout
    assert store.read_bytes() == before


def test_inspect_when_a_context_was_counted_otherwise(run, tmp_path):
    """A context with a counter of its own is shown without being stored again."""
    path = tmp_path / "own.db"
    with Context.open(path, id="a", window=4_000, counter=len) as context:
        context.append_turn("Hello.")
    before = path.read_bytes()

    result = run("inspect", path, "--context", "a")

    assert result.exit_code == 0
    assert path.read_bytes() == before


def test_inspect_when_the_context_is_not_there(run, store):
    """An unknown id ends with 2 and names the ones that there are."""
    result = run("inspect", store, "--context", "carol")

    assert result.exit_code == 2
    assert "it has 'alice', 'bob'" in result.stderr


def test_inspect_when_there_are_forks_and_erased_pages(run, store):
    """A fork is told with what it shares, and erased pages by their numbers."""
    with Context.open(store, id="alice") as context:
        context.fork("alice-2", at=19).close()
        context.erase(3)

    listed, shown = run("inspect", store), run("inspect", store, "--context", "alice-2", "--pages")

    assert "alice at 40" in listed.stdout
    assert "a fork of alice, whose first 40 messages it shares" in shown.stdout
    assert "erased pages: #3" in shown.stdout
    value = json.loads(run("inspect", store, "--context", "alice-2", "--pages", "--json").stdout)
    assert (value["parent"], value["base"], value["erased"]) == ("alice", 40, [3])
    assert value["pages"][2]["where"] == "erased"


def held(folder):
    """The bytes in a folder, without the empty log and the shared memory that reading leaves."""
    return {path: path.read_bytes() for path in folder.rglob("*.*") if path.is_file() and path.suffix[:4] != ".db-"}


@pytest.mark.parametrize("command", ["inspect", "verify"])
def test_stores_when_it_is_a_folder(run, folder, command):
    """A folder is a store like any other, and is not written to."""
    before = held(folder)

    result = run(command, folder)

    assert result.exit_code == 0
    assert "alice" in result.stdout
    assert held(folder) == before


def test_verify_when_a_page_of_the_file_is_damaged(run, store):
    """SQLite's own check is made too: damage to what no context reads ends with 1."""
    connection = apsw.Connection(str(store))
    page = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'page_active'").fetchall()[0][0]
    size = connection.pragma("page_size")
    connection.close()
    damaged = bytearray(store.read_bytes())
    damaged[(page - 1) * size : page * size] = bytes([13, 0, 0, 0, 9]) + bytes(size - 5)
    store.write_bytes(damaged)

    result = run("verify", store, "--json")

    assert result.exit_code == 1
    assert any(each.startswith("SQLite: ") for each in json.loads(result.stdout)["problems"])


def test_verify_when_all_is_well(run, store):
    """A whole store ends with 0, and every context is named."""
    before = store.read_bytes()

    result = run("verify", store)

    assert result.exit_code == 0
    assert "✓ alice: 120 messages" in result.stdout
    assert "\x1b" not in result.stdout
    value = json.loads(run("verify", store, "--json").stdout)
    assert value["well"] is True
    assert value["contexts"][1] == {"id": "bob", "messages": 2, "erased": 0, "problems": [], "not_checked": None}
    assert store.read_bytes() == before


def test_verify_when_a_message_was_changed(run, store):
    """A changed byte ends with 1, and the message is named."""
    store.write_bytes(store.read_bytes().replace(b"Remember marker-7,", b"Remember mirker-7,"))

    result = run("verify", store)

    assert result.exit_code == 1
    assert "✗ alice" in result.stdout
    assert "seq 14" in result.stdout
    value = json.loads(run("verify", store, "--json").stdout)
    assert value["well"] is False
    assert len(value["contexts"][0]["problems"]) == 1


def test_verify_when_a_context_was_changed(run, store):
    """A changed record of a context ends with 1 too: it is damage, not a file that can't be read."""
    store.write_bytes(store.read_bytes().replace(b"Be brief.", b"Be brisk."))

    result = run("verify", store, "--json")

    assert result.exit_code == 1
    assert json.loads(result.stdout)["well"] is False


def test_verify_when_the_contents_were_changed(run, store):
    """Changed contents of one context end with 1, and the other contexts are read all the same."""
    connection = apsw.Connection(str(store))
    connection.execute("UPDATE compaction SET text = CAST(text || ' ' AS BLOB)")
    connection.close()

    result = run("verify", store, "--json")

    assert result.exit_code == 1
    value = json.loads(result.stdout)
    assert [bool(each["problems"]) for each in value["contexts"]] == [True, False]


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_stores_when_there_is_none(run, tmp_path, command):
    """A missing file is not made; what is no store ends with 2 and stays as it is."""
    missing, empty, other = tmp_path / "none.db", tmp_path / "empty.db", tmp_path / "other.db"
    empty.touch()
    other.write_bytes(b"not a store " * 200)

    results = [run(command, each) for each in (missing, empty, other, tmp_path)]

    assert [result.exit_code for result in results] == [2] * 4
    assert all(result.stderr.startswith("memci: ") and result.stderr.count("\n") == 1 for result in results)
    told = ["there is no such file", "is empty", "is not a SQLite file", "is a folder"]
    assert all(each in result.stderr for each, result in zip(told, results, strict=True))
    assert not missing.exists()
    assert empty.read_bytes() == b""
    assert other.read_bytes() == b"not a store " * 200


@pytest.mark.parametrize("how", ["gone", "empty"])
@pytest.mark.parametrize(
    "command", ["verify", "doctor", "salvage", "inspect", "backup", "export", "consolidate", "erase"]
)
def test_commands_when_only_what_belongs_to_the_store_is_there(run, store, tmp_path, command, how):
    """A file that is gone or empty, but not its witness, is no path that was mistyped: they say what to do."""
    with Context.open(store, id="bob") as context:
        context.append_turn("A witness knows of this.")
    store.unlink()
    if how == "empty":
        store.touch()
    before = sorted(tmp_path.iterdir())
    more = {"salvage": ["n.db"], "backup": ["n.db"], "export": ["--all"], "erase": ["--before", "2030-01-01", "--yes"]}

    result = run(command, store, *(tmp_path / each if each == "n.db" else each for each in more.get(command, [])))

    assert result.exit_code == (1 if command == "verify" or (command == "doctor" and how == "empty") else 2)
    told = " ".join((result.stdout + result.stderr).split())
    assert f"is {how}" in told
    assert "but not" in told
    assert "put it back" in told
    assert "memci salvage" not in told
    assert sorted(tmp_path.iterdir()) == before


def test_verify_when_nothing_shows_what_was_lost(run, store, tmp_path):
    """A file that was copied alone may have lost its newest commits: that is said, also if it holds none at all."""
    SQLiteStorage(tmp_path / "new.db").close()

    results = [run("verify", tmp_path / "new.db"), run("salvage", tmp_path / "new.db", tmp_path / "saved.db")]

    assert all("new.db holds no contexts\nno witness can be read beside it" in result.stdout for result in results)


def test_folder_that_has_lost_its_mark_is_named_so(run, folder, tmp_path):
    """A folder without memci.json is no other program's if it has the file of a store."""
    (folder / "memci.json").unlink()

    results = [run(command, folder) for command in ("inspect", "verify")]

    assert all("put it back from a backup; or memci salvage" in " ".join(each.stderr.split()) for each in results)
    with pytest.raises(StorageUnavailable, match=r"holds store\.db and no memci\.json: put that back"):
        FilesystemStorage(folder)
    assert run("salvage", folder / "store.db", tmp_path / "new.db").exit_code == 0
