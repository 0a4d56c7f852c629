"""S10, S11, S12: names and texts are never statements, paths or programs to a store."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from memci import Context, InvalidMessage, PageNotFound, SQLiteStorage
from memci.errors import InvalidSetting, MemciError
from memci.storage import FilesystemStorage
from tests.faults import fuzz_files
from tests.faults.fuzz_targets import text

from .audit import events
from .kit import agent

QUOTES = ("'", '"', "`", "]", ";", "--", "/*", "*/", "%", "_", "\\", "\x00", "?", "?1", ":id", "@id", "$id", ")", "||")
CLAUSES = (
    *("OR 1=1", "OR ''='", "UNION SELECT sql FROM sqlite_schema", "DROP TABLE entry", "DELETE FROM context"),
    *("ATTACH 'x' AS x",),
    *("PRAGMA writable_schema=ON", "VACUUM INTO 'x.db'", "load_extension('x')", "randomblob(1e9)", "x'00'", "1"),
    *("NULL",),
    *("UPDATE page SET place=3", "INSERT INTO op VALUES (1,1,1,1,1,1)", "LIKE '%'", "GLOB '*'", "MATCH 'a'", "{json}"),
)  # fmt: skip
PATHS = (
    *("../x", "../../etc/passwd", "/etc/passwd", "..", ".", "~", "~root", "a/b", "a\\b", "C:\\x", "\\\\host\\x"),
    *("con", "nul"),
    *("x\x00y", "x\ny", "-rf", "*", "?", "$HOME", "$(id)", "`id`", ".tmp", "lock", "context", "entries"),
    *("a.b", " a", "a ", "a."),
    *("a" * 300, "é" * 200, "e\u0301", "\u00e9", "ALICE", "alice", "Alice", "acme", "acme-corp", "a_b", "aXb"),
    *("%2e%2e%2f",),
)  # fmt: skip


def injections(rng: Random, count: int) -> Iterator[str]:
    """Yield *count* different texts that a statement put together from texts would run."""
    seen = set()
    while len(seen) < count:
        parts = [rng.choice(QUOTES + CLAUSES) for _ in range(rng.randrange(1, 6))]
        made = rng.choice(("", " ")).join(parts) + rng.choice(("", text(rng, 3)))
        if made not in seen and made:
            seen.add(made)
            yield made


def schema(path: Path) -> list[tuple]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_schema "
            "WHERE tbl_name NOT GLOB 'memory_*' AND name <> 'sqlite_sequence' ORDER BY name"
        ).fetchall()
    finally:
        connection.close()


def test_two_thousand_injections_are_stored_as_they_are(folder):
    """Whatever parameter takes it, a text with SQL in it is kept as it is, or refused; nothing else happens."""
    rng = Random(6)
    texts = list(injections(rng, 2_000))
    path = folder / "agent.db"
    storage = SQLiteStorage(path, durability="fast")
    context = agent(storage, id="alice")
    said, opened = [], {"alice"}
    before = None
    for at, each in enumerate(texts):
        kept = each.encode("utf-8", "replace").decode()
        if at == 1:
            before = [path.name for path in folder.iterdir()]
        if at % 10 == 0:
            made = agent(storage, id=kept, owner=kept, system=each)
            opened.add(kept)
            made.append_turn("Hi.")
            assert next(made.messages())["content"] == "Hi."
        elif at % 10 in (1, 5, 6):
            for index in (each, kept):
                with pytest.raises(PageNotFound):
                    context.recall_page(index)
        elif at % 10 == 2:
            with pytest.raises(InvalidMessage):
                context.append_turn({"role": "tool", "tool_call_id": each, "content": each})
        elif at % 10 == 3:
            with pytest.raises(InvalidSetting):
                context.append_turn("Hi.", at=each)
        else:
            call = {"id": each, "type": "function", "function": {"name": each, "arguments": each}}
            message = {"role": "assistant", "content": each, each: each, "tool_calls": [call]}
            context.append_turn(
                message,
                {"role": "tool", "tool_call_id": each, "content": each},
                op_id=f"{at} {kept}",
                opens_page=at % 7 == 0,
            )
            said += [message, {"role": "tool", "tool_call_id": each, "content": each}]

    assert list(context.messages()) == said
    assert {record.id for record in storage.contexts()} == opened
    assert context.verify() == []
    late = {"role": "tool", "tool_call_id": texts[4], "content": "late"}
    context.append_turn("Go on.", late)
    storage.close()
    fresh = folder / "fresh.db"
    SQLiteStorage(fresh).close()
    assert schema(path) == schema(fresh)
    made = {each.name.removesuffix("-witness") for each in folder.iterdir() if not each.name.startswith("fresh")}
    assert made == {"agent.db"}
    assert before is not None and set(before) <= {"agent.db", "agent.db-wal", "agent.db-shm", "agent.db-witness"}


def test_context_is_found_by_its_whole_name_only(folder):
    """No name is a pattern or a prefix of another one: what one says is not in the other."""
    names = ("acme", "acme-corp", "a_b", "aXb", "a%", "%", "_", "ACME", "é", "e\u0301", "acme ", "acme\x00", "*", "a*")
    storage = SQLiteStorage(folder / "agent.db", durability="fast")

    for name in names:
        agent(storage, id=name).append_turn(f"I am {name!r}.")

    found = {name: [each["content"] for each in agent(storage, id=name).messages()] for name in names}
    storage.close()
    assert found == {name: [f"I am {name!r}."] for name in names}


@pytest.mark.parametrize("store", fuzz_files.STORES)
def test_damaged_store_runs_nothing(store):
    """Reading what somebody changed on disk imports, compiles and starts nothing."""
    for seed in range(3):
        fuzz_files.damaged(Random(seed), store)

    running = (
        "import exec compile subprocess. os.system os.exec os.fork os.posix_spawn ctypes. pickle. marshal. socket."
    )
    with events(*running.split(), "code.__new__", "function.__new__") as seen:
        for seed in range(100, 112 if store == "files" else 125):
            fuzz_files.damaged(Random(seed), store)

    assert seen == []


def test_message_with_the_keys_of_object_formats_stays_a_dict(folder):
    """Keys by which other libraries revive objects are keys like any other."""
    tricks = [
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "id"}},
        {"py/object": "subprocess.Popen", "py/reduce": [{"py/type": "os.system"}, {"py/tuple": ["id"]}]},
        {
            "__reduce__": ["os.system", ["id"]],
            "__class__": "os",
            "__type__": "x",
            "$type": "System.Diagnostics.Process",
        },
        {"!!python/object/apply:os.system": ["id"], "@class": "java.lang.Runtime", "__proto__": {"admin": True}},
    ]
    storage = SQLiteStorage(folder / "agent.db")
    context = agent(storage)

    for trick in tricks:
        context.append_turn({"role": "user", "content": "Hi.", "extra": trick} | trick)

    again = list(agent(storage).messages())
    storage.close()
    assert again == [{"role": "user", "content": "Hi.", "extra": trick} | trick for trick in tricks]
    assert all(type(message["extra"]) is dict for message in again)


def test_name_is_never_a_path(folder):
    """Whatever a context is called, only files below the store's folder are touched, under names of our making."""
    rng = Random(7)
    names = {*PATHS, *(text(rng, 8) for _ in range(80))} - {""}
    root = folder / "agent"
    (folder / "beside").write_text("mine")
    storage = FilesystemStorage(root)
    agent(storage, id="first").append_turn("warm")
    kept = {}

    with events("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink") as seen:
        for name in names:
            try:
                agent(storage, id=name, owner=name).append_turn(name)
            except InvalidSetting:
                assert not name.isprintable(), "only what has no form in UTF-8 is refused"
            else:
                kept[name] = list(agent(storage, id=name).messages())

    assert kept == {name: [{"role": "user", "content": name}] for name in kept}
    assert {record.id for record in storage.contexts()} == {"first", *kept}
    storage.close()
    assert sorted(each.name for each in folder.iterdir()) == ["agent", "beside"]
    made = {each.name for each in root.rglob("*")}
    assert all(name.isascii() and name.replace("-", "").replace(".", "").replace("_", "").isalnum() for name in made)
    strange = {
        str(args[0])
        for _, args in seen
        if isinstance(args[0], (str, bytes, os.PathLike)) and _outside(args[0], root, made)
    }
    assert strange == set()


