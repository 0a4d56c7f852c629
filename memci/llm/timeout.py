"""A learned time-out: how long a server may take for a request, from the pace of its last answers.

    timeout = LearnedTimeout(30.0)
    timeout.seconds(600)                30.0        nothing is known of the server
    timeout.expired()                               it did not answer in time, or is away
    timeout.seconds(600)                60.0        up to four times as long
    timeout.answered(140, 22.0)                     7 tokens a second
    timeout.seconds(600)                171.4       twice the time of 600 tokens

Slow servers get the time that they need, and fast ones are still given up early.
"""

SLACK = 2  # times the expected duration of an answer: the pace of one server varies by less
PATIENCE, LONGEST = 4, 20
"""times the least seconds: for a server that never answered, and for a slow one; so that any call ends"""
OVERHEAD = 2.0  # seconds that any answer may take for its way and for its start: they say nothing about the pace


class LearnedTimeout:
    """The seconds for a request, never fewer than *least*. Thread-safe: values that two threads learn at once mix."""

    def __init__(self, least: float) -> None:
        self._least = least
        self._stretch = 1
        self._pace: float | None = None
        """tokens a second"""

    def seconds(self, tokens: float) -> float:
        """Return how many seconds an answer of *tokens* may take."""
        needed = SLACK * tokens / self._pace if self._pace else 0.0
        return min(max(self._least * self._stretch, needed), self._least * LONGEST)

    def answered(self, tokens: float, seconds: float) -> None:
        """Learn from an answer of *tokens* that took *seconds*."""
        pace = max(1.0, tokens) / max(1e-3, seconds - OVERHEAD)
        self._pace = pace if self._pace is None else (self._pace + pace) / 2
        self._stretch = 1

    def expired(self) -> None:
        """Learn that no answer came in time."""
        self._stretch = min(PATIENCE, 2 * self._stretch)
