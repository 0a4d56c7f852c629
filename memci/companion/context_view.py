"""The context view: what a companion reads of its context for one turn.

    ContextView.of(context, 6).recent          ("Book me a flight.", "To Oslo?"), …     the last turns

This module knows nothing of models or prompts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..context.context import Context
from ..messages import text_of

FRAMING = 8
"""tokens of a message beside its text, at most"""


@dataclass(frozen=True, slots=True)
class ContextView:
    """The context of a question. Made for each turn, since the context may be read again in between."""

    context: str
    """the id of the context"""
    count: Callable[[str], int]
    """returns the tokens of a text, as the window counts them"""
    nonce: str
    """the number in the context's frames"""
    budget: int
    """tokens that a request may cost"""
    largest: int
    """tokens up to which the text of a message is shown whole"""
    recent: tuple[tuple[str, str], ...] = ()
    """the last turns in the window: the user's text, and the text of the last answer"""
    recalls: bool = True
    """whether the model has the tool `recall_page`"""

    @classmethod
    def of(cls, context: Context, turns: int) -> "ContextView":
        """Return the view of *context* for the next question, with its last *turns*. O(messages in the window)."""
        recent = []
        for messages in context.turns(turns):
            texts = {message["role"]: text for message in messages if (text := text_of(message))}
            if "user" in texts or "assistant" in texts:
                recent.append((texts.get("user", ""), texts.get("assistant", "")))
        return cls(
            context.id,
            context.count,
            context.nonce,
            context.budget,
            context.clip_limit - FRAMING,
            tuple(recent),
            bool(context.tools),
        )
