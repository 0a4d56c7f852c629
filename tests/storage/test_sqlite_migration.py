"""A store of an earlier memci: it is brought up to date once, and says what it said before."""

import contextlib
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from memci import Context, SQLiteStorage
from memci.errors import CorruptRecord, InvalidSetting, SeveralOwners, StorageBusy, StorageError, StorageReadOnly
from memci.history.erase import erase
from memci.history.export import exported
from memci.history.import_ import imported
from memci.memory import NullMemory
from memci.storage.sqlite.schema import SCHEMA_VERSION

GOLDEN = Path(__file__).parent / "golden"
SHOWN = {schema: json.loads((GOLDEN / f"schema{schema}.json").read_text(encoding="utf-8")) for schema in (1, 2, 3)}
"""what each earlier memci showed of the file that it wrote, by its schema"""
TOLD = SHOWN[1]


@pytest.fixture
def old(tmp_path):
    """A file as memci 0.1 wrote it."""
    return Path(shutil.copy(GOLDEN / "schema1.db", tmp_path / "old.db"))


def changed(path, statement, *bindings):
    """Change the file at *path* behind the back of everybody."""
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        return connection.execute(statement, bindings).fetchall()


def version(path):
    """The schema's version."""
    return changed(path, "PRAGMA user_version")[0][0]


@pytest.mark.parametrize(("schema", "id"), [(schema, id) for schema, shown in SHOWN.items() for id in shown])  # noqa: A001
def test_migration_keeps_what_was_said(tmp_path, schema, id):  # noqa: A002
    """Every message, the rendering byte for byte, and where each page is, are what the earlier memci showed."""
    old = Path(shutil.copy(GOLDEN / f"schema{schema}.db", tmp_path / "old.db"))

    with Context.open(old, id=id, memory=NullMemory(), wait=1) as context:
        told = {
            "messages": list(context.messages()),
            "rendered": context.render(strict=False),
            "pages": [[page.index, page.where, page.entries] for page in context.pages()],
        }
        problems = context.verify()

    for what, expected in SHOWN[schema][id].items():
        assert json.dumps(told[what]) == json.dumps(expected), what
    assert problems == []
    assert version(old) == SCHEMA_VERSION


def test_migrated_context_keeps_what_calls_cost(tmp_path):
    """A file that knew no calls of the model has none, and takes them from then on."""
    old = shutil.copy(GOLDEN / "schema3.db", tmp_path / "old.db")

    with Context.open(old, id="alice", memory=NullMemory()) as context:
        assert (context.calls(), context.report().cost.calls) == ([], 0)
        context.append_turn("Hi", usage={"prompt_tokens": 900})

        assert [call.input for call in context.calls()] == [900]


def test_another_owner_of_a_stored_id(old):
    """What an earlier memci stored keeps its id and its owner; another owner has one of the same id beside it."""
    for id in TOLD:  # noqa: A001
        with Context.open(old, id, owner="zoe", new=True, window=4_000, memory=NullMemory()) as beside:
            beside.append_turn("of zoe")
        with pytest.raises(SeveralOwners):
            Context.open(old, id)
        owner = next(each.owner for each in Context.list(old) if each.id == id)
        with Context.open(old, id, owner=owner, memory=NullMemory()) as context:
            assert (context.id, json.dumps([*context.messages()])) == (id, json.dumps(TOLD[id]["messages"]))
            fork = context.fork("trip", owner="zoe")
        with fork:
            assert json.dumps([*fork.messages()]) == json.dumps(TOLD[id]["messages"])
        with Context.view(old, id, owner="zoe") as seen:
            assert [each["content"] for each in seen.messages()] == ["of zoe"]
        with contextlib.closing(SQLiteStorage(old)) as storage:
            erase(storage, owner="zoe")
        with Context.open(old, id, memory=NullMemory()) as context:
            assert context.verify() == []


def test_migration_happens_once(old):
    """A file that was migrated is not written by opening it again."""
    SQLiteStorage(old).close()
    before = old.read_bytes()

    SQLiteStorage(old).close()

    assert old.read_bytes() == before


