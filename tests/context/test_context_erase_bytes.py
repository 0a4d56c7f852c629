"""Erasing whole contexts and owners, and the bytes: nothing is left in any file."""

import contextlib
import sys
from pathlib import Path

import pytest

from memci import SQLiteStorage
from memci.errors import InvalidSetting, WriteConflict
from memci.history.erase import erase, finish_erasures
from memci.history.erasures import ErasureReceipt
from memci.storage.protocol import Erasure

from .erasures import secret, shown, well
from .kit import (
    ON_DISK,
    again,
    call,
    calling,
    opened,
    own_entries,
    store,
    talked,
    tells,
    turn,
)

sys.path.insert(0, str(Path(__file__).parent.parent / "machine"))


# -- whole contexts, and owners


def test_whole_context_is_erased(storage):
    """A context goes with all that is its own; a new one of the same name knows nothing of it."""
    context = talked(5, size=60, storage=storage, window=1_000)
    context.append_turn(*turn(6), op_id="op")
    opened(storage, id="other").append_turn("stays")
    compactions = len(list(storage.compactions("alice")))

    receipt = erase(storage, context="alice")

    assert receipt == ErasureReceipt(1, 6, 12, compactions, 1, "done")
    assert [record.id for record in storage.contexts()] == ["other"]
    with pytest.raises(WriteConflict):
        context.render()
    with pytest.raises(WriteConflict):
        context.append_turn("late")
    fresh = opened(storage)
    assert list(fresh.messages()) == []
    assert not fresh.append_turn(*turn(6), op_id="op").duplicate
    well(fresh)


def test_owner_is_erased_with_all_contexts(storage):
    """All contexts of an owner go, forks among them; a name that only looks alike stays."""
    context = talked(2, storage=storage, owner="carol")
    context.fork("child").append_turn("x")
    for name, owner in (("1", "carol-2"), ("2", "Carol"), ("3", "caro%"), ("4", "c")):
        opened(storage, id=name, owner=owner).append_turn("stays")

    receipt = erase(storage, owner="carol")

    assert (receipt.contexts, receipt.entries) == (2, 5)
    assert [record.id for record in storage.contexts()] == ["1", "2", "3", "4"]


def test_parent_of_a_fork_that_stays_is_not_erased(storage):
    """A fork can't lose the past that it shares: it is named, nothing is erased; with the fork, or after it, all is."""
    context = talked(2, storage=storage)
    fork = context.fork("bob")

    with pytest.raises(InvalidSetting, match="bob"):
        erase(storage, context="alice")
    assert fork.recall_page(1) == list(turn(1))

    erase(storage, context="bob")
    erase(storage, context="alice")
    assert list(storage.contexts()) == []


@pytest.mark.parametrize(
    "given", [{}, {"context": "alice", "owner": "bob"}, {"context": "nobody"}, {"owner": "nobody"}]
)
def test_erasing_nobody_is_refused(given, storage):
    """Who names nothing, both, or what there is not is told so."""
    talked(1, storage=storage)

    with pytest.raises(InvalidSetting):
        erase(storage, **given)

    assert again(storage).recall_page(1) == list(turn(1))


# -- the bytes


def canaries(storage):
    """Fill a context with canaries in every place, and return it."""
    context = opened(storage, window=1_200, contents_tokens=120)
    context.append_turn(*turn(1))
    context.append_turn(*secret(1), op_id="first", at="1999-09-09T09:09:09+00:00")
    context.append_turn(*secret(2))
    for number in range(4, 20):
        context.append_turn(*turn(number, 30))
        if number % 3 == 0:
            context.recall_page(2)
            context.archive(keep=1)
    reply = calling(call("r1", "recall_page", {"index": 2, "entry": None}))
    context.append_turn("What was it?", reply)
    context.append_turn(*context.answers(reply), {"role": "assistant", "content": "I see."})
    context.append_turn(*turn(21))
    context.archive(keep=0)
    assert sum("canary1" in compaction.text for compaction in storage.compactions("alice")) >= 3
    return context


