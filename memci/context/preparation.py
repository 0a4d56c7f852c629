"""Preparation: the next compaction of one context is made while nobody uses it, so that the call only commits it.

    append_turn … append_turn    the worker makes the next Contents Page, as a few lengths of the next messages need it
    append_turn                  brings the request over the trigger: the page is there, and is shown

Nothing is stored, and what was prepared is used only if it is, byte for byte, what the call would have made. This
module knows nothing of how a compaction is made.
"""

import threading
import time
from collections.abc import Callable, Iterator

from ..workers import QUIET_SECONDS, worker


class Preparation:
    """What the worker does for one context without storing anything; *lock* is the one that its calls hold."""

    patience = QUIET_SECONDS

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._prepare: Callable[[], Iterator[None]] = lambda: iter(())
        self._steps: Iterator[None] | None = None
        self.touched = 0.0

    def follow(self, prepare: Callable[[], Iterator[None]]) -> None:
        """Do the steps of *prepare* from now on: the context was read again."""
        self._prepare, self._steps = prepare, None

    def submit(self) -> None:
        """Ask the worker to begin the steps, once the context is idle."""
        self._steps, self.touched = None, time.monotonic()
        worker.submit(self)

    def end(self) -> None:
        """Do no more steps: the context is closed."""
        self.follow(lambda: iter(()))

    def step(self) -> bool:
        """Do one step of a few milliseconds, and return whether there is more to do."""
        with self._lock:
            self._steps = self._steps or self._prepare()
            return next(self._steps, self) is not self
