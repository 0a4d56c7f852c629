"""`memci export` and `memci import`: what goes out comes back, whole or not at all."""

import json
import stat

import pytest

from memci import Context


def written(run, store, path, *arguments):
    """The file *path* with an export."""
    result = run("export", store, *arguments, "-o", path)
    assert result.exit_code == 0, result.stderr
    return path


@pytest.mark.parametrize("target", ["other.db", "other/"])
def test_import_when_all_was_exported(run, store, tmp_path, target):
    """A store goes into another one of either kind, and out of it again, byte for byte."""
    before = store.read_bytes()
    file = written(run, store, tmp_path / "all.jsonl", "--all")

    result = run("import", f"{tmp_path}/{target}", file)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == ["alice: 120 messages imported", "bob: 2 messages imported"]
    assert run("verify", f"{tmp_path}/{target}").exit_code == 0
    again = written(run, f"{tmp_path}/{target}", tmp_path / "again.jsonl", "--all")
    assert again.read_bytes() == file.read_bytes()
    assert (tmp_path / "other").is_dir() == target.endswith("/")
    assert store.read_bytes() == before


def test_export_when_no_file_is_named(run, store, tmp_path):
    """Standard output has the same lines as a file, in UTF-8, and nothing else; - reads them."""
    file = written(run, store, tmp_path / "alice.jsonl", "--context", "alice")

    result = run("export", store, "--context", "alice")

    assert result.stdout_bytes == file.read_bytes()
    imported = run("import", store, "-", "--id", "alice-2", input=result.stdout_bytes)
    assert imported.stdout == "alice-2: 120 messages imported\n"


def test_export_when_the_store_has_one_context(run, store, tmp_path):
    """The only context of a store need not be named; one of several has to be."""
    file = written(run, store, tmp_path / "bob.jsonl", "-c", "bob")
    run("import", tmp_path / "one.db", file)

    assert run("export", tmp_path / "one.db").stdout == file.read_text()
    result = run("export", store)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--context: name one: agent.db has 'alice', 'bob'" in result.stderr


def test_export_when_json_is_wanted(run, store, tmp_path):
    """--json says what was written; the file is only for its owner's eyes."""
    file = tmp_path / "all.jsonl"

    result = run("export", store, "--all", "-o", file, "--json")

    told = json.loads(result.stdout)
    assert told["contexts"] == ["alice", "bob"]
    assert told["lines"] == len(file.read_text().splitlines())
    assert told["bytes"] == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    told = json.loads(run("import", tmp_path / "new.db", file, "--json").stdout)
    assert told["contexts"] == [{"id": "alice", "messages": 120}, {"id": "bob", "messages": 2}]


def test_import_when_it_is_a_chat(run, store, tmp_path):
    """An export as a chat comes back as a context of the same messages, once it has a name and a window."""
    chat = written(run, store, tmp_path / "chat.jsonl", "-c", "alice", "--chat")

    nameless, endless = run("import", tmp_path / "c.db", chat), run("import", tmp_path / "c.db", chat, "--id", "a")
    result = run("import", tmp_path / "c.db", chat, "--id", "a", "--window", 2_000)

    assert "--id: a chat has no name" in nameless.stderr
    assert "--window: a chat does not say" in endless.stderr
    assert result.exit_code == 0
    assert run("export", tmp_path / "c.db", "--chat").stdout == chat.read_text()
    with Context.open(tmp_path / "c.db", id="a") as context, Context.open(store, id="alice") as before:
        assert list(context.messages()) == list(before.messages())
        assert context.render()[0]["content"].startswith("Be brief.")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON"),
        (lambda text: "".join(text.splitlines(keepends=True)[:-1]), "it was cut"),
        (lambda text: text.replace("marker-7,", "mirker-7,"), "line 16: the message was changed"),
        (lambda text: text.replace('{"memci":1', '{"memci":3'), "a later memci exported it"),
        (lambda _: "", "it is empty"),
        (lambda _: '{"text": "no chat"}', "or an export of memci"),
        (lambda _: "SQLite format 3\0", "is a SQLite file"),
    ],
)
def test_import_when_the_file_is_damaged(run, store, tmp_path, change, told):
    """What is wrong is said in one line, and no store is made."""
    file = written(run, store, tmp_path / "alice.jsonl", "-c", "alice")
    file.write_text(change(file.read_text()))

    result = run("import", tmp_path / "new.db", file)

    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "new.db").exists()


def test_import_when_one_of_several_is_there(run, store, tmp_path):
    """Nothing of a file is imported if one of its contexts is there already."""
    both = written(run, store, tmp_path / "all.jsonl", "--all")
    bob = written(run, store, tmp_path / "bob.jsonl", "-c", "bob")
    run("import", tmp_path / "new.db", bob)

    result = run("import", tmp_path / "new.db", both)

    assert result.exit_code == 2
    assert "there is a context 'bob' already" in result.stderr
    assert len(json.loads(run("inspect", tmp_path / "new.db", "--json").stdout)["contexts"]) == 1
    assert "has 2 contexts" in run("import", tmp_path / "new.db", both, "--id", "one").stderr


def test_export_when_the_store_is_damaged(run, store, tmp_path):
    """A damaged message is told, and no half of an export is left."""
    store.write_bytes(store.read_bytes().replace(b"Remember marker-7,", b"Remember mirker-7,"))

    result = run("export", store, "-c", "alice", "-o", tmp_path / "alice.jsonl")

    assert result.exit_code == 2
    assert "seq 14" in result.stderr
    assert not (tmp_path / "alice.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["export", "STORE", "--all", "--chat"], "--all: takes every context"),
        (["export", "STORE", "--all", "-c", "bob"], "--all: takes every context"),
        (["export", "STORE", "-c", "bob", "--json"], "--json: the export itself"),
        (["export", "STORE", "-c", "carol"], "has no context 'carol'"),
        (["export", "STORE", "-c", "bob", "-o", "STORE"], "is there already"),
        (["export", "STORE", "-c", "bob", "-o", "STORE/no/file"], "can't be made"),
        (["export", "STORE.none"], "there is no such file"),
        (["import", "STORE", "STORE.none"], "there is no such file"),
        (["import", "STORE", "STORE"], "is a SQLite file"),
    ],
)
def test_exports_when_an_argument_makes_no_sense(run, store, arguments, told):
    """An argument that makes no sense ends with 2 and one line; the store keeps its bytes."""
    before = store.read_bytes()

    result = run(*(each.replace("STORE", str(store)) for each in arguments))

    assert (result.exit_code, result.stdout) == (2, "")
    assert told in result.stderr
    assert result.stderr.count("\n") == 1
    assert store.read_bytes() == before


def test_import_when_an_export_is_given_a_window(run, store, tmp_path):
    """The window of an export is its own: one that is given is refused, not ignored."""
    file = written(run, store, tmp_path / "bob.jsonl", "-c", "bob")

    result = run("import", tmp_path / "new.db", file, "--window", 2_000)

    assert result.exit_code == 2
    assert "--window and --model are for chats" in result.stderr
