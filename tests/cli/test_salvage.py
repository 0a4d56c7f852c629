"""memci salvage: all that can be read of a damaged store goes to a new one, and what is lost is named."""

import json
import random
import shutil
import sqlite3
from collections import Counter
from contextlib import closing

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.errors import CorruptRecord
from memci.history.export import export_lines


def messages(path, context):
    """The messages of a context, in order."""
    with closing(SQLiteStorage(path, read_only=True)) as storage:
        return list(export_lines(storage, context, chat=True))


def said(path, context):
    """What was said in a context, in order, without the system prompt."""
    return [line for line in messages(path, context) if not line.startswith('{"role":"system"')]


def executed(path, statement):
    """Change the file behind the store."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def test_salvage_when_nothing_is_damaged(told, store, tmp_path):
    """Every context is there exactly, and nothing is called lost."""
    said = told("salvage", store, tmp_path / "new.db")

    assert [(each["id"], each["messages"], each["lost"]) for each in said["contexts"]] == [
        ("alice", 120, []),
        ("bob", 2, []),
    ]
    with closing(SQLiteStorage(store)) as one, closing(SQLiteStorage(tmp_path / "new.db")) as two:
        assert list(export_lines(one, "alice")) == list(export_lines(two, "alice"))


@pytest.mark.parametrize(
    ("statement", "lost"),
    [
        ("UPDATE entry SET digest = zeroblob(16) WHERE (key & 0xffffffffff) = 5", "message 6 (page #3)"),
        ("DELETE FROM entry WHERE (key & 0xffffffffff) = 5", "message 6 (page #3)"),
        ("DELETE FROM page WHERE (key & 0xffffffff) = 4", "page #4, where it begins and ends: it is missing"),
        ("UPDATE page SET first = 1 WHERE (key & 0xffffffff) = 4", "page #4"),
        ("UPDATE compaction SET text = x'78'", "Contents Page"),
        ("UPDATE compaction SET text = x'78' WHERE key = (SELECT min(key) FROM compaction)", "Contents Page"),
        ("UPDATE context SET state = '[]' WHERE id = 'bob'", "record is not what was written"),
    ],
)
def test_salvage_when_a_row_is_damaged(run, store, tmp_path, statement, lost):
    """What was hit is named; everything else is there word for word, and the new store is well."""
    before = {name: messages(store, name) for name in ("alice", "bob")}
    executed(store, statement)

    result = run("salvage", store, tmp_path / "new.db")

    assert result.exit_code == 1
    assert lost in result.stdout
    verified = run("verify", tmp_path / "new.db")
    assert verified.exit_code == 0
    assert (", 1 of them erased" in verified.stdout) is ("message" in lost)
    assert (", 1 of them erased" in run("doctor", tmp_path / "new.db").stdout) is ("message" in lost)
    after = messages(tmp_path / "new.db", "alice")
    assert Counter(before["alice"]) - Counter(after) == Counter(before["alice"][6:7] if "message" in lost else ())


def test_salvage_when_a_message_is_damaged_that_a_fork_shares(run, store, tmp_path):
    """The message is named for the fork, too, and counted as lost."""
    with Context.open(store, id="alice") as context, context.fork("fork") as fork:
        fork.append_turn("Thank you!")
    executed(store, "UPDATE entry SET digest = zeroblob(16) WHERE (key & 0xffffffffff) = 5")

    said = run("salvage", store, tmp_path / "new.db").stdout

    lost = "  lost: message 6 (page #3): its bytes are not those that were written"
    assert said.count(lost) == 2
    assert "! alice: 119 messages" in said
    assert "! fork: 120 messages" in said


@pytest.mark.parametrize(("first", "end"), [(3, 4), (16, 18), (19, 20), (22, 23), (0, 24), (68, 72), (0, 4096)])
def test_salvage_when_the_file_is_damaged_where_it_begins(run, store, tmp_path, first, end):
    """A store is told from another file by what is beside it; its start is known, so that nothing is lost."""
    with Context.open(store, id="bob") as context:
        context.append_turn("A witness knows of this.")
    before = {name: messages(store, name) for name in ("alice", "bob")}
    content = store.read_bytes()
    store.write_bytes(content[:first] + b"\x8a" * (end - first) + content[end:])

    with pytest.raises(CorruptRecord, match=r"damaged where it begins: .* backup, or .* memci salvage"):
        SQLiteStorage(store)
    told = run("doctor", store).stdout
    result = run("salvage", store, tmp_path / "new.db")

    assert "is damaged where it begins" in told
    assert result.exit_code == 1, result.stderr
    assert {name: messages(tmp_path / "new.db", name) for name in before} == before


@pytest.mark.parametrize("seed", range(8))
def test_salvage_when_bytes_of_the_file_are_damaged(run, store, tmp_path, seed):
    """Whatever is hit: a line that says what is lost, and nothing in the new store that was never written."""
    executed(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = set(messages(store, "alice")) | set(messages(store, "bob"))
    rng = random.Random(seed)
    content = bytearray(store.read_bytes())
    for _ in range(3):
        at = rng.randrange(4096, len(content) - 512)
        content[at : at + 512] = rng.randbytes(512)
    store.write_bytes(bytes(content))

    result = run("salvage", store, tmp_path / "new.db")

    assert result.exit_code in {0, 1, 2}
    if result.exit_code == 2:
        assert result.stderr.count("\n") == 1
        return
    assert run("verify", tmp_path / "new.db").exit_code == 0
    with closing(SQLiteStorage(tmp_path / "new.db")) as storage:
        for record in storage.contexts():
            lines = set(export_lines(storage, record.id, chat=True))
            assert {line for line in lines if "[erased]" not in line} <= before
            with Context.view(storage, record.id) as context:
                context.render(strict=False)


@pytest.mark.parametrize("kept", [0.97, 0.95, 0.9, 0.7, 0.01])
def test_salvage_when_a_file_has_lost_its_end(run, store, tmp_path, kept):
    """Every other command refuses it and names this one: what is read is exact, what is lost is named, or nothing is.

    What stands at the end differs from store to store, since the memory is written beside the messages.
    """
    executed(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = {name: said(store, name) for name in ("alice", "bob")}
    content = store.read_bytes()
    store.write_bytes(content[: int(len(content) * kept)])

    refused = run("inspect", store)
    result = run("salvage", store, tmp_path / "new.db", "--json")

    assert refused.stderr.endswith("memci salvage STORE NEW saves what can be read\n")
    assert "memci-" not in result.output, "the name of a copy that is gone"
    if result.exit_code == 2:
        assert kept < 0.95
        assert "nothing of it can be read" in result.stderr
        return
    for each in json.loads(result.stdout)["contexts"]:
        name, lost = each["id"], each["lost"]
        after = said(tmp_path / "new.db", name) if each["saved"] else []
        gone = [at for at, old in enumerate(before[name], 1) if after[at - 1 : at] != [old]]
        assert each["messages"] == len(before[name]) - len(gone)
        if each["saved"]:
            assert gone == [at for at in range(1, 121) if any(one.startswith(f"message {at} ") for one in lost)]
            assert all("[erased]" in after[at - 1] for at in gone)
        assert lost or not gone


def test_salvage_when_much_is_lost(run, store, tmp_path):
    """What is lost fills no screen: the first are named, and how many more there are."""
    executed(store, "UPDATE entry SET digest = zeroblob(16)")

    lines = run("salvage", store, tmp_path / "new.db").stdout.splitlines()

    assert len(lines) < 40
    alice, _ = json.loads(run("salvage", store, tmp_path / "2.db", "--json").stdout)["contexts"]
    assert f"  and {len(alice['lost']) - 20} more: --json names them all" in lines


def test_salvage_when_the_target_is_there(run, store):
    """No file is overwritten, the damaged one least of all."""
    result = run("salvage", store, store)

    assert result.exit_code == 2
    assert "name a new store" in result.stderr


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """The folder of a store whose program was killed: its last 20 messages are in the log only."""
    live = tmp_path_factory.mktemp("killed") / "live.db"
    path = live.parent / "left" / "killed.db"
    path.parent.mkdir()
    with Context.open(live, id="a", window=4_000) as context:
        for number in range(20):
            context.append_turn(f"question {number}", f"answer {number}")
    with Context.open(live, id="a") as context:
        for number in range(20, 30):
            context.append_turn(f"question {number}", f"answer {number}")
        for end in ("", "-wal", "-witness"):
            shutil.copy(f"{live}{end}", f"{path}{end}")
    return path.parent


@pytest.fixture
def killed(left, tmp_path):
    """A copy of that store."""
    return shutil.copytree(left, tmp_path / "copy") / "killed.db"


@pytest.mark.parametrize("place", [3, 20, 30, 33, 60, 5_000, 9_000, 40_000, -1, -2_000])
def test_salvage_reads_behind_a_flipped_bit_of_the_log(run, killed, place):
    """A flipped bit in the log loses at most the rows that it hit; the commits behind it are there."""
    log = killed.with_name("killed.db-wal")
    content = bytearray(log.read_bytes())
    content[place] ^= 1
    log.write_bytes(content)

    result = run("salvage", killed, killed.with_name("new.db"))

    assert result.exit_code == 1
    saved = messages(killed.with_name("new.db"), "a")
    assert len(saved) == 60
    assert sum("[erased]" in line for line in saved) <= 2
    assert log.read_bytes() == content, "the damaged store is only read"


def test_salvage_names_commits_that_are_gone(run, killed):
    """A store without its log is not "all of it": the witness says how far it had come."""
    killed.with_name("killed.db-wal").unlink()

    result = run("salvage", killed, killed.with_name("new.db"))

    assert "✓" not in result.stdout
    assert "lost: its newest commits: context 'a' is at revision" in result.stdout


def test_salvage_reads_contexts_that_an_index_hides(run, store, tmp_path):
    """A context that the index of ids does not have is copied, and the damage is named."""
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_context_1'")
        [[size]] = connection.execute("PRAGMA page_size")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.read_bytes())
    content[(root - 1) * size + 3 : (root - 1) * size + 5] = (1).to_bytes(2, "big")  # the number of its cells
    store.write_bytes(bytes(content))

    result = run("salvage", store, tmp_path / "new.db")

    assert result.exit_code == 1
    assert "! SQLite: " in result.stdout
    assert "✓ alice: 120 messages, all of it" in result.stdout
    assert "✓ bob: 2 messages, all of it" in result.stdout


def test_salvage_names_a_context_whose_record_is_damaged_and_reads_the_next(run, tmp_path):
    """A damaged page of the table of contexts does not end the run."""
    store = tmp_path / "many.db"
    with closing(SQLiteStorage(store)) as storage:
        for number in range(40):
            with Context.open(storage, f"context-{number:02}", system="Be brief. " * 60, window=4_000) as context:
                context.append_turn("Hello.", "Hi.")
    content = bytearray(store.read_bytes())
    pages = [content[at : at + 4096] for at in range(0, len(content), 4096)]
    leaf = 4096 * next(at for at, page in enumerate(pages) if b"context-20" in page and b"Be brief. Be" in page)
    content[leaf : leaf + 8] = b"\xff" * 8
    store.write_bytes(bytes(content))

    said = json.loads(run("salvage", store, tmp_path / "new.db", "--json").stdout)["contexts"]

    ids = {each["id"]: each["saved"] for each in said}
    assert sorted(ids) == [f"context-{number:02}" for number in range(40)]
    assert 1 <= sum(not saved for saved in ids.values()) < 20
    assert not ids["context-20"]


def test_salvage_that_fails_leaves_nothing(run, store, tmp_path, monkeypatch):
    """A new store is whole or not there: with the right key the same command works."""
    sealed, new = tmp_path / "sealed.db", tmp_path / "new.db"
    monkeypatch.setenv("MEMCI_KEY", "11" * 32)
    assert run("copy", store, sealed).exit_code == 0
    monkeypatch.setenv("MEMCI_KEY", "22" * 32)
    before = sorted(each for each in tmp_path.iterdir() if "sealed.db-" not in each.name)

    refused = run("salvage", sealed, new)

    assert refused.exit_code == 2
    assert "is encrypted with the key" in refused.stderr
    assert sorted(each for each in tmp_path.iterdir() if "sealed.db-" not in each.name) == before
    monkeypatch.setenv("MEMCI_KEY", "11" * 32)
    assert run("salvage", sealed, new).exit_code == 0
    assert run("verify", new).exit_code == 0


def test_salvage_when_the_file_of_a_folder_is_gone(run, folder, tmp_path):
    """Nothing can be read then: the reason is told, and no store is made."""
    (folder / "store.db").unlink()

    result = run("salvage", folder, tmp_path / "new.db")

    assert result.exit_code == 2
    assert "nothing of it can be read, take a backup: " in result.stderr
    assert "is missing" in result.stderr
    assert not (tmp_path / "new.db").exists()


def test_salvage_into_a_folder_makes_a_folder(run, store, tmp_path):
    """A name that ends in / becomes a folder, as with every command."""
    assert run("salvage", store, f"{tmp_path}/new/").exit_code == 0

    assert (tmp_path / "new" / "memci.json").exists()
    assert run("verify", tmp_path / "new").exit_code == 0


def test_salvage_reads_a_name_with_signs_of_a_pattern(run, killed):
    """The log of "a[1].db" is its own, whatever a pattern would match."""
    for end in ("", "-wal", "-witness"):
        shutil.copy(f"{killed}{end}", killed.with_name(f"a[1].db{end}"))
    named = killed.with_name("a[1].db")
    content = bytearray(named.with_name("a[1].db-wal").read_bytes())
    content[5_000] ^= 1
    named.with_name("a[1].db-wal").write_bytes(content)

    assert run("salvage", named, killed.with_name("new.db")).exit_code == 1
    assert len(messages(killed.with_name("new.db"), "a")) == 60


@pytest.mark.parametrize("written_again", [False, True])
@pytest.mark.parametrize("kind", ["store", "folder"])
def test_salvage_when_a_page_is_lost_that_all_stores_have(run, request, tmp_path, kind, written_again):
    """Definitions of tables are the same in all stores, an index is made again: no message is lost with them. A store
    that was written again, as after an erasure, has its tables at other pages."""
    store = request.getfixturevalue(kind)
    file = store / "store.db" if kind == "folder" else store
    if written_again:
        with Context.open(store, id="bob") as context:
            context.append_turn("One more.")
            assert context.erase(2).done
    with Context.open(store, id="bob") as context:
        context.append_turn("A witness knows of this.")
    before = {name: messages(file, name) for name in ("alice", "bob")}
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        names = "'sqlite_schema', 'sqlite_autoindex_context_1', 'page_active', 'context_parent'"
        lost = [page for (page,) in connection.execute(f"SELECT pageno FROM dbstat WHERE name IN ({names})")]
    content = file.read_bytes()

    for page in lost:
        file.write_bytes(content[: (page - 1) * 4096] + bytes(4096) + content[page * 4096 :])
        new = tmp_path / f"{page}.db"
        assert run("salvage", store, new).exit_code == 1
        assert {name: messages(new, name) for name in before} == before
        assert run("verify", new).exit_code == 0

    assert min(lost) == 1
    assert len(lost) >= 4


def test_salvage_when_the_table_of_pages_is_lost(run, store, tmp_path):
    """Every message is there, on pages that are named as lost; the context is opened and goes on."""
    before = {name: said(store, name) for name in ("alice", "bob")}
    with closing(apsw.Connection(str(store))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [[page]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'page'")
    content = store.read_bytes()
    store.write_bytes(content[: (page - 1) * 4096] + bytes(4096) + content[page * 4096 :])

    result = run("salvage", store, tmp_path / "new.db")

    assert "! alice: 120 messages" in result.stdout
    assert "lost: page #1, where it begins and ends" in result.stdout
    assert {name: said(tmp_path / "new.db", name) for name in before} == before
    assert run("verify", tmp_path / "new.db").exit_code == 0
    with Context.open(tmp_path / "new.db", "alice") as context:
        context.append_turn("And on.")
        assert context.verify() == []
