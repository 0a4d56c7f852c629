"""Background threads, whose steps give way to calls of the program.

    an agent appends, renders   │ waits seconds for its model │   appends, renders
    the worker                  │ a page, a page, a page …    │
    a step beside a call        works │ yields: sleeps        │ works │ …

The process has one background thread, started when there is work. It does one small step at a time, and only for a
context without recent calls, so it does not slow down an agent. Steps that wait for a model run in separate threads.
Work that is left when the process ends is done when the context is opened again.

The GIL preempts a CPU-bound thread only every 5 ms (`sys.getswitchinterval`). A call releases the GIL each time it
reads or writes a row, so beside a CPU-bound step it would wait 5 ms for each row. A step that calls `yield_to_calls`
between small pieces of its work lets the call finish first. A running call is recognised by its lock, so
an interrupted call leaves nothing behind.

A fork copies locks, but not the threads that hold them. So memci makes its locks by `guard_lock`: the thread that forks
first takes those of calls and of stores, and the child has every lock free. What it inherited is refused by its owner.

When the process ends, steps stop at their next yield, and the threads are joined: a thread in native code during the
end of the interpreter aborts the process.
"""

import _imp
import atexit
import importlib
import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar, overload

_LOG = logging.getLogger(__name__)

QUIET_SECONDS = 0.05
"""seconds without a call after which a context is idle: more than the pauses between the calls of one turn"""
MODEL_THREADS = 4  # threads for steps that wait for a model: they wait more than they compute
LONGEST_SECONDS: Final = 0.5
"""seconds that one step sleeps in total; then it continues, even beside calls that never stop"""
ENDING_SECONDS: Final = 5.0  # most seconds that the end of the process waits for its threads
ENDING_MODEL_SECONDS: Final = 0.2  # the same for threads that may wait for a model, which may take minutes
FORK_SECONDS: Final = 5.0  # most seconds that a fork waits for calls of other threads: longer than nearly all of them
IMPORT_SECONDS: Final = 60.0
"""the same for an import, which always ends: on a busy machine that of numpy takes many seconds"""
_CONTEXTS = 8  # number of recently called contexts that a step yields to

recent_calls: deque[threading.RLock] = deque(maxlen=_CONTEXTS)
"""the locks of the latest calls; a call appends its lock before it acquires it"""


Guarded = Literal["call", "memory", "store", "free"]
"""what a lock guards, from the outermost to the innermost; a fork does not wait for one that is only made "free" """

_Value = TypeVar("_Value")
_Lock = TypeVar("_Lock", bound=Any)  # the types of locks are functions in Python 3.11
_locks: dict[str, "weakref.WeakValueDictionary[int, Any]"] = {
    each: weakref.WeakValueDictionary() for each in ("call", "memory", "store", "free")
}


class _Fork(threading.local):
    """The locks that this thread took to fork."""

    def __init__(self) -> None:
        self.taken: list[Any] = []


_fork = _Fork()


def guard_lock(lock: _Lock, guarded: Guarded = "free") -> _Lock:
    """Return *lock*, which a child of `fork()` will have free, unless the forking thread holds it. One of a call, a
    memory or a store has to be an RLock.
    """
    _locks[guarded][id(lock)] = lock
    return lock


class cached_property(Generic[_Value]):  # noqa: N801 -- as in functools
    """As `functools.cached_property`, without a lock: in Python 3.11 all instances share one, and a child of `fork()`
    would wait for it for ever if a thread of its parent had it. Two threads may both compute a value.
    """

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self._compute, self.__doc__ = compute, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> _Value: ...
    def __get__(self, instance: object, owner: type) -> Self | _Value:
        if instance is None:
            return self
        value: _Value = self._compute(instance)
        instance.__dict__[self._name] = value
        return value


class _Allowance(threading.local):
    """The seconds that the step of this thread may still sleep, None if it runs no step."""

    seconds: float | None = None


class _Ended(BaseException):
    """Raised in a step when the process ends."""


_allowance = _Allowance()
_ending = threading.Event()


@contextmanager
def yielding(seconds: float = LONGEST_SECONDS) -> Iterator[None]:
    """Let `yield_to_calls` sleep in this thread, for *seconds* in total."""
    _allowance.seconds = seconds
    try:
        yield
    finally:
        _allowance.seconds = None


def yield_to_calls() -> None:
    """Sleep while a call is running, if this thread is inside `yielding`; else return at once.

    Call it between pieces of work of about a millisecond. Never hold a lock that a call may need: the call would wait
    for the sleeping thread.
    """
    left = _allowance.seconds
    if left is None:
        return
    if _ending.is_set():
        raise _Ended
    if left <= 0:
        return
    for lock in recent_calls.copy():  # another thread may add one
        began = time.monotonic()
        if lock.acquire(timeout=max(0.0, left)):
            lock.release()
        left -= time.monotonic() - began
    _allowance.seconds = left


class Busy(Protocol):
    """An object with background work."""

    touched: float  # when a caller last used it (`time.monotonic`)

    @property
    def patience(self) -> float:
        """Seconds without a call before its next step."""

    def step(self) -> bool:
        """Do a few milliseconds of work, and return whether there is more."""


