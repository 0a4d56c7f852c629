"""Pace: a call that somebody waits for goes first; work in the background breathes.

    an agent's call             ├── reads, reckons, writes ──┤
    a step in the background    reckons │ breathes: sleeps    │ reckons │ …

Python runs one thread at a time, and takes its turn from one that reckons only after 5 ms (`sys.getswitchinterval`). A
call gives its turn away each time it reads a row or writes one, so beside a step that reckons it would wait 5 ms for
each. A step that breathes between small pieces of its work lets the call have the turn until it is done. Calls are
known by the locks that they hold: nothing is left behind by one that was interrupted. This module knows nothing of
what is done.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_recent.clear)  # what other threads held stays held in a child
