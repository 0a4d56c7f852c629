"""Erasures as jobs: nothing of other contexts outlives them, and what a kill or an error left is finished."""

import json
import multiprocessing
import os
from datetime import UTC, date, datetime

import pytest

from memci import Context, EphemeralStorage, Policy, SQLiteStorage
from memci.errors import CorruptRecord, Erased, InvalidSetting, StorageFull, WriteConflict
from memci.history.backup import repeat_erasures
from memci.history.copying import copy_contexts
from memci.history.erase import erase, finish_erasures
from memci.history.erasures import unfinished_erasures
from memci.history.retention import erase_outdated, find_outdated
from memci.memory.inspect import owners

from .erasures import shown
from .kit import opened, store, tells, turn

WORD = "canaryqua"
ASKED = "What is the launch code of the silo?"
REMEMBER = Policy(remember=True)


def diary(storage):
    """Return a context of ann's that was told the word, and whose memory knows it."""
    context = Context.open(storage, "diary", owner="ann", window=16_000)
    context.append_turn(f"The launch code of the silo is {WORD}, keep it.", {"role": "assistant", "content": "Noted."})
    for number in range(6):
        context.append_turn(*turn(number))
    context.archive(keep=0)
    context.flush()
    return context


def asking(storage, name="work", *, stored=True):
    """Return another context of ann's that shows the word for its open turn."""
    context = Context.open(storage, name, owner="ann", window=16_000, policy=REMEMBER)
    context.append_turn("hello", {"role": "assistant", "content": "hi"})
    assert WORD in json.dumps(context.render(ASKED))
    if stored:
        context.append_turn(ASKED)
        assert WORD in shown(context)
    return context


def test_another_owner_gets_no_words_of_other_contexts(storage):
    """A fork, an export, a copy and a change of the owner carry what the messages hold, and nothing beside them."""
    diary(storage)
    work = asking(storage)
    fork = work.fork("fork", owner="bob")
    lines = list(work.export())
    moved = asking(storage, "moved")
    moved.archive(keep=0)
    moved.close()
    changed = Context.open(storage, "moved", owner="bob", change_owner=True)
    target = EphemeralStorage()
    copied = {each.id for each in copy_contexts(storage, target)}

    assert WORD not in "".join(lines) + shown(fork) + "".join(fork.export()) + shown(changed)
    assert WORD not in "".join(changed.export())
    assert copied == {"diary", "work", "fork", "moved"}
    assert not any(WORD in record.state for record in target.contexts())
    assert [each for each in (work, fork, changed) if each.verify()] == []
    assert shown(work).count(WORD), "the owner's own rendering stays"


@pytest.mark.parametrize("scope", ["page", "entry", "context", "owner"])
@pytest.mark.parametrize("kind", ["sqlite", "files"])
def test_words_found_by_other_contexts_are_erased(scope, kind, tmp_path):
    """Whatever is erased, no byte of it stays in what other contexts of the owner found, or in what a handle keeps."""
    storage = store(kind, tmp_path)
    first = diary(storage)
    work, held = asking(storage), asking(storage, "held", stored=False)
    work.archive(keep=1)
    fork = work.fork("fork")
    if scope in {"page", "entry"}:
        receipt = first.erase(1, 1 if scope == "entry" else None)
    else:
        first.close()
        receipt = erase(storage, **({"context": "diary"} if scope == "context" else {"owner": "ann"}))

    assert (receipt.physical, receipt.memory) == ("done", "done")
    assert tells(tmp_path, WORD) == []
    if scope != "owner":
        for context in (work, fork, held):
            context.refresh() if context is not held else None
            assert WORD not in json.dumps(context.render(ASKED) if context is held else context.render())
            assert context.verify() == []
        held.append_turn(ASKED)
        assert WORD not in shown(held)
        assert tells(tmp_path, WORD) == []


def test_words_that_the_owner_before_found_go_whoever_shares_them():
    """The memory of the owner before knows the context; what it found of it goes, also if a fork is erased from."""
    storage = EphemeralStorage()
    diary(storage).close()
    asking(storage)
    fork = Context.open(storage, "diary", owner="bob", change_owner=True).fork("fork")
    assert WORD in storage.load("work")[0].state

    fork.erase(1)

    assert WORD not in storage.load("work")[0].state