@pytest.mark.parametrize("kind", ON_DISK)
@pytest.mark.parametrize("scope", ["page", "entries", "context", "owner"])
@pytest.mark.parametrize("closed_between", [False, True])
def test_no_byte_of_it_is_left_on_disk(scope, kind, closed_between, tmp_path):
    """Content, names, arguments, ids, times, titles in old compactions: nothing is left in any file of the store."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = canaries(storage)
        opened(storage, id="other", owner="other").append_turn("stays-there")
    assert tells(tmp_path, "canary1-question", "canary1-argument", "canary1-id", "1999-09-09")
    storage = store(kind, tmp_path)
    context = again(storage)
    if scope == "page":
        context.erase(2)
    elif scope == "entries":
        for ordinal in (5, 4, 3, 2, 1):
            receipt = context.erase(2, ordinal)
    else:
        receipt = erase(storage, **{scope: "alice"})
        assert receipt.physical == "done"

    if closed_between:
        storage.close()
        storage = store(kind, tmp_path)
        storage.contexts()
    else:  # a copy: opening a live SQLite file by hand would end its locks
        import shutil
        import subprocess

        subprocess.run(["cp", "-r", str(tmp_path), f"{tmp_path}-copy"], check=True)
        assert tells(Path(f"{tmp_path}-copy"), "canary1", "1999-09-09") == []
        assert tells(Path(f"{tmp_path}-copy"), "stays-there")
        shutil.rmtree(f"{tmp_path}-copy")
    storage.close()

    assert tells(tmp_path, "canary1", "1999-09-09") == []
    assert tells(tmp_path, "stays-there")
    assert bool(tells(tmp_path, "canary2-argument")) == (scope in ("page", "entries"))


@pytest.mark.parametrize("kind", ON_DISK)
def test_no_byte_of_it_is_left_of_a_fork(kind, tmp_path):
    """Compactions and answers of forks that told of it are gone from the files, too."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = canaries(storage)
        fork = context.fork("bob")
        fork.append_turn(*turn(22, 200))
        fork.archive(keep=0)
        past = again(storage, at=8).fork("carol")
        past.archive(keep=0)

        fork.erase(2)

        for name in ("alice", "bob", "carol"):
            well(again(storage, id=name))

    assert tells(tmp_path, "canary1", "1999-09-09") == []


def test_erasure_is_pending_while_another_reads_an_older_state(tmp_path):
    """A reader of another connection holds the old bytes: the receipt says so; once it is gone, erasing ends it."""
    import apsw

    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db", busy_timeout_seconds=0.05)) as storage:
        context = canaries(storage)
        reader = apsw.Connection(str(tmp_path / "agent.db"))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entry").fetchall()

        receipt = context.erase(2)

        assert receipt.physical == "pending"
        assert (receipt.pages, "canary1" in shown(context)) == (1, False)
        assert not storage.erase(Erasure()).scrubbed
        reader.execute("COMMIT")
        reader.close()
        assert storage.erase(Erasure()).scrubbed

    assert tells(tmp_path, "canary1") == []


def test_large_file_is_written_again_when_asked(tmp_path, monkeypatch):
    """A file above the limit is not written again at once: the receipt says so, and `finish_erasures` does it."""
    monkeypatch.setattr("memci.storage.sqlite.write._MOST_BYTES", 0)
    with contextlib.closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        context = canaries(storage)

        receipt = context.erase(2)

        assert receipt.physical == "pending"
        done = finish_erasures(storage)
        assert (done.physical, done.memory, done.pages) == ("done", "done", 0)

    assert tells(tmp_path, "canary1") == []


def test_store_keeps_no_entry_more_or_less(storage):
    """A tombstone takes the place of its entry: the messages are as many as they were."""
    context = talked(4, storage=storage)
    kept = own_entries(storage)

    context.erase(2)

    assert own_entries(storage) == kept
    assert context.report().messages == 8
