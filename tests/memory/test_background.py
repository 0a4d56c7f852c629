"""The worker does steps when a context is left alone, one after another, and forgets what nobody has any more."""

import gc
import threading
import time
import weakref
from itertools import pairwise

import pytest
from machine_chats import chat, heard_of, owed, talk, turn
from machine_kit import Told

from memci.context.compactor import Compactor
from memci.errors import StorageUnavailable
from memci.storage import EphemeralStorage
from memci.workers import QUIET_SECONDS, Worker


class Steps:
    """Has a number of steps to do; each is an event."""

    def __init__(self, count=1, fails=None):
        self.touched, self.patience = time.monotonic() - 9, QUIET_SECONDS
        self.left, self.fails = count, fails
        self.done = threading.Event()
        self.threads = []

    def step(self):
        self.threads.append(threading.current_thread())
        self.left -= 1
        if self.fails is not None:
            raise self.fails
        if self.left <= 0:
            self.done.set()
        return self.left > 0


@pytest.fixture
def submitted(monkeypatch):
    """Give what of a memory is submitted to the worker, which does nothing."""
    found = []

    def submit(work):
        if not isinstance(work, Compactor):
            found.append(work)

    monkeypatch.setattr("memci.workers.worker.submit", submit)
    return found


def test_step_is_done_when_it_was_left_alone():
    """What nobody touched for a moment has its step done; with the last one it is dropped."""
    busy, alone = Steps(2), Worker()
    alone._waiting.append(weakref.ref(busy))

    chosen, wakes = alone._next()

    assert (chosen(), wakes) == (busy, None)
    assert alone._next() == (None, None)
    assert not alone._done(chosen)
    assert alone._done(chosen)
    assert busy.left == 0


def test_step_waits_while_somebody_is_at_work():
    """What was touched just now is left alone for the rest of the moment; others need not wait for it."""
    busy, other, alone = Steps(), Steps(), Worker()
    busy.touched = time.monotonic() + 60  # no machine is so slow that the moment is over before the look
    alone._waiting.append(weakref.ref(busy))

    chosen, wakes = alone._next()

    assert chosen is None
    assert wakes == busy.touched + QUIET_SECONDS
    alone._waiting.append(weakref.ref(other))
    assert alone._next()[0]() is other
    busy.touched -= 61
    assert alone._next()[0]() is busy


def test_step_that_is_under_way_is_not_begun_again():
    """What is at work in one thread is not taken by another one."""
    busy, alone = Steps(), Worker(2)
    alone._waiting.append(weakref.ref(busy))
    alone._running.append(weakref.ref(busy))

    assert alone._next() == (None, None)


def test_step_that_fails_is_dropped_and_others_go_on():
    """A failure ends what failed, not the worker."""
    alone = Worker()

    assert alone._done(weakref.ref(Steps(9, StorageUnavailable("away")))) or True
    kept = Steps(9, StorageUnavailable("away"))
    assert alone._done(weakref.ref(kept))
    other = Steps(1)
    assert alone._done(weakref.ref(other))
    assert other.done.is_set()


def test_what_nobody_has_any_more_is_forgotten():
    """The worker keeps nothing alive: what is gone is dropped."""
    busy, alone = Steps(5), Worker()
    gone = weakref.ref(busy)
    del busy
    gc.collect()

    assert alone._done(gone)


def test_steps_are_done_in_one_thread_in_turn():
    """All that is submitted is done, by one daemon thread, step by step in turn."""
    alone, several = Worker(), [Steps(3) for _ in range(4)]
    for busy in several:
        alone.submit(busy)

    assert all(busy.done.wait(20) for busy in several)
    threads = {thread for busy in several for thread in busy.threads}
    assert len(threads) == 1
    assert threads.pop().daemon
    assert [len(busy.threads) for busy in several] == [3] * 4


def test_worker_goes_on_after_a_rest():
    """What is submitted after the worker had nothing to do is done as well."""
    alone = Worker()
    for busy in (Steps(1), Steps(1, ValueError("x")), Steps(2)):
        alone.submit(busy)
        assert busy.fails is not None or busy.done.wait(20)


def test_no_thread_is_started_for_nothing():
    """A worker that was asked for nothing has no thread."""
    assert Worker()._threads == []


def test_worker_of_a_child_process_starts_threads_of_its_own():
    """After fork() a worker has no thread and no work, since threads do not survive it, and takes new work."""
    forked, before, after = Worker(), Steps(1), Steps(1)
    forked.submit(before)
    assert before.done.wait(20)

    forked.reset()

    assert forked._threads == []
    forked.submit(after)
    assert after.done.wait(20)


