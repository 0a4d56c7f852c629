"""Pace: a step in the background makes way for a call, and for no longer than it may."""

import os
import sys
import threading
import time

import pytest

from memci import Context, EphemeralStorage
from memci.memory.backend import NullMemory
from memci.memory.tiered_memory import TieredMemory
from memci.text.language.keywords import keywords
from memci.workers import Worker, recent_calls, yield_to_calls, yielding
from tests.door import open_context

LONG = 30.0
"""seconds that nothing here lasts"""


def called(lock):
    """What a call does before it takes its lock."""
    recent_calls.append(lock)
    return lock


class Background(threading.Thread):
    """A step that yields, in a thread of its own."""

    def __init__(self, seconds=LONG, times=1):
        super().__init__(daemon=True)
        self.began, self.done = threading.Event(), threading.Event()
        self._seconds, self._times = seconds, times

    def run(self):
        with yielding(self._seconds):
            self.began.set()
            for _ in range(self._times):
                yield_to_calls()
        self.done.set()


def test_yield_when_a_call_is_under_way():
    step = Background()
    with called(threading.RLock()):
        step.start()
        assert step.began.wait(LONG)
        assert not step.done.wait(0.05)

    assert step.done.wait(LONG)


def test_yield_when_another_context_was_called_since():
    step = Background()
    with called(threading.RLock()):
        with called(threading.RLock()):
            pass
        step.start()
        assert not step.done.wait(0.05)

    assert step.done.wait(LONG)


def test_yield_when_somebody_always_waits():
    """A step sleeps no longer than it may, altogether."""
    step = Background(seconds=0.01, times=10_000)
    with called(threading.RLock()):
        step.start()
        assert step.done.wait(LONG)


def test_yield_when_it_is_no_background():
    """Whoever looks after a memory by a call of its own waits for nobody."""
    free, lock = threading.Event(), threading.RLock()

    def call():
        with called(lock):
            free.wait(LONG)

    thread = threading.Thread(target=call)
    thread.start()
    yield_to_calls()
    free.set()
    thread.join(LONG)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork() on this system")
def test_yield_when_forked():
    """Calls of the parent's other threads are not under way in a child."""
    inside, free = threading.Event(), threading.Event()

    def call():
        with called(threading.RLock()):
            inside.set()
            free.wait(LONG)

    thread = threading.Thread(target=call)
    thread.start()
    assert inside.wait(LONG)
    child = os.fork()
    if not child:
        began = time.monotonic()
        with yielding(LONG):
            yield_to_calls()
        os._exit(time.monotonic() - began > LONG / 2)
    assert os.waitpid(child, 0)[1] == 0
    free.set()
    thread.join(LONG)


def told(context, turns):
    for turn in range(turns):
        context.append_turn(
            f"On day {turn} I moved to Oslo and got married.", {"role": "assistant", "content": "I see."}
        )


def test_worker_when_a_call_is_under_way(monkeypatch):
    """What looks after a memory sleeps while its context archives."""
    began, archiving, stepped = threading.Event(), threading.Event(), threading.Event()
    early = []

    def days(*_):
        began.set()
        archiving.wait(LONG)
        keywords(["Oslo"])
        stepped.set()
        return {}

    def on_event(_):
        archiving.set()
        early.append(stepped.wait(0.05))

    store = EphemeralStorage()
    monkeypatch.setattr("memci.memory.consolidation.event_detection._update_days", days)
    memory = TieredMemory(store, owner="a")
    with Context.open(store, id="a", window=8_000, memory=memory, on_event=on_event) as context:
        told(context, 10)
        assert began.wait(LONG)
        context.archive(keep=0)

    assert early and not any(early)
    assert stepped.wait(LONG)


def test_yield_when_a_memory_is_maintained():
    """Nothing yields while it holds the memory's lock, or its file: a call may wait for both."""
    store, held = EphemeralStorage(), []

    def seen(frame, event, _):
        if event == "call" and frame.f_code is yield_to_calls.__code__:
            held.append(memory.session.store.lock._is_owned())

    small = {"window": 2_000, "contents_tokens": 100, "never_recalled": 3}
    with open_context(store, id="a", memory=NullMemory(), **small) as context:  # the worker tells nobody
        told(context, 40)
    with Context.open(store, id="a") as context:
        memory = context.memory
        sys.setprofile(seen)
        try:
            context.flush()
        finally:
            sys.setprofile(None)

    assert len(held) > 30 and not any(held)


class Patient:
    """An object whose step is due in a minute, and whether it had one."""

    patience = 60.0

    def __init__(self):
        self.touched, self.stepped = time.monotonic(), threading.Event()

    def step(self):
        self.stepped.set()
        return False


class Counted(threading.Condition):
    """A condition that counts notifications, and says when a thread waits."""

    def __init__(self):
        super().__init__()
        self.notified, self.waits = 0, threading.Event()

    def notify(self, n=1):
        self.notified += 1
        super().notify(n)

    def wait(self, timeout=None):
        self.waits.set()
        return super().wait(timeout)


def test_a_thread_that_wakes_early_enough_is_not_notified():
    """Objects that are due later cost their callers no wakeup; one that is due at once gets its step at once."""
    worker, many = Worker(), [Patient() for _ in range(9)]
    worker._change = Counted()
    worker.submit(many[0])
    assert worker._change.waits.wait(LONG)

    for each in many:
        worker.submit(each)
    assert not worker._change.notified

    urgent = Patient()
    urgent.patience = 0.0
    worker.submit(urgent)
    assert urgent.stepped.wait(LONG)
    assert not any(each.stepped.is_set() for each in many)
