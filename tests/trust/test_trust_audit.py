"""What adopters ask for: another owner's context is refused, exports are signed, and the audit log has no text."""

import contextlib
import json
import stat

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.errors import CorruptRecord, InvalidSetting, StorageUnavailable
from memci.history.erase import erase
from memci.storage import FilesystemStorage
from memci.storage.audit import mark

from ..door import open_context

KEY = b"sixteen bytes or more"


@pytest.fixture(params=["ram", "file", "folder"])
def store(request, tmp_path):
    """An open store of each kind."""
    made = {
        "ram": EphemeralStorage,
        "file": lambda: SQLiteStorage(tmp_path / "agent.db"),
        "folder": lambda: FilesystemStorage(tmp_path / "agent"),
    }[request.param]()
    with contextlib.closing(made):
        yield made


def talk(store, id="alice", **given):  # noqa: A002
    context = open_context(store, id=id, window=4_000, **given)
    context.append_turn("my secret is marzipan", {"role": "assistant", "content": "noted"})
    return context


def test_context_of_another_owner_is_refused_unless_asked_for(store):
    """Nothing is read or changed for another owner by mistake; asked for, the change is stored at once."""
    talk(store, owner="ada").close()

    with pytest.raises(InvalidSetting, match="'alice' belongs to 'ada': leave owner out, or pass change_owner=True"):
        open_context(store, id="alice", owner="eve")
    assert open_context(store, id="alice").owner == open_context(store, id="alice", owner="ada").owner == "ada"

    open_context(store, id="alice", owner="eve", change_owner=True).close()

    assert open_context(store, id="alice").owner == "eve"
    assert [line["action"] for line in store.audit_log] == ["owner"]


def test_signed_export_is_checked(store):
    """With a key, a changed line or another key is refused, though whoever changed it could count the digest again."""
    lines = list(talk(store).export(key=KEY))
    plain = list(open_context(store, id="alice").export())

    with Context.import_(EphemeralStorage(), lines, key=KEY) as back:
        assert list(back.export(key=KEY)) == lines
    Context.import_(EphemeralStorage(), lines).close()  # who has no key reads it, unchecked
    for bad, key, reason in (
        (lines, b"another key of 16+ bytes", "not signed with this key"),
        (plain, KEY, "not signed: export it with the key"),
        ([*plain[:-1], plain[-1][:-1] + ',"hmac":"' + "0" * 64 + '"}'], KEY, "not signed with this key"),
        ([*plain[:-1], plain[-1][:-1] + ',"hmac":"é"}'], KEY, "not signed with this key"),
        ([*plain[:-1], plain[-1][:-1] + ',"hmac":7}'], KEY, "not signed with this key"),
    ):
        target = EphemeralStorage()
        with pytest.raises(InvalidSetting, match=reason):
            Context.import_(target, bad, key=key)
        assert not target.contexts()
    for key in (b"short", "a str of 16 chars", 5):
        with pytest.raises(InvalidSetting, match=r"at least 16 random bytes|key: expected bytes"):
            open_context(store, id="alice").export(key=key)


def test_audit_log_says_what_was_done_and_no_text(store):
    """Erasing, importing, exporting and the quarantine are logged before they begin; no message is.

    The names hold letters that a hexadecimal digest has not.
    """
    context = talk(store, owner="zoë")
    context.append_turn("next")
    Context.import_(store, list(context.export()), id="bob").close()
    context.flush()
    context.memory.quarantine("alice", 1)
    context.erase(1, 1)
    erase(store, context="bob")

    lines = list(store.audit_log)

    erasures = ["erase", "erased", "erase", "erased"]
    assert [line["action"] for line in lines] == ["export", "import", "quarantine", *erasures]
    named = [line["context"] for line in lines if line["action"] != "erased"]
    assert named == [mark(name) for name in ("alice", "bob", "alice", "alice", "bob")]
    assert {line.get("owner", mark("zoë")) for line in lines} == {mark("zoë")}
    assert (lines[3]["page"], lines[3]["entry"]) == (1, 1)
    assert not any(word in json.dumps(lines, ensure_ascii=False) for word in ("marzipan", "bob", "zoë"))


def test_audit_log_is_only_ever_added_to(tmp_path):
    """A line that a crash cut is not continued by the next one, and reading says that it is not whole."""
    path, log = tmp_path / "agent.db-audit", SQLiteStorage(tmp_path / "agent.db").audit_log
    log.add("erase", context="alice")
    path.write_bytes(path.read_bytes() + b'{"at":"20')
    log.add("erase", context="bob")

    assert path.read_bytes().count(b"\n") == 3
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = iter(log)
    assert next(lines)["context"] == mark("alice")
    with pytest.raises(CorruptRecord, match="seq 2"):
        next(lines)


def test_nothing_begins_that_can_not_be_logged(tmp_path):
    """An audit log that can't be written stops an erasure before anything changed."""
    context = talk(tmp_path / "agent.db")
    (tmp_path / "agent.db-audit").mkdir()

    with pytest.raises(StorageUnavailable, match="audit log"):
        context.erase(1)

    assert context.recall_page(1)