def test_migrated_context_goes_on(old):
    """It takes messages, archives, forks and knows the op_ids of before; its exports can be imported."""
    with contextlib.closing(SQLiteStorage(old)) as storage, Context.open(storage, id="alice") as context:
        with contextlib.closing(SQLiteStorage(old.parent / "other.db")) as other:
            imported(other, exported(storage, "alice"))
            assert list(exported(other, "alice")) == list(exported(storage, "alice"))
        [op] = [op for op in storage.ops("alice") if op.op_id == "q40"]
        for number in range(30):
            context.append_turn(f"Question {number} of a later memci?", {"role": "assistant", "content": "Yes. " * 30})
        fork = context.fork("alice-2")

        assert context.recall_page(2) == TOLD["alice"]["messages"][2:4]
        assert fork.recall_page(2) == context.recall_page(2)
        assert context.recall_page(op.entries[0][0])
        assert list(context.messages())[: len(TOLD["alice"]["messages"])] == TOLD["alice"]["messages"]
        assert context.verify() == fork.verify() == []


@pytest.mark.parametrize("turn", [5, 38])
def test_migrated_past_says_that_it_is_not_known(old, turn):
    """The earlier memci did not keep how the window stood: a turn of then can't be shown, and says so."""
    SQLiteStorage(old).close()

    with pytest.raises(InvalidSetting, match="an earlier memci wrote this turn"):
        Context.view(old, id="alice", at=turn)


def test_migration_of_many_openers_at_once(old):
    """Of eight that open it at once, one migrates and all see the same."""

    def seen(_):
        with contextlib.closing(SQLiteStorage(old)) as storage:
            return storage.contexts(), [list(storage.entries(id)) for id in TOLD]  # noqa: A001

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(seen, range(8))

    assert all(other == first for other in others)
    assert [record.id for record in first[0]] == sorted(TOLD)


def test_migration_while_another_one_writes(old):
    """A file that somebody writes to is StorageBusy, stays as it was, and is migrated by the next one."""
    with contextlib.closing(apsw.Connection(str(old))) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageBusy):
            SQLiteStorage(old, busy_timeout_seconds=0)
        writer.execute("ROLLBACK")
    assert version(old) == 1

    SQLiteStorage(old).close()

    assert version(old) == SCHEMA_VERSION


def test_migration_when_only_reading_is_wanted(old):
    """Reading migrates nothing, says what to do, and leaves the file as it is."""
    before = old.read_bytes()

    with pytest.raises(StorageReadOnly, match="of an earlier memci: open it once for writing"):
        SQLiteStorage(old, read_only=True)

    assert old.read_bytes() == before


@pytest.mark.parametrize(
    ("statement", "seen"),
    [
        ("UPDATE context SET owner = 'eve' WHERE id = 'alice'", lambda storage: storage.load("alice")),
        ("UPDATE edition SET text = text || ' ' WHERE nr = 1", lambda storage: storage.load("alice")),
        ("UPDATE entry SET tokens = 1 WHERE id = (1 << 40)", lambda storage: list(storage.entries("alice"))),
        ("UPDATE page SET turn = 9 WHERE id = (1 << 32 | 1)", lambda storage: list(storage.pages("alice"))),
    ],
)
def test_migration_keeps_damage_visible(old, statement, seen):
    """A row that was damaged before is damaged after: no check sum is made over bytes that were not written."""
    changed(old, statement)

    with contextlib.closing(SQLiteStorage(old)) as storage:
        with pytest.raises(CorruptRecord):
            seen(storage)

        assert storage.load("carol") is not None
        assert [each.codec for each in storage.entries("carol")]


def test_migration_that_fails_leaves_the_file_as_it_was(old):
    """What stops a migration takes all of it back: the file is the earlier memci's still."""
    changed(old, "CREATE TABLE view (a)")  # in the way of a table that is to be made
    before = changed(old, "SELECT sql FROM sqlite_schema ORDER BY name")

    with pytest.raises(StorageError, match="view"):
        SQLiteStorage(old)

    assert version(old) == 1
    assert changed(old, "SELECT sql FROM sqlite_schema ORDER BY name") == before
