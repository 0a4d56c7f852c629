"""Locks: who waits for a context has it alone; other processes, and the end of a context."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import pytest

from memci import Context
from memci.errors import HandlePoisoned, InvalidSetting, StorageBusy, StorageUnavailable, WriteConflict

from .kit import ON_DISK, again, call, calling, ended, opened, result, store, talked, turn
from .test_context_fencing import CHANGES

pytestmark = pytest.mark.usefixtures("no_memory")

# What another process does, by the store's kind and folder.
_CHILD = """
import sys
from pathlib import Path
from memci.memory import NullMemory
from tests.context.kit import again, store, turn
kind, folder, what = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
storage = store(kind, folder)
if what == "hold":
    context = again(storage, wait=5, memory=NullMemory())
    print("held", flush=True)
    sys.stdin.read()
elif what == "append":
    again(storage, memory=NullMemory()).append_turn(*turn(99))
    print("appended", flush=True)
elif what == "stale":
    context = again(storage, memory=NullMemory())
    print("opened", flush=True)
    sys.stdin.readline()
    try:
        context.append_turn("late")
    except Exception as error:
        print(type(error).__name__, flush=True)
"""


@contextlib.contextmanager
def other_process(kind, folder, what):
    """Run *what* in another process, up to its first line."""
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, kind, str(folder), what],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert child.stdout.readline()
        yield child
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("kind", ["files"])  # it has a SQLite file in it
def test_older_writer_is_fenced_by_another_process(kind, tmp_path):
    """What another process appends fences this one, and the other way round."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = talked(3, storage=storage)
        with other_process(kind, tmp_path, "append"):
            with pytest.raises(WriteConflict):
                context.render()
            with pytest.raises(WriteConflict):
                context.append_turn("late")
            context.refresh()
            assert "question 99" in json.dumps(context.render())
        with other_process(kind, tmp_path, "stale") as child:
            context.append_turn(*turn(5))
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == "WriteConflict\n"


@pytest.mark.parametrize("kind", ["files"])
def test_lock_is_exclusive_between_processes_and_freed_by_death(kind, tmp_path):
    """Waiting for a lock that another process holds times out; when that process is killed, the lock is free."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        opened(storage).close()
        with other_process(kind, tmp_path, "hold") as child:
            with pytest.raises(StorageBusy):
                again(storage, wait=0.05)
            assert again(storage).render() is not None, "who asks for no lock needs none"
            opened(storage, id="bob", wait=0.05).close()

            child.send_signal(signal.SIGKILL)
            child.wait()

            again(storage, wait=10).close()


def test_lock_is_exclusive_in_a_process(storage):
    """A second one that asks for the lock is refused in time; close releases it, also twice."""
    first = opened(storage, wait=1)

    with pytest.raises(StorageBusy) as caught:
        again(storage, wait=0.03)

    assert caught.value.retryable
    again(storage).append_turn("nobody is kept from writing who does not ask")
    first.close()
    first.close()
    second = again(storage, wait=0.03)
    with pytest.raises(StorageBusy):
        again(storage, wait=0.03)
    first.close()
    with pytest.raises(StorageBusy):
        again(storage, wait=0.03)
    second.close()
    again(storage, wait=0.03).close()


def test_holder_that_stood_still_is_replaced(storage):
    """A lock that was not renewed for long goes to the next one. Its old holder has a conflict, and may ask for it."""
    older = opened(storage, wait=0.03)
    [ticket] = storage.tickets("alice")
    storage.replace_ticket(ticket, ended("alice"))

    newer = again(storage, wait=0.03)

    with pytest.raises(WriteConflict):
        older.append_turn("late")
    with pytest.raises(StorageBusy):
        older.refresh()
    newer.append_turn("I have it.")
    newer.close()
    older.refresh()
    older.append_turn("Now I have it.")
    with pytest.raises(StorageBusy):
        again(storage, wait=0.03)
    assert len(list(older.messages())) == 2
    older.close()


def test_lock_is_waited_for(storage):
    """Who waits gets the lock as soon as it is released."""
    first = opened(storage, wait=1)
    got = []
    waiting = threading.Thread(target=lambda: got.append(again(storage, wait=30)))
    waiting.start()

    first.close()
    waiting.join(30)

    assert len(got) == 1
    with pytest.raises(StorageBusy):
        again(storage, wait=0.03)
    got[0].close()


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"window": 10}, Exception),
        ({"nonce": "no"}, InvalidSetting),
        ({"at": 99}, InvalidSetting),
        ({"archive_share": 7}, InvalidSetting),
        ({"id": ""}, InvalidSetting),
    ],
)
def test_open_that_fails_releases_its_lock(given, error, storage):
    """An open that raises holds nothing afterwards."""
    opened(storage).close()

    with pytest.raises(error):
        again(storage, wait=0.05, **given)

    again(storage, wait=0.05).close()


@pytest.mark.parametrize("wait", [-1, float("inf"), float("nan"), True, "3", None])
def test_time_that_is_none_is_refused(wait, storage):
    """A wait is seconds, from 0."""
    with pytest.raises(InvalidSetting, match="wait"):
        opened(storage, wait=wait)

    assert list(storage.contexts()) == []


def test_lock_of_an_open_by_path_is_released(tmp_path):
    """A context that was opened by its path releases the lock with its file, and when it never opened."""
    path = tmp_path / "agent.db"
    with opened(path, wait=1), pytest.raises(StorageBusy):
        again(path, wait=0.03)
    with pytest.raises(InvalidSetting):
        again(path, wait=1, archive_share=9)
    again(path, wait=0.03).close()


@pytest.mark.parametrize("alias", ["symbolic link", "relative"])
def test_lock_is_one_whatever_the_file_is_called(alias, tmp_path, monkeypatch):
    """A lock is exclusive under every name of the file."""
    path, other = tmp_path / "agent.db", tmp_path / "other.db"
    opened(path).close()
    if alias == "symbolic link":
        other.symlink_to(path)
    else:
        monkeypatch.chdir(tmp_path)
        other = "agent.db"

    with again(path, wait=1), pytest.raises(StorageBusy):
        again(other, wait=0.05)


def test_file_with_two_names_is_refused(tmp_path):
    """Each hard link has a log of its own beside it: writing through both would ruin the file."""
    path = tmp_path / "agent.db"
    opened(path).close()
    os.link(path, tmp_path / "other.db")

    with pytest.raises(StorageUnavailable, match="hard links"):
        opened(path)


def test_closed_context_says_so(storage):
    """After close every call is an error that says what to do, and closing again is fine."""
    context = talked(2, storage=storage)
    context.close()
    context.close()

    for act in (
        *CHANGES.values(),
        lambda each: each.report(),
        lambda each: each.refresh(),
        lambda each: each.verify(),
        lambda each: each.flush(),
        lambda each: list(each.pages()),
        lambda each: list(each.messages()),
        lambda each: list(each.export()),
        lambda each: each.answer(call("r", "recall_page", {"index": 1})),
    ):
        with pytest.raises(HandlePoisoned, match="open it again"):
            act(context)
    assert (context.id, repr(context)[:17]) == ("alice", "<Context 'alice':")


def test_store_stays_open_when_its_context_closes(storage):
    """Who passed a store closes it; a path is closed with its context."""
    with talked(2, storage=storage):
        pass

    assert len(list(again(storage).messages())) == 4


def test_iterators_that_began_end_when_the_store_is_closed(tmp_path):
    """What was being read when a context by path is closed ends in an error of ours, and never in silence."""
    context = opened(tmp_path / "agent.db", window=100_000)
    for number in range(400):
        context.append_turn(f"{number}")
    messages = context.messages()
    next(messages)

    context.close()

    with pytest.raises(HandlePoisoned):
        list(messages)


def _in_child(context, pipe):
    """What a child process that was forked does with its parent's context."""
    try:
        context.append_turn("from the child")
        pipe.send("appended")
    except Exception as error:
        pipe.send(type(error).__name__)
    finally:
        context.close()


