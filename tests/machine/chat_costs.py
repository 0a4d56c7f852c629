"""What a context may cost, and when it may refuse: budgets, checked by another counter.

    BudgetExceeded   only if what can't leave the window is larger than the budget, part by part
    a pin            refused only if it does not fit, or its page is gone or still open

What else must hold is in `chat_checks`. It knows nothing of rules.
"""

import json

from hypothesis.stateful import RuleBasedStateMachine

from memci.chapters.active import TIME_TOKENS
from memci.chapters.toolgroups import late_result
from memci.errors import BudgetExceeded, Erased, Undone
from tests.machine.chat_model import Message, cost, count

SMALLEST = 200
"""tokens that a clipped result may cost at most where nothing else helps"""
FLOOR = 64
"""tokens that the Contents Page keeps"""


class Costs(RuleBasedStateMachine):
    """The checks of what is refused for its cost."""

    def irreducible(self, error: BudgetExceeded, pending: list[Message]) -> None:
        """A window that does not fit holds too much that can't leave it."""
        parts, settings = error.parts, self.context._parts.window.settings
        least = sum(parts.values()) - max(0, parts.get("contents", 0) - FLOOR)
        assert least > error.budget >= (settings.window - settings.reply) // 1.31
        system = self.context._parts.window.system.view
        assert parts.get("system", 0) <= self.most(system)
        pinned = [seq for index in self.pins for seq in self.seqs(index)]
        times = 2 * TIME_TOKENS * len(self.pins)  # a page that comes back may show when it was
        assert parts.get("pinned", 0) <= self.most(self.loaded([self.model.texts[seq] for seq in pinned])) + times
        seqs = self.shown_seqs(self.model.open) if self.model.open is not None else []
        run = self.loaded([self.model.texts[seq] for seq in seqs])
        begun = bool(seqs) and seqs[0] == self.model.interactions[self.model.open][0]
        task = run[:1] if begun and run[0]["role"] == "user" else []
        assert parts.get("task", 0) <= self.most(task)
        last = max([at for at, message in enumerate(run) if message["role"] == "assistant"], default=len(task))
        if any(message["role"] != "tool" for message in pending) and not self.model.waiting:
            # a page without the user's message keeps its last piece
            last = (
                len(run)
                if task
                else max([at for at, message in enumerate(run) if message["role"] != "tool"], default=0)
            )
        latest = self.most(run[last:] + pending, clipped=True)
        roles = [message["role"] for message in run + pending]
        assert parts.get("latest messages", 0) <= latest, f"{parts} for {latest} of {roles}"
        self.seen["budget exceeded"] += 1

    def most(self, messages: list[Message], *, clipped: bool = False) -> int:
        """Return what *messages* cost at most; *clipped*: results as small as they get."""
        total = 0
        for message in messages:
            model = self.options.get("model")
            tokens = max(cost([message], [], model), self.count(json.dumps(message)))
            if message["role"] == "tool" and not clipped:  # nobody may wait for it any more: it is shown in a frame
                tokens = max(tokens, cost([late_result(message, self.nonce)], [], model))
            tokens += 20 + 90 * json.dumps(message).count("image_url") + 24 * len(message.get("tool_calls") or [])
            total += min(tokens, SMALLEST) if clipped and message["role"] == "tool" else tokens
        return total

    def refused_pin(self, index: int, error: Exception) -> None:
        """A page is refused a pin for a reason."""
        if isinstance(error, (Undone, Erased)):
            assert self.gone(index)
        else:
            assert isinstance(error, BudgetExceeded)
            seqs = [seq for each in self.pins | {index} for seq in self.seqs(each)]
            assert sum(error.parts.values()) > error.budget
            times = 2 * TIME_TOKENS * len(self.pins | {index})
            assert error.parts["pinned"] <= self.most(self.loaded([self.model.texts[seq] for seq in seqs])) + times

    def count(self, text: str) -> int:
        """Return the tokens of *text*."""
        return count(text, self.options.get("model"))
