"""The costs of models: tokens and calls per step, and a ceiling above which no call is made.

Several chats may share one ledger.
"""

import operator
import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from threading import Lock

from ..errors import CeilingReached, InvalidSetting, brief
from ..workers import guard_lock


@dataclass(frozen=True, slots=True)
class Spent:
    """The cost of the calls for one step, and how they ended."""

    calls: int = 0
    prompt: int = 0
    """tokens"""
    completion: int = 0
    """tokens"""
    failed: int = 0
    """calls without an answer"""
    rejected: int = 0
    """answers that were rejected"""
    cached: int = 0
    """tokens of the prompt that came from the provider's cache"""

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt + self.completion

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(*map(operator.add, astuple(self), astuple(other)))


class Ledger:
    """Adds up the costs of calls per step, and refuses calls once the ceiling is reached. Thread-safe.

    Calls that were sent before that are finished: only their cost can exceed the ceiling.
    """

    def __init__(
        self,
        ceiling: int | None = None,
        *,
        period_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a ledger with nothing spent.

        Args:
            ceiling: Tokens that a period may cost, prompts and completions together; None: no bound.
            period_seconds: The length of a period, which starts with the first call; None: it never ends.
            clock: The time, in seconds.
        """
        if ceiling is not None and (type(ceiling) is not int or ceiling < 0):
            raise InvalidSetting("ceiling", f"expected tokens, 0 or more, or None; got {brief(ceiling)}")
        if period_seconds is not None and not (isinstance(period_seconds, int | float) and period_seconds > 0):
            raise InvalidSetting(
                "period_seconds", f"expected seconds, more than 0, or None; got {brief(period_seconds)}"
            )
        self.ceiling = ceiling
        self.period_seconds = period_seconds
        self._clock = clock
        self._steps: dict[str, Spent] = {}
        self._since: float | None = None
        self._tokens = 0
        self._lock = guard_lock(Lock())

    @property
    def steps(self) -> Mapping[str, Spent]:
        """The cost of each step so far: a copy."""
        with self._lock:
            return dict(self._steps)

    @property
    def total(self) -> Spent:
        """The cost of all steps so far."""
        return sum(self.steps.values(), Spent())

    def admit(self, step: str) -> None:
        """Raise `CeilingReached` if a call for *step* may not be made: the tokens of this period are spent."""
        with self._lock:
            self._start_period()
            if self.ceiling is not None and self._tokens >= self.ceiling:
                raise CeilingReached(step, f"{self._tokens:,} tokens are spent, {self.ceiling:,} are allowed")

    def add(self, step: str, spent: Spent) -> None:
        """Add the cost *spent* for *step*."""
        with self._lock:
            self._start_period()
            self._steps[step] = self._steps.get(step, Spent()) + spent
            self._tokens += spent.tokens

    def _start_period(self) -> None:
        now = self._clock()
        if self._since is None:
            self._since = now
        elif self.period_seconds is not None and now - self._since >= self.period_seconds:
            self._since, self._tokens = now, 0