class Worker:
    """Threads that run the steps of submitted objects: of one object in sequence, of several in parallel."""

    def __init__(self, threads: int = 1, name: str = "memci-background") -> None:
        self._most, self._name = threads, name
        self.reset()

    def reset(self) -> None:
        """Drop all work and threads, which do not survive fork()."""
        self._waiting: deque[weakref.ref[Busy]] = deque()
        self._change = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._running: list[weakref.ref[Busy]] = []
        self._wakes: float | None = None
        """when the thread that waits wakes by itself (`time.monotonic`); None: not before it is notified"""

    def submit(self, busy: Busy) -> None:
        """Run the steps of *busy* until it has no more, or is garbage. O(waiting objects).

        A thread that wakes early enough by itself is not notified, which would cost the caller time.
        """
        with self._change:
            while self._waiting and self._waiting[0]() is None:
                self._waiting.popleft()
            if any(each() is busy for each in self._waiting):
                return
            self._waiting.append(weakref.ref(busy))
            if _ending.is_set():
                return
            if len(self._threads) < min(self._most, len(self._waiting) + len(self._running)):
                self._threads.append(threading.Thread(target=self._run, name=self._name, daemon=True))
                self._threads[-1].start()
            elif self._wakes is None or busy.touched + busy.patience < self._wakes:
                self._change.notify()

    def end(self, seconds: float) -> None:
        """Wait until the threads have ended, at most *seconds*. Called when the process ends."""
        until = time.monotonic() + seconds
        with self._change:
            self._change.notify_all()
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while True:
            with self._change:
                while True:
                    if _ending.is_set():
                        return
                    chosen, self._wakes = self._next()
                    if chosen is not None:
                        break
                    self._change.wait(None if self._wakes is None else max(0.0, self._wakes - time.monotonic()))
                self._wakes = None
                self._running.append(chosen)
            done = self._done(chosen)
            with self._change:
                self._running.remove(chosen)
                if not done and chosen not in self._waiting:
                    self._waiting.append(chosen)
                self._change.notify()

    def _next(self) -> tuple[weakref.ref[Busy] | None, float | None]:
        """Remove and return the first idle object without a running step; else return when to try next (`monotonic`).

        O(waiting objects).
        """
        soonest: float | None = None
        for each in list(self._waiting):
            if (busy := each()) is None:
                self._waiting.remove(each)
            elif each not in self._running:
                due = busy.touched + busy.patience
                if due <= time.monotonic():
                    self._waiting.remove(each)
                    return each, None
                soonest = due if soonest is None else min(soonest, due)
            del busy  # else this reference would keep it alive
        return None, soonest

    def _done(self, chosen: weakref.ref[Busy]) -> bool:
        busy = chosen()
        if busy is None:
            return True
        try:
            with yielding():
                return not busy.step()
        except _Ended:
            return True
        except Exception:  # noqa: BLE001 -- the next call of the context raises the same error
            _LOG.debug("a step in the background failed", exc_info=True)
            return True


worker = Worker()  # of this process
model_worker = Worker(MODEL_THREADS, "memci-model")  # of this process, for steps that wait for a model
lock_worker = Worker(name="memci-locks")  # of this process, to renew locks: no other step can delay it


@atexit.register
def _end() -> None:
    """Stop all steps and join the threads."""
    _ending.set()
    for each in (worker, lock_worker):
        each.end(ENDING_SECONDS)
    model_worker.end(ENDING_MODEL_SECONDS)


def _live(guarded: str) -> list[Any]:
    return [lock for each in _locks[guarded].valuerefs() if (lock := each()) is not None]


def _is_importing() -> bool:
    """Return whether another thread finds or loads a module of memci: the child could never import it."""
    found = getattr(importlib._bootstrap, "_module_locks", {}).copy()
    locks = [lock for name, each in found.items() if name.startswith("memci.") and (lock := each()) is not None]
    return any(getattr(lock, "owner", None) not in {None, threading.get_ident()} for lock in locks)


def _before_fork() -> None:
    """Wait until no other thread is in a call or in SQLite, whose own locks nobody can make free."""
    _fork.taken = []
    # a call that never lets go takes no time from a store, whose locks are held for a moment and guard SQLite's own
    for locks in ([_forking, *_live("call"), *_live("memory")], _live("store")):
        until = time.monotonic() + FORK_SECONDS
        _fork.taken.extend(lock for lock in locks if lock.acquire(timeout=max(0.0, until - time.monotonic())))
    until = time.monotonic() + IMPORT_SECONDS
    _imp.acquire_lock()  # from now on no other thread begins an import
    while _is_importing() and time.monotonic() < until:
        _imp.release_lock()
        time.sleep(0.001)
        _imp.acquire_lock()
    _fork.taken.append(SimpleNamespace(release=_imp.release_lock))


def _after_fork() -> None:
    while _fork.taken:
        _fork.taken.pop().release()


def _after_fork_in_child() -> None:
    for each in (worker, model_worker, lock_worker):
        each.reset()
    recent_calls.clear()
    taken = {id(lock) for lock in _fork.taken}
    for lock in [each for guarded in _locks for each in _live(guarded) if id(each) not in taken]:
        lock._at_fork_reinit()  # as the standard library does with its own
    _after_fork()


_forking = guard_lock(threading.RLock())  # held by the thread that forks: two would wait for each other's locks
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