def test_words_found_after_the_page_was_stored_elsewhere_are_not_kept(storage):
    """A handle that has searched, and not appended yet, stores nothing that was erased meanwhile."""
    first = diary(storage)
    held = asking(storage, "held", stored=False)

    first.erase(1)
    held.append_turn(ASKED)

    assert WORD not in shown(held) + storage.load("held")[0].state


def test_refused_erasure_leaves_the_memory_as_it_is(storage):
    """A context that a fork shares is not erased: others find what it said, as before."""
    diary(storage).fork("fork")

    with pytest.raises(InvalidSetting, match="fork"):
        erase(storage, context="diary")

    asking(storage)


def test_repeated_erasure_returns_its_receipt(storage):
    """Of a page, an entry, a context and an owner; what was never erased by name still says so."""
    context = diary(storage)
    receipts = context.erase(2, 1), context.erase(2), context.erase(1)

    assert [each.pages for each in receipts] == [0, 1, 1]
    assert (context.erase(2, 1), context.erase(2), context.erase(1)) == receipts
    with pytest.raises(Erased):
        context.erase(1, 1)
    context.close()
    whole = erase(storage, context="diary")
    assert erase(storage, context="diary") == erase(storage, context="diary", owner="ann") == whole
    again = diary(storage)
    again.erase(2)
    with pytest.raises(Erased):  # the receipt of this entry was that of the context before
        again.erase(2, 1)
    again.close()
    owned = erase(storage, owner="ann")
    assert erase(storage, owner="ann") == owned
    for owner in ("ann", "bob"):  # the context of the second one has another name in the store
        opened(storage, owner=owner, new=True).append_turn(*turn(1))
    beside = erase(storage, context="alice", owner="bob")
    assert erase(storage, context="alice", owner="bob") == beside


def test_job_of_a_retention_answers_for_each_of_its_pages(storage):
    """Asked for a page between the first and the last, its receipt is there; a page that another job erased has its
    own."""
    context = opened(storage)
    for number in range(6):
        context.append_turn(*turn(number), at=f"2026-01-0{number + 1}")
    alone = context.erase(3)
    found = list(find_outdated(storage, datetime(2026, 1, 6, tzinfo=UTC)))
    [receipt] = erase_outdated(storage, found)
    context.refresh()

    assert [each.pages for each in found] == [(1, 2, 4, 5)]
    assert [context.erase(page) for page in (1, 2, 4, 5)] == [receipt] * 4
    assert context.erase(3) == alone
    assert context.erase(6) not in (receipt, alone)
    with pytest.raises(Erased):
        context.erase(2, 1)


@pytest.mark.parametrize(
    "before",
    ["2026-01-06", "2026-01-06T00:00:00", datetime.fromisoformat("2026-01-06"), datetime(2026, 1, 6, tzinfo=UTC)],
)
def test_a_retention_takes_any_date(before):
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn(*turn(1), at="2026-01-05T23:59:59+00:00")
    question, *answers = turn(2)
    context.append_turn(question, at="2026-01-05T23:59:59+00:00")
    context.append_turn(*answers, at="2026-01-06T00:00:00+00:00")  # a page is as old as its newest message

    assert [page.index for page in context.pages()] == [1, 2]
    assert [found.pages for found in find_outdated(storage, before)] == [(1,)]


def test_an_erased_message_makes_no_page_younger():
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn(*turn(1), at="2026-01-05T10:00:00+00:00")
    context.append_turn(*turn(2), at="2026-01-07T10:00:00+00:00")
    context.erase(1, 2)

    assert [found.pages for found in find_outdated(storage, "2026-01-06")] == [(1,)]


def test_a_message_that_cannot_be_read_keeps_nothing_of_a_retention():
    """It is as old as the next one that can be read, and goes with its page."""
    storage = EphemeralStorage()
    context = opened(storage)
    for number in range(1, 5):
        context.append_turn(*turn(number), at=f"2026-01-0{number}T10:00:00+00:00")
    context.archive(keep=1)
    storage._connection.execute("UPDATE entry SET body = x'00' WHERE instr(body, 'answer 2 ')")

    found = list(find_outdated(storage, "2026-01-04"))
    erase_outdated(storage, found)

    assert [each.pages for each in found] == [(1, 2, 3)]
    assert context.verify() == []


