"""`memci copy`: contexts go from one store to another, exactly; an interrupted copy goes on."""

import json
import re
from contextlib import closing

import pytest

from memci import Context
from memci.errors import InvalidSetting
from memci.history.copying import copy_contexts
from memci.memory import NullMemory
from memci.storage.opening import open_store
from memci.testing.storage.rows import append, everything


@pytest.fixture
def forked(store):
    """The store with a fork of a context whose window was compacted, clipped and edited."""
    with Context.open(store, "alice") as context:
        context.append_turn("x" * 9_000, {"role": "assistant", "content": "y " * 3_000}, op_id="long")
        context.render()
        context.fork("a fork of alice", at=20).close()
        context.undo()
    with Context.open(store, "a fork of alice", memory=NullMemory()) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hi."}, op_id="own")
    return store


def all_of(place):
    with closing(open_store(str(place), read_only=True)) as storage:
        names = [record.id for record in storage.contexts()]
        raw = [list(storage.entries(name, as_appended=True)) for name in names]
        return names, everything(storage, *names), raw, storage.contexts()


def test_copy_is_exact_when_it_goes_there_and_back(forked, run, tmp_path):
    """From a file to a folder and back: every row that can be read is the same, and the contexts go on."""
    folder, back = f"{tmp_path}/folder/", f"{tmp_path}/back.db"

    copied_now = json.loads(run("copy", forked, folder, "--json").stdout)
    assert (copied_now["copied"], copied_now["there"]) == (3, 0), "a parent that came before its fork counts once"
    assert run("copy", folder, back).exit_code == 0

    assert all_of(folder) == all_of(back) == all_of(forked)
    with Context.open(forked, "alice") as old, Context.open(back, "alice") as new:
        assert new.render() == old.render()
        assert new.verify() == []
    assert run("copy", back, back).exit_code == 2


def test_copy_goes_on_when_it_was_interrupted(forked, run, tmp_path):
    """What is there is passed over; a context that is another one is refused by its name, and stays."""
    target = tmp_path / "other.db"
    with closing(open_store(forked, read_only=True)) as source, closing(open_store(target)) as into:
        assert next(copy_contexts(source, into)) == ("alice", 122, True, "alice"), "a parent comes before its fork"

    assert json.loads(run("copy", forked, target, "--json").stdout)["there"] == 1
    assert all_of(target) == all_of(forked)
    with closing(open_store(forked, read_only=True)) as source, closing(open_store(target)) as into:
        append(into, "bob", b"another")
        with pytest.raises(InvalidSetting, match="'bob'"):
            list(copy_contexts(source, into))


def test_copy_when_another_owner_has_the_id(forked, run, tmp_path):
    """It is stored beside the other one, with its forks, and found by its owner; repeating it changes nothing."""
    target = tmp_path / "other.db"
    with Context.open(target, "alice", owner="zoe", window=4_000, memory=NullMemory()) as context:
        context.append_turn("of zoe")

    done = run("copy", forked, target)
    again = json.loads(run("copy", forked, target, "--json").stdout)

    assert done.stdout.endswith("  alice is alice∷ada there, where another owner has a context alice\n")
    assert (again["copied"], again["there"], again["renamed"]) == (0, 3, {"alice": "alice∷ada"})
    assert [(each.id, each.owner, each.parent) for each in Context.list(target)] == [
        ("a fork of alice", "ada", "alice∷ada"),
        ("alice", "zoe", None),
        ("alice∷ada", "ada", None),
        ("bob", "bob", None),
    ]
    for name in ("alice", "a fork of alice"):
        with Context.view(forked, name) as old, Context.view(target, name, owner="ada") as new:
            assert ([*new.messages()], new.verify()) == ([*old.messages()], [])


def test_copy_is_encrypted_where_there_is_a_key(forked, run, tmp_path, monkeypatch):
    """With a key the copy is encrypted, commands read it, doctor says so without a key, and --decrypt goes back."""
    sealed, back, key = tmp_path / "sealed.db", tmp_path / "back.db", tmp_path / "key"
    key.write_text("0123456789abcdef" * 4 + "\n")
    monkeypatch.setenv("MEMCI_KEY_FILE", str(key))

    assert run("copy", forked, sealed).exit_code == 0
    assert run("verify", sealed).exit_code == 0
    assert run("copy", sealed, back, "--decrypt").exit_code == 0

    assert all_of(sealed) == all_of(back) == all_of(forked)
    assert run("consolidate", sealed).exit_code == 0
    assert "marker-7" in run("search", sealed, "marker-7", "--owner", "ada").stdout
    key.write_text("fedcba9876543210" * 4 + "\n" + key.read_text())
    assert json.loads(run("rotate", sealed, "--json").stdout)["wrapped"] == 4
    assert run("rotate", back).exit_code == 2
    key.write_text(key.read_text().split()[0])
    assert run("search", sealed, "marker-7", "--owner", "ada").exit_code == 0
    assert run("erase", sealed, "--context", "bob", "--page", "1", "--yes").exit_code == 0
    monkeypatch.delenv("MEMCI_KEY_FILE")
    assert run("verify", back).exit_code == 0
    for command in ("verify", "inspect", "export"):
        result = run(command, sealed)
        assert result.exit_code == 2, command
        assert "MEMCI_KEY" in result.stderr
    findings = {each["name"]: each["text"] for each in json.loads(run("doctor", sealed, "--json").stdout)["findings"]}
    assert findings["encryption"].startswith("AES-256-GCM, every context")
    assert ", 2 of them erased" in findings["contexts"], "a tombstone is seen without the key"
    key_name = re.search(r"the key '(\w{8})', not given here", findings["key"])[0]
    monkeypatch.setenv("MEMCI_KEY", "ab" * 32)
    for command in ("ui", "inspect", "doctor"):
        assert key_name in run(command, sealed).output, command
    listed = json.loads(run("inspect", sealed, "--json").stdout)["contexts"]
    assert [(each["id"], each["window"]) for each in listed] == [(name, None) for name in all_of(forked)[0]]
    assert run("export", sealed, "--context", "alice").exit_code == 2
    checked = run("verify", sealed)
    assert checked.exit_code == 1
    assert "not checked" in checked.stdout
    assert "salvage" not in checked.stdout
    checks = json.loads(run("verify", sealed, "--json").stdout)
    assert not checks["well"]
    assert all("encrypted with the key" in each["not_checked"] for each in checks["contexts"])
    assert not any(each["problems"] for each in checks["contexts"])
    monkeypatch.setenv("MEMCI_KEY", "not a key")
    assert run("verify", sealed).exit_code == 2
