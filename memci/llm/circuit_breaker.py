"""A circuit breaker: after repeated failures no call is sent for a while, then one at a time as a trial.

    ok ok 5 × fail │ 30 s: every call fails at once │ trial: fails │ 60 s … 10 min │ trial: ok │ ok

A call that fails at once costs nothing, and a server that comes back is not overrun.
"""

from collections.abc import Callable
from threading import Lock

from ..workers import guard_lock

FAILURES = 5
"""calls in a row that must fail before the circuit opens: with three tries each, no short disturbance is so long"""
FIRST, LONGEST = 30.0, 600.0
"""seconds that it stays open the first time, and at most: a restart takes the first, an outage the second"""


class CircuitBreaker:
    """Decides whether a call may be sent, from how the last ones ended. Thread-safe."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failures = 0
        self._length = 0.0
        """seconds that the circuit stays open; 0.0: it is closed, and calls are sent"""
        self._until = 0.0
        self._trying = False
        self._lock = guard_lock(Lock())

    @property
    def seconds(self) -> float:
        """The seconds until a call may be sent; 0.0 if calls are sent now."""
        with self._lock:
            return max(0.0, self._until - self._clock()) if self._length else 0.0

    def enter(self) -> bool:
        """Return whether a call may be sent; if so, report its end with `answered`, `failed` or `abandoned`."""
        with self._lock:
            if not self._length:
                return True
            if self._trying or self._clock() < self._until:
                return False
            self._trying = True
            return True

    def answered(self) -> None:
        """Close the circuit and count failures from 0: the server answered."""
        with self._lock:
            self._failures, self._length, self._trying = 0, 0.0, False

    def failed(self) -> None:
        """Count a call that was not answered in any try; open the circuit if there were too many."""
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

    def abandoned(self) -> None:
        """End a call that the caller gave up, which says nothing about the server."""
        with self._lock:
            self._trying = False
