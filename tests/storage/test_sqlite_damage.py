"""SQLiteStorage tells of each byte that is not what it wrote."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from memci import Context
from memci.errors import CorruptRecord, MemciError, StorageError
from memci.rows import OpRow, PageState
from memci.storage import SQLiteStorage
from memci.storage.protocol import Transition
from memci.testing.storage.rows import append, appended, compacted, current
from tests.storage.statements import execute


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entry SET tokens = 8",
        "UPDATE entry SET at = 'x'",
        "UPDATE entry SET codec = 2",
        "UPDATE entry SET digest = zeroblob(16)",
        "UPDATE page SET first = 1",
        "UPDATE context SET state = '[]'",
        "UPDATE compaction SET text = x'78'",
        "UPDATE op SET first = 5",
        "UPDATE op SET entries = '[]'",
    ],
)
def test_changed_column_is_corrupt(storage: SQLiteStorage, path: Path, statement: str) -> None:
    """No column can change unnoticed, not only the bodies."""
    transition = appended(current(storage, "a"), b"1")
    op = with_op(transition)
    storage.commit(op)
    execute(path, statement)

    with pytest.raises(CorruptRecord):
        storage.load("a")
        list(storage.entries("a"))
        list(storage.pages("a"))
        storage.commit(op)


def test_damaged_definition_of_a_table_is_corrupt(storage: SQLiteStorage, path: Path) -> None:
    """A byte that is no text is a damage like any other, met when the file is opened."""
    append(storage, "a", b"1")
    storage.close()
    before, table, behind = path.read_bytes().partition(b"CREATE TABLE entry")
    path.write_bytes(before + table + behind.replace(b"tokens", b"\xaeokens", 1))

    with pytest.raises(CorruptRecord, match="definition of a table"):
        SQLiteStorage(path)


def with_op(transition: Transition) -> Transition:
    return compacted(transition._replace(ops=(OpRow("op", b"d", 0, ((1, 0),)),)), "[]")


@pytest.mark.parametrize("statement", ["UPDATE compaction SET text = x'78bb' WHERE", "DELETE FROM compaction WHERE"])
def test_damaged_compaction_costs_those_that_need_it(storage: SQLiteStorage, path: Path, statement: str) -> None:
    """At most 7 newer ones need it and can't be read, either; all others can, and the next one needs none of them."""
    for i in range(40):
        storage.commit(compacted(appended(current(storage, "a"), b"1"), f"a line, {i} lines"))
    before = list(storage.compactions("a"))
    execute(path, f"{statement} head = 20")

    assert storage.load("a") == (current(storage, "a")._replace(revision=40), "a line, 39 lines")
    rows = storage.compactions("a")
    assert [next(rows).head for _ in range(16)] == list(range(40, 24, -1))
    with pytest.raises(CorruptRecord):
        next(rows)
    assert list(storage.compactions("a", head=19)) == before[-19:]

    after = compacted(appended(current(storage, "a"), b"2"), "two lines")
    execute(path, f"{statement} head = 36")
    with pytest.raises(CorruptRecord):
        storage.load("a")
    storage.commit(after)
    assert storage.load("a") == (after.record, "two lines")


def test_flipped_bytes_of_entries_are_told_or_harmless(tmp_path: Path) -> None:
    """Any byte among the entries may change: what is read is what was written, or an error of ours."""
    path = tmp_path / "whole.db"
    storage = SQLiteStorage(path)
    for i in range(3):
        storage.commit(with_op(appended(current(storage, f"c{i}"), b'{"content":"%d"}' % i, b"x" * 50)))
    before = read(storage)
    storage.close()
    whole = path.read_bytes()

    [[root]] = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = 'entry'")
    assert isinstance(root, int)
    for place in range((root - 1) * 4096, root * 4096, 13):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        damaged = tmp_path / f"{place}.db"
        damaged.write_bytes(flipped)
        try:
            storage = SQLiteStorage(damaged)
        except StorageError:
            continue
        try:
            after = read(storage)
        except MemciError:
            continue
        finally:
            storage.close()
        assert after == before, f"byte {place}"


def read(storage: SQLiteStorage) -> list[object]:
    names = ("c0", "c1", "c2")
    return [(storage.load(n), list(storage.entries(n)), list(storage.pages(n, state=PageState.ACTIVE))) for n in names]