def _outside(path: object, root: Path, made: set[str]) -> bool:
    told = Path(os.fsdecode(path))
    if told.is_absolute():
        return not told.is_relative_to(root) and told != root.parent
    return any(part == ".." for part in told.parts)


@pytest.mark.parametrize("kind", ["symlink", "symlink to a copy", "fifo", "folder"])
def test_planted_file_is_not_followed(folder, kind):
    """Where something else is than a file of ours, the store says so, and what it points to stays as it was."""
    root, victim, copy = folder / "agent", folder / "victim", folder / "copy"
    storage = FilesystemStorage(root)
    agent(storage).append_turn("Hi.")
    storage.close()
    victim.write_text("mine")
    files = [each for each in sorted(root.rglob("*")) if each.is_file() and each.stat().st_size]

    for planted in files:
        held = planted.read_bytes()
        planted.unlink()
        if kind == "symlink":
            planted.symlink_to(victim)
        elif kind == "symlink to a copy":
            copy.write_bytes(held)
            planted.symlink_to(copy)
        elif kind == "fifo":
            os.mkfifo(planted)
        else:
            planted.mkdir()
        with pytest.raises((MemciError, OSError)):
            storage = FilesystemStorage(root)
            try:
                context = Context.open(storage, id="alice", counter=len)
                context.append_turn("More.")
                assert [each["content"] for each in context.messages()] != ["Hi.", "More."]
                raise InvalidSetting("id", "it is another context")
            finally:
                storage.close()
        assert not copy.exists() or copy.read_bytes() == held
        planted.rmdir() if kind == "folder" else planted.unlink()
        planted.write_bytes(held)

    assert victim.read_text() == "mine"
    assert files