def test_a_context_that_cannot_be_opened_keeps_no_other_from_a_retention():
    """Its error is raised when the others are done."""
    storage = EphemeralStorage()
    for name in ("ann", "bob", "cid"):
        opened(storage, id=name).append_turn(f"told by {name}", turn(1)[1], at="2026-01-01")
    storage._connection.execute("UPDATE entry SET body = x'00' WHERE instr(body, 'told by bob')")

    with pytest.raises(CorruptRecord, match="'bob'"):
        erase_outdated(storage, list(find_outdated(storage, "2026-01-04")))

    assert [b"answer 1" in each.body for name in ("ann", "cid") for each in storage.entries(name)] == 4 * [False]


@pytest.mark.parametrize("before", ["spring", "", None, 5, date(2026, 1, 6), [], "2026-13-01"])
def test_a_retention_names_what_is_no_date(before):
    with pytest.raises(InvalidSetting, match="before: expected a date"):
        list(find_outdated(EphemeralStorage(), before))


def killed(path, step, scope="page"):
    """Erase page 1 of the store at *path*, or what holds it, and be killed before *step*."""
    import memci.history.erase as module

    setattr(module, step, lambda *_args, **_named: os._exit(9))
    if scope == "page":
        Context.open(SQLiteStorage(path), "diary", policy=REMEMBER).erase(1)
    elif scope == "retention":
        storage = SQLiteStorage(path)
        erase_outdated(storage, list(find_outdated(storage, datetime(2100, 1, 1, tzinfo=UTC))))
    else:
        erase(SQLiteStorage(path), **{scope: {"context": "diary", "owner": "ann"}[scope]})


def kill_at(*args):
    """Let a child of this process be `killed` with *args*."""
    process = multiprocessing.get_context("fork").Process(target=killed, args=args)
    process.start()
    process.join()
    assert process.exitcode == 9


@pytest.mark.parametrize("step", ["forget_pages", "end_erasure"])
def test_killed_erasure_is_finished_by_the_next_opening(step, tmp_path):
    """After a kill behind its transaction the receipt is there, and no byte is left once the store is opened again."""
    path = tmp_path / "agent.db"
    storage = SQLiteStorage(path)
    diary(storage).close()
    asking(storage).close()
    storage.close()
    kill_at(path, step)
    storage = SQLiteStorage(path)
    [(_, was_killed, _)] = unfinished_erasures(storage)
    assert was_killed

    context = Context.open(storage, "diary")

    assert list(unfinished_erasures(storage)) == []
    assert tells(tmp_path, WORD) == []
    assert WORD not in json.dumps([each.text for each in context.search_memory(WORD).pages], default=str)
    receipt = context.erase(1)
    assert (receipt.pages, receipt.entries, receipt.physical, receipt.memory) == (1, 2, "done", "done")
    assert context.verify() == []


@pytest.mark.parametrize("step", ["forget_pages", "_perform", "end_erasure"])
def test_owner_whose_contexts_are_anothers_is_forgotten_after_a_kill(step, tmp_path):
    """Only the memory has that owner: the next opening removes it, wherever the kill was, and the receipt is there."""
    path = tmp_path / "agent.db"
    storage = SQLiteStorage(path)
    diary(storage).close()
    Context.open(storage, "diary", owner="bob", change_owner=True).close()
    storage.close()
    kill_at(path, step, "owner")

    storage = SQLiteStorage(path)
    context = Context.open(storage, "diary")

    assert list(unfinished_erasures(storage)) == []
    assert owners(storage) == ["bob"]
    assert erase(storage, owner="ann").done
    assert WORD in str(context.search_memory(ASKED))