@pytest.mark.parametrize("kind", ON_DISK)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_context_does_not_survive_the_fork_of_a_process(kind, tmp_path):
    """A child that inherited a context is told to open it again, and does its parent no harm by closing it."""
    with contextlib.closing(store(kind, tmp_path)) as storage:
        context = talked(3, storage=storage, wait=1)
        ours, theirs = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=_in_child, args=(context, theirs))
        child.start()

        assert ours.recv() == "HandlePoisoned"
        child.join()

        assert child.exitcode == 0
        context.append_turn("from the parent")
        with pytest.raises(StorageBusy):
            again(storage, wait=0.05)
        assert len(list(context.messages())) == 7
        assert context.verify() == []


def test_context_cannot_be_pickled(tmp_path):
    """A context belongs to its process."""
    import pickle

    with opened(tmp_path / "agent.db") as context, pytest.raises(TypeError):
        pickle.dumps(context)


@pytest.mark.parametrize("how", ["return", "os._exit(3)", "raise KeyboardInterrupt", "kill"])
def test_process_that_ends_without_closing_loses_nothing(how, tmp_path):
    """However a process ends, what was acknowledged is there, and its lock is free."""
    how = how.replace("return", "pass").replace("kill", "os.kill(os.getpid(), 9)")
    code = f"""
import os, sys
from tests.context.kit import opened, turn
context = opened(sys.argv[1], wait=1)
for number in range(3):
    context.append_turn(*turn(number))
    print(number, flush=True)
{how}
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "agent.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == ["0", "1", "2"]

    with again(tmp_path / "agent.db", wait=5) as context:
        assert len(list(context.messages())) == 6
        assert context.verify() == []


def test_group_that_waits_is_whole_after_a_takeover(storage):
    """A writer that takes over in the middle of a tool group completes it; the older one can't."""
    older = opened(storage)
    older.append_turn("go", calling("a", "b"))
    newer = again(storage)
    newer.append_turn(result("a"), result("b"))

    with pytest.raises(WriteConflict):
        older.append_turn(result("a", "doubled"))
    older.refresh()
    assert older.render() == newer.render()


def test_context_class_opens_as_well(tmp_path):
    """The settings of `open` go through by name."""
    with Context.open(tmp_path / "agent.db", id="alice", window=4_000, wait=0.5) as context:
        assert context.id == "alice"
