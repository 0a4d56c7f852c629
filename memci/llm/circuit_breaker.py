"""A pause after repeated failures: a server that is down is left alone, and asked once in a while.

    ok ok 5 × fail │ 30 s: every call fails at once │ one call: fails │ 60 s … 10 min │ one call: ok │ ok

Also called a circuit breaker. This module knows nothing of what is called.
"""

from collections.abc import Callable
from threading import Lock

FAILURES = 5
"""calls that fail in a row before a pause"""
FIRST = 30.0
"""seconds of the first pause; each further one is twice as long"""
LONGEST = 600.0
"""seconds"""


class Pause:
    """Says whether a call may be made, from how the last ones ended. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._length = 0.0
        self._until = 0.0
        self._trying = False
        self._lock = Lock()

    @property
    def seconds(self) -> float:
        """How long calls are not made yet; 0.0 if they are."""
        with self._lock:
            return max(0.0, self._until - self._clock()) if self._length else 0.0

    def enter(self) -> bool:
        """Return whether a call may be made: always, but for a pause; after it one at a time until one is answered.

        Who enters tells afterwards how it ended: `answered`, `failed` or `left`.
        """
        with self._lock:
            if not self._length:
                return True
            if self._trying or self._clock() < self._until:
                return False
            self._trying = True
            return True

    def answered(self) -> None:
        """The server answered: there is no pause, and no failure counts any more."""
        with self._lock:
            self._failures, self._length, self._trying = 0, 0.0, False

    def failed(self) -> None:
        """The server did not answer, however often it was tried."""
        with self._lock:
            self._failures += 1
            if self._trying:
                self._length = min(LONGEST, 2 * self._length)
            elif self._failures >= FAILURES and not self._length:
                self._length = FIRST
            else:
                return
            self._trying = False
            self._until = self._clock() + self._length

    def left(self) -> None:
        """The call was given up by who made it, which says nothing of the server."""
        with self._lock:
            self._trying = False
