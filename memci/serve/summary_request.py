"""A summary request: a client asks the model for a summary of the conversation, to go on with that in its place.

    "Your task is to create a detailed summary of the conversation so far …"       the last message asks for it
    "You are the component that summarizes internal chat history …"                or a system prompt of its own

It is found by its words, so that every client is served: those of Claude Code, codex, opencode, pi, qwen-code and
aider, and of people who ask for the same. A summary of memci's view would lack what has left that, so such a request
gets the whole list, as far as the model's own window goes.
"""

import re
from typing import Final

from ..messages import Item, parts_of
from ..text.language.patterns import pattern

_SAID: Final = 1_500  # characters at both ends of a text that are read: a request may stand around the conversation
_NEAR: Final = 200  # characters around the word for a summary that must say of what
_ASKS: Final = pattern("summaries", "asks", flags=re.IGNORECASE)
_OF: Final = pattern("summaries", "of", flags=re.IGNORECASE)
_PROMPT: Final = pattern("summaries", "prompt", flags=re.IGNORECASE)


def asks_for_summary(item: Item) -> bool:
    """Return whether *item*, the last one of a list, asks for a summary of the conversation. O(its parts)."""
    if item.get("role") not in {"user", "system", "developer"}:
        return item.get("type") == "compaction_trigger"
    texts = [part.get("text") for part in parts_of(item.get("content")) if isinstance(part, dict)]
    for end in [end for text in texts if isinstance(text, str) for end in (text[:_SAID], text[-_SAID:])]:
        for asked in _ASKS.finditer(end):
            if _OF.search(end, max(0, asked.start() - _NEAR), asked.end() + _NEAR):
                return True
    return False


def is_for_summaries(system: str) -> bool:
    """Return whether *system*, a system prompt, is for summaries of conversations."""
    begin = system[: 2 * _NEAR]
    return bool(_PROMPT.search(begin) and _OF.search(begin))
