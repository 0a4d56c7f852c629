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

_SAID: Final = 1_500  # characters at both ends of a text that are read: a request may stand around the conversation
_NEAR: Final = 200  # characters around the word for a summary that must say of what
_ASKS: Final = re.compile(
    r"\b(?:creat|writ|provid|produc|generat|giv|mak|perform|prepar|updat|maintain|merg|summari[sz])\w*\b[^.!?\n]{0,80}"
    r"(?:summar|checkpoint|handoff|recap|compaction|snapshot|prompt for continuing|version of the \w+ messages)"
    r"|\bextract\w*\b[^.!?\n]{0,80}\bcontext\b"
    r"|\b(?:summari[sz]e|condense|recap|compact)\b"
    r"|zusammenfass|fasse?\b.{0,80}\bzusammen|résum[eé]|\bresum[ea]|riassu|\bитог|резюмир|перескаж"
    r"|总结|總結|摘要|概括|压缩|要約|まとめ|요약",
    re.IGNORECASE,
)
_OF: Final = re.compile(
    r"conversation|chat history|\b(?:this|our|the) session\b|transcript|messages? above|(?:below|above) messages"
    r"|\bso far\b|(?:another|interactive) (?:LLM|agent|model)|context checkpoint|state_snapshot"
    r"|gespräch|unterhaltung|bisher|conversación|conversa\b|conversazione|(?:notre|cette) discussion"
    r"|разговор|диалог|бесед|对话|對話|会话|會話|会話|これまで|대화",
    re.IGNORECASE,
)
_PROMPT: Final = re.compile(r"summari[sz]|compact|condens", re.IGNORECASE)


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