@pytest.mark.parametrize("scope", ["page", "context", "owner", "retention"])
def test_an_erasure_that_was_killed_before_its_transaction_removed_nothing(scope, tmp_path):
    """The log does not say that it was done, all is there, and a repeated one is a new job."""
    path = tmp_path / "agent.db"
    storage = SQLiteStorage(path)
    diary(storage).close()
    storage.close()
    kill_at(path, "_perform", scope)

    storage = SQLiteStorage(path)
    context = Context.open(storage, "diary")
    assert list(unfinished_erasures(storage)) == []
    assert [line["action"] for line in storage.audit_log.with_field("job")] == ["erase", "refused"]
    assert WORD in json.dumps(list(context.messages()))
    assert context.erase(1).entries == 2
    assert WORD not in json.dumps(list(context.messages()))


def test_erasure_that_fails_behind_its_transaction_is_pending(tmp_path, monkeypatch):
    """It does not raise, since it is erased; finishing it says so, and the repeated call returns the same counts."""
    storage = SQLiteStorage(tmp_path / "agent.db")
    context = diary(storage)

    def full(*_args):
        raise StorageFull("no space is left")

    with monkeypatch.context() as patch:
        patch.setattr("memci.history.erase.forget_pages", full)
        receipt = context.erase(1)
    assert (receipt.pages, receipt.memory) == (1, "pending")

    done = finish_erasures(storage)

    assert (done.physical, done.memory) == ("done", "done")
    assert tells(tmp_path, WORD) == []
    assert context.erase(1).memory == "done"


def test_erasure_that_left_bytes_is_pending_until_it_is_finished(monkeypatch):
    """The log says so: it was not killed, and what has its name later is not taken for it."""
    storage = EphemeralStorage()
    opened(storage).append_turn(*turn(1))
    erase_rows = storage.erase

    with monkeypatch.context() as patch:
        patch.setattr(storage, "erase", lambda erasure: erase_rows(erasure)._replace(scrubbed=False))
        patch.setattr("memci.history.erasures.this_process", lambda: "")  # no process is told from another
        assert erase(storage, context="alice").physical == "pending"
    assert [killed for _, killed, _ in unfinished_erasures(storage)] == [False]
    opened(storage).append_turn(*turn(1))
    assert storage.audit_log.looked

    assert finish_erasures(storage).done
    assert [line["action"] for line in storage.audit_log.with_field("job")] == ["erase", "erased", "erased"]
    assert not [*unfinished_erasures(storage)]


def test_erasure_whose_end_is_not_logged_is_pending(storage, monkeypatch):
    """The job has no end in the log: its receipt says that something is left, and the repeated call finishes it."""
    context = diary(storage)
    add = type(storage.audit_log).add

    def failing(log, action, **facts):
        if action == "erased":
            raise StorageFull("no space is left")
        add(log, action, **facts)

    with monkeypatch.context() as patch:
        patch.setattr(type(storage.audit_log), "add", failing)
        assert context.erase(1).physical == "pending"
        assert finish_erasures(storage).physical == "pending"
    assert len([*unfinished_erasures(storage)]) == 1

    assert context.erase(1).done
    assert not [*unfinished_erasures(storage)]


def test_an_erasure_that_is_refused_is_no_job(storage):
    """A context that a fork shares is not erased: the audit log does not say so, and earlier receipts are found."""
    context = opened(storage, owner="ann")
    context.append_turn(*turn(1))
    context.append_turn(*turn(2))
    context.fork("fork")
    receipt = context.erase(1)
    logged = list(storage.audit_log.with_field("action"))

    with pytest.raises(InvalidSetting, match="'fork' is a fork of 'alice'"):
        erase(storage, context="alice")

    assert list(storage.audit_log.with_field("action")) == logged
    assert context.erase(1) == receipt


def test_an_erasure_that_meets_another_writer_removed_nothing(storage, monkeypatch):
    """The store refuses it: its job has ended, so nothing is finished later, and no backup repeats it."""
    context = opened(storage, owner="ann")
    context.append_turn(*turn(1))

    def conflict(erasure):
        raise WriteConflict("changed meanwhile")

    with monkeypatch.context() as patch, pytest.raises(WriteConflict):
        patch.setattr(storage, "erase", conflict)
        erase(storage, context="alice")

    assert list(unfinished_erasures(storage)) == []
    assert [line["action"] for line in storage.audit_log.with_field("job")] == ["erase", "refused"]
    backup = EphemeralStorage()
    opened(backup, owner="ann", nonce="11111111").append_turn("another one of this name")
    assert repeat_erasures(backup, storage) == []
