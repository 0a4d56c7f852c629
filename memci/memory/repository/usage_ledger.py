"""The usage ledger of a memory: calls and tokens of its model, by step and day.

If a provider reports no usage, the tokens of the texts are counted.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from ...llm.model import ChatModel, Reply, checked_reply
from ...llm.usage import Ledger, Spent
from ...messages import Message, text_of
from .store import OwnerTable


class Meter:
    """Wraps a model and counts its calls and tokens for one job.

    *count* returns the tokens of a text, for a model that reports no usage. *left* tokens may be spent (None: no
    limit). *prompts* are system messages for steps, in place of the built-in ones.
    """

    def __init__(
        self,
        chat: ChatModel,
        count: Callable[[str], int],
        left: int | None = None,
        prompts: Mapping[Any, str] | None = None,
    ) -> None:
        self._chat, self._count = chat, count
        self.prompts = prompts or {}
        self.ledger = Ledger(left)

    @property
    def answered(self) -> bool:
        """Whether the model has answered at least once."""
        return any(each.calls > each.failed for each in self.ledger.steps.values())

    def __call__(self, messages: Sequence[Message], /, *, step: str = "chat", **options: Any) -> Reply:
        """Ask the model, and count the call. Raise CeilingReached if the tokens of the day are spent."""
        self.ledger.admit(step)
        try:
            reply = checked_reply(self._chat(messages, step=step, **options), step)
        except BaseException:
            self.ledger.add(step, Spent(calls=1, failed=1))
            raise
        usage = reply.usage
        prompt = usage.prompt or sum(self._count(text_of(each)) for each in messages)
        self.ledger.add(step, Spent(1, prompt, usage.completion or self._count(reply.text), cached=usage.cached))
        return reply

    def rejected(self, step: str, reason: str) -> None:  # noqa: ARG002 -- the arguments that `ask` gives
        """Count a rejected answer in the ledger of the model; `ask` counts it in that of the meter."""
        ledger = getattr(self._chat, "ledger", None)
        if isinstance(ledger, Ledger):
            ledger.add(step, Spent(rejected=1))


class UsageLedger(OwnerTable):
    """The costs of one owner's memory, by step and UTC day."""

    def add(self, meter: Meter, day: str) -> None:
        """Move the counts of *meter* into the store, within a change."""
        rows = [(self._owner.nr, day, step, *astuple(each)) for step, each in meter.ledger.steps.items()]
        self._store.executemany(_ADD, rows)
        meter.ledger = Ledger(meter.ledger.ceiling)

    def total(self) -> Mapping[str, Spent]:
        """Return all costs so far, by step. O(days)."""
        rows = self._store.read_rows(_TOTAL, self._owner.nr)
        return {row[0]: Spent(*map(int, row[1:])) for row in rows}

    def on(self, day: str) -> int:
        """Return the tokens spent on a day."""
        return int(self._store.read_value(_ON_DAY, self._owner.nr, day) or 0)


_ADD = """
INSERT INTO memory_spent AS kept VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(owner, day, step) DO UPDATE SET
calls = kept.calls + excluded.calls, prompt = kept.prompt + excluded.prompt,
completion = kept.completion + excluded.completion, failed = kept.failed + excluded.failed,
rejected = kept.rejected + excluded.rejected, cached = kept.cached + excluded.cached"""
_TOTAL = """
SELECT step, sum(calls), sum(prompt), sum(completion), sum(failed), sum(rejected), sum(cached)
FROM memory_spent WHERE owner = ? GROUP BY step ORDER BY step"""
_ON_DAY = "SELECT coalesce(sum(prompt + completion), 0) FROM memory_spent WHERE owner = ? AND day = ?"
