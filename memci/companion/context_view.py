"""Surroundings: what a companion reads of its open context, besides what every caller may.

    surroundings(context, 6).recent     ("Book me a flight.", "To Oslo?"), …     the last turns, from RAM
    profile_of(context)                 what kind of person the user is, and how to treat them

This is the one module of the companion that knows how a context is put together; it knows nothing of models.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..context.context import Context
from ..errors import StorageError
from ..memory.backend import MemoryBackend
from ..messages import text_of

FRAMING = 8
"""tokens of a message beside its text, at most"""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What is around a question in its context. Made anew for each turn: a context may be read again in between."""

    context: str
    """its name"""
    count: Callable[[str], int]
    """tokens of a text, as the window counts"""
    nonce: str
    """of the context's frames"""
    budget: int
    """tokens that a request may cost"""
    largest: int
    """tokens of the largest message that is shown whole"""
    recent: tuple[tuple[str, str], ...] = ()
    """the last turns that stand in the window: what the user said, and what was answered last"""
    recalls: bool = True
    """whether the model may read pages by their number"""


def surroundings(context: Context, turns: int) -> Surroundings:
    """Return what is around the next question in *context*, with its last *turns*. O(messages in the window)."""
    with context._usable():
        window = context._parts.window
        recent = []
        for page in list(window.active)[-turns:]:
            said = {node.message["role"]: text for node in page if (text := text_of(node.message))}
            if "user" in said or "assistant" in said:
                recent.append((said.get("user", ""), said.get("assistant", "")))
        return Surroundings(
            context.id,
            window.count,
            window.state.nonce,
            window.limits.budget,
            window.clip_limit - FRAMING,
            tuple(recent),
            window.settings.notice,
        )


def profile_of(context: Context) -> tuple[str, str]:
    """Return the profile of the user and the strategy for them, "" where nothing is known. One small query."""
    from ..memory.inspect import profile
    from ..memory.tiered_memory import TieredMemory

    memory = _memory(context)
    if not isinstance(memory, TieredMemory):
        return "", ""
    try:
        found = profile(memory)
    except StorageError:
        return "", ""
    return found.text, found.strategy


def learned(context: Context, text: str, *, page: int, at: float | None) -> bool:
    """Let the memory of *context* keep the fact *text* of page *page*, and return whether it does.

    Raises:
        StorageError: If it can't be stored.
    """
    learn = getattr(_memory(context), "learn", None)
    if learn is None:
        return False
    learn(text, context=context.id, index=page, about="user", at=at)
    return True


def _memory(context: Context) -> MemoryBackend:
    with context._usable():
        return context._remembering.memory
