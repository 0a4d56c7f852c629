"""Workers: threads that work while nobody waits, and give way to calls that somebody waits for.

    an agent appends, renders   │ waits seconds for its model │   appends, renders
    the worker                  │ a page, a page, a page …    │
    a step beside a call        works │ yields: sleeps        │ works │ …

One thread for the process, started when there is something to do. It does a small step at a time, and only when its
context was left alone for a moment: what an agent does is never slowed down by it. Steps that wait for a model have
threads of their own, a few, so that nothing else waits for one. What is not done when the process ends is done when
the context is opened next.

The GIL preempts a CPU-bound thread only every 5 ms (`sys.getswitchinterval`). A call releases the GIL each time it
reads or writes a row, so beside a CPU-bound step it would wait 5 ms for each. A step that yields between small pieces
of its work lets the call run until it is done. Calls are known by the locks that they hold: nothing is left behind by
one that was interrupted. This module knows nothing of what the steps are.
"""

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

_LOG = logging.getLogger("memci")

QUIET_SECONDS = 0.05
"""how long a context is usually to be left alone before a step is done for it"""
MODEL_THREADS = 4
"""steps that wait for a model at the same time, of different contexts"""
LONGEST_SECONDS: Final = 0.5
"""that one step sleeps altogether: where somebody always waits, it goes on beside them"""
_CONTEXTS = 8
"""contexts that a step makes way for: those that were called last"""

_recent: deque[threading.RLock] = deque(maxlen=_CONTEXTS)


class _Here(threading.local):
    """What is known of a thread."""

    left = 0.0
    """seconds that its step may still sleep"""


_here = _Here()


def called(lock: threading.RLock) -> threading.RLock:
    """Note that a call is to hold *lock* from now on, and return it. Some nanoseconds."""
    if not _recent or _recent[-1] is not lock:
        _recent.append(lock)
    return lock


@contextmanager
def giving_way(seconds: float = LONGEST_SECONDS) -> Iterator[None]:
    """Let `breathe` sleep in this thread, *seconds* altogether."""
    _here.left = seconds
    try:
        yield
    finally:
        _here.left = 0.0


def breathe() -> None:
    """Sleep while a call is under way, if this thread is to give way.

    It is to be called between pieces of work of about a millisecond, and where no lock is held that a call may wait
    for: the call would wait for the sleeper.
    """
    if _here.left <= 0:
        return
    for lock in _recent.copy():  # a call may come meanwhile
        began = time.monotonic()
        if lock.acquire(timeout=max(0.0, _here.left)):
            lock.release()
        _here.left -= time.monotonic() - began


class Busy(Protocol):
    """What has work to do."""

    touched: float
    """when it was last used by somebody who waits (`time.monotonic`)"""

    @property
    def patience(self) -> float:
        """How long it must be left alone before a step is done for it, in seconds."""
        ...

    def step(self) -> bool:
        """Do a little, a few milliseconds, and return whether there is more to do."""
        ...


class Worker:
    """Does the steps of what was submitted: of each one after another, of several at once if it has more *threads*."""

    def __init__(self, threads: int = 1, name: str = "memci-background") -> None:
        self._waiting: deque[weakref.ref[Busy]] = deque()
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._most, self._name = threads, name
        self._running: list[weakref.ref[Busy]] = []

    def submit(self, busy: Busy) -> None:
        """Let *busy* have its steps done; once it is forgotten or says that there is no more, it is dropped."""
        with self._change:
            if any(each() is busy for each in self._waiting):
                return  # it is looked at again when it may be left alone: waking a thread for it would cost the caller
            self._waiting.append(weakref.ref(busy))
            if len(self._threads) < min(self._most, len(self._waiting) + len(self._running)):
                self._threads.append(threading.Thread(target=self._run, name=self._name, daemon=True))
                self._threads[-1].start()
            self._change.notify()

    def _run(self) -> None:
        while True:
            with self._change:
                while True:
                    chosen, seconds = self._next()
                    if chosen is not None:
                        break
                    self._change.wait(seconds)
                self._running.append(chosen)
            done = self._done(chosen)
            with self._change:
                self._running.remove(chosen)
                if not done and chosen not in self._waiting:
                    self._waiting.append(chosen)
                self._change.notify()

    def _next(self) -> tuple[weakref.ref[Busy] | None, float | None]:
        """Take the first one that was left alone and is not at work in another thread; else say when to look again.

        O(those that wait).
        """
        soonest: float | None = None
        for position, each in enumerate(self._waiting):
            if each in self._running:
                continue
            busy = each()
            left = 0.0 if busy is None else busy.patience - (time.monotonic() - busy.touched)
            del busy  # it may be forgotten meanwhile
            if left <= 0:
                del self._waiting[position]
                return each, None
            soonest = left if soonest is None else min(soonest, left)
        return None, soonest

    def _done(self, chosen: weakref.ref[Busy]) -> bool:
        busy = chosen()
        if busy is None:
            return True
        try:
            with giving_way():
                return not busy.step()
        except Exception:  # noqa: BLE001 -- whatever it is: the next one who uses the context meets it, and is told
            _LOG.debug("a step in the background failed", exc_info=True)
            return True


_worker = Worker()
_model_worker = Worker(MODEL_THREADS, "memci-model")


def worker() -> Worker:
    """Return the worker of this process."""
    return _worker


def model_worker() -> Worker:
    """Return the worker of this process for steps that wait for a model."""
    return _model_worker


def _forked() -> None:
    """Begin anew in a child process: threads do not survive fork()."""
    global _worker, _model_worker  # noqa: PLW0603 -- one per process
    _worker = Worker()
    _model_worker = Worker(MODEL_THREADS, "memci-model")
    _recent.clear()  # what other threads held stays held in a child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