# -- what a context has done in the background


def test_context_asks_the_worker_once_there_is_enough(submitted):
    """After eight closed pages, and after eight more, the worker is asked; reading asks for nothing."""
    context = talk(chat(memory=Told(), window=20_000), range(1, 9))
    asked = [len(submitted)]
    for numbers in (range(9, 10), range(10, 17), range(17, 18)):
        talk(context, numbers)
        asked.append(len(submitted))
    context.render()
    list(context.messages())

    assert asked[0] <= 1
    assert asked[-1] - asked[0] == 2 - asked[0]


def test_a_context_for_each_page_asks_the_worker_as_often_as_one_for_all(submitted):
    """A server opens a context per request: once in eight of them the worker is asked; closing feeds each page."""
    memory, storage = Told(), EphemeralStorage()
    asked = []
    for number in range(1, 25):
        with chat(storage, memory=memory, window=20_000) as context:
            talk(context, [number])
            if len(submitted) > len(asked):
                asked.append(number)
                while submitted[-1].step():  # while the model answers
                    pass

    assert [after - before for before, after in pairwise(asked)] == [8] * (len(asked) - 1)
    assert len(asked) == 3
    assert heard_of(memory) == {number: (list(turn(number)), True) for number in range(1, 25)}


def test_steps_tell_the_memory_page_by_page(submitted):
    """A step tells of one page, oldest first; when all is told, the memory is looked after, and there is no more."""
    memory, storage = Told(), EphemeralStorage()
    context = talk(chat(storage, memory=memory, window=20_000), range(1, 12))
    (busy, *_) = submitted

    for index in range(1, 11):
        assert busy.step()
        assert {each for _, each in memory.pages} == set(range(1, index + 1))
    assert memory.maintained == 0
    assert not busy.step()

    assert memory.maintained == 1
    assert heard_of(memory) == owed(storage)
    context.close()


def test_steps_tell_of_fates(submitted):
    """Steps tell what became of pages, too: unloaded, undone, erased."""
    memory, storage = Told(), EphemeralStorage()
    context = talk(chat(storage, memory=memory), range(1, 20))
    context.undo()
    context.erase(3)
    busy = submitted[0]
    while busy.step():
        pass

    assert heard_of(memory) == owed(storage)
    assert memory.admitted


def test_step_that_fails_changes_nothing_for_who_appends(submitted):
    """While the memory is away, a step raises; appending and rendering go on, and later steps tell everything."""
    memory, storage = Told(StorageUnavailable), EphemeralStorage()
    context = talk(chat(storage, memory=memory), range(1, 12))
    busy = submitted[0]
    with pytest.raises(StorageUnavailable):
        busy.step()
    context.append_turn(*turn(12))
    context.render()

    memory.fails = None
    while busy.step():
        pass
    assert heard_of(memory) == owed(storage)


def test_step_after_close_does_nothing(submitted):
    """A context that was closed meanwhile has handed over all; its memory is left alone."""
    memory = Told()
    context = talk(chat(memory=memory, window=20_000), range(1, 12))
    busy = submitted[0]
    context.close()
    known = list(memory.calls)

    assert not busy.step()
    assert (memory.calls, memory.maintained, memory.admitted) == (known, 0, set(memory.pages))


def test_reader_asks_for_nothing(submitted):
    """A context that is only read, or remembers nothing, never asks the worker."""
    from memci.memory import NullMemory

    storage = EphemeralStorage()
    talk(chat(storage, memory=NullMemory(), window=20_000), range(1, 30)).close()
    reader = chat(storage, window=None, nonce=None, read_only=True)
    reader.render()
    reader.search_memory("x")

    assert submitted == []


def test_appending_waits_for_no_step(submitted):
    """While the memory is looked after, the context can be used: the step holds nothing of it."""
    memory = Told()
    context = talk(chat(memory=memory, window=20_000), range(1, 11))
    busy, inside, go_on = submitted[0], threading.Event(), threading.Event()

    def maintain(now=None):
        inside.set()
        assert go_on.wait(20)
        return 0

    memory.maintain = maintain

    def steps():
        while busy.step():
            pass

    other = threading.Thread(target=steps)
    other.start()
    assert inside.wait(20)
    context.append_turn(*turn(50))
    context.render()
    go_on.set()
    other.join(20)

    assert not other.is_alive()