def test_file_is_sound_for_any_sqlite(storage: SQLiteStorage, path: Path) -> None:
    """The file passes SQLite's own check."""
    for _ in range(50):
        append(storage, "a", b"x" * 900)

    assert execute(path, "PRAGMA integrity_check") == [("ok",)]
    assert sqlite3.sqlite_version_info >= (3, 37)  # STRICT tables: a `sqlite3` shell of 2021 or later can read it


@pytest.mark.parametrize("table", ["op", "compaction", "page"])
def test_flipped_bits_of_what_lookups_need_are_told_by_verify(tmp_path: Path, table: str) -> None:
    """A bit in a tree's inner bytes can hide a row from a lookup: verify() tells, where reading alone would not."""
    path = tmp_path / "whole.db"
    with Context.open(path, id="a", window=2000) as context:
        for i in range(6):
            context.append_turn(f"question {i} " * 20, "answer", op_id=f"op{i}")
            context.render()
        context.archive(keep=1)
        before = everything(context)
    whole = path.read_bytes()

    [[root]] = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", table)
    assert isinstance(root, int)
    for place in [*range((root - 1) * 4096, (root - 1) * 4096 + 64), *range((root - 1) * 4096 + 64, root * 4096, 79)]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        damaged = tmp_path / f"{place}.db"
        damaged.write_bytes(flipped)
        try:
            with Context.view(damaged, id="a", window=2000) as context:
                assert context.verify() or everything(context) == before, f"byte {place}"
        except MemciError:
            continue


@pytest.mark.parametrize("tree", ["page_active", "entry"])
def test_no_damage_of_a_tree_gives_a_row_twice_or_another_one(tmp_path: Path, tree: str) -> None:
    """What leads to a row may lead to any other row: it is the one that was asked for, or CorruptRecord."""
    path = tmp_path / "whole.db"
    for name in "ab":
        with Context.open(path, id=name, window=2_000) as context:
            for i in range(6):
                context.append_turn(f"question {i} " * 4, "answer")
            context.archive(keep=3)
    with closing(SQLiteStorage(path)) as storage:
        before = found_by(storage, tree)
    whole = path.read_bytes()

    [[root]] = execute(path, "SELECT rootpage FROM sqlite_schema WHERE name = ?", tree)
    assert isinstance(root, int)
    start = (root - 1) * 4096
    cells = range(start + 8, start + 8 + 2 * int.from_bytes(whole[start + 3 : start + 5], "big"), 2)
    pointers = [(at, whole[other : other + 2]) for at in cells for other in (at - 2, at + 2, at + 6) if other in cells]
    keys = [(at, bytes([whole[at] ^ 1 << bit])) for at in range(start + 4066, start + 4096) for bit in range(0, 8, 3)]
    errors = 0
    for at, content in [*pointers, *keys]:
        path.write_bytes(whole[:at] + content + whole[at + len(content) :])
        with closing(SQLiteStorage(path, read_only=True)) as storage:
            try:
                found = found_by(storage, tree)
            except CorruptRecord:
                errors += 1
            else:
                assert found == [row for row in before if row in found], f"byte {at}"
            with suppress(MemciError):
                Context.view(storage, id="a")
    assert errors > len(cells)


def found_by(storage: SQLiteStorage, tree: str) -> Sequence[object]:
    if tree == "entry":
        return list(storage.entries("a", containing=b"question"))
    return list(storage.pages("a", state=PageState.ACTIVE))


def everything(context: Context) -> object:
    storage = context._parts.reader._storage
    return list(storage.ops("a")), list(storage.compactions("a")), list(storage.pages("a")), context.render()


def test_what_a_memory_has_erased_meanwhile_is_no_damage(tmp_path):
    """A check that has read the words of a memory before does not take their erasure for damage."""
    storage = SQLiteStorage(tmp_path / "agent.db")
    with closing(storage), Context.open(storage, "alice", window=4_000) as context:
        for day in range(6):
            context.append_turn(f"What about HAT{day}?", {"role": "assistant", "content": f"{day} seats are left."})
        context.flush()
        before = context.verify()

        context.erase(1)
        context.flush()

        assert before == context.verify() == []
