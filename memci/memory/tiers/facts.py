"""Facts: what a page says of the user, and of what the assistant did.

    user       "I live in Oslo with my dog Rex. How are you?"     →  "I live in Oslo with my dog Rex."
    assistant  "I have cancelled it." + cancel(id=OI5L9G)         →  "I have cancelled it."  "called cancel(id=OI5L9G)"

Whole sentences that patterns know, and the calls that change something. Questions, moods, wishes and quotations tell
nothing lasting.

This module knows nothing of what is known already, or of how facts are stored and found.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ...messages import Message, call_name, text_of, tool_calls
from ...text.language.patterns import Writing, alternatives, pattern
from ...text.language.sentences import sentences, simplified, writing
from ...text.summarize import extract, one_line
from ..backend import PageRecord
from .chains import Vector

PER_PAGE = 12
LONGEST = 240
"""characters of a sentence that states a fact"""
_SHORTEST = 4
_SCANNED = 20_000

About = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A short statement, and where it comes from."""

    text: str
    """as it was said, in one line"""
    about: About
    context: str
    index: int
    """the page that said it last"""
    turn: int
    at: float | None = None
    """when that was, in seconds since 1970 UTC; None: not known"""
    pages: tuple[tuple[str, int], ...] = ()
    """(context, index) of every page that said it"""
    retrieved: float = 0.0
    """when it was learned, or found by a search, last"""
    vector: Vector | None = None


def facts(page: PageRecord) -> list[Known]:
    """Return the facts that *page* states, in order, none twice. O(characters)."""
    told: list[tuple[About, str]] = []
    for ordinal, message in page.entries:
        if ordinal not in page.quotes:
            told += _told(message)
    found: list[Known] = []
    for about, text in dict.fromkeys(told):
        if sum(each.about == about for each in found) < PER_PAGE:
            known = Known(text, about, page.context, page.index, page.turn, page.at, (page.key,))
            found.append(known)
    return found


def _told(message: Message) -> Iterator[tuple[About, str]]:
    role = message.get("role")
    speaker = message.get("name")
    if role in {"user", "assistant"}:
        for sentence in sentences(text_of(message)[:_SCANNED]):
            if _SHORTEST <= len(sentence) <= LONGEST and _tells(sentence, role):
                line = one_line(sentence, 2 * LONGEST)
                yield role, f"{one_line(speaker, 40)}: {line}" if isinstance(speaker, str) and speaker else line
    for call in tool_calls(message):
        if not _READS.match(call_name(call)):
            yield (
                "assistant",
                f"called {extract(({'role': 'assistant', 'content': None, 'tool_calls': [call]},)).lines[0]}",
            )


def _tells(sentence: str, about: About) -> bool:
    text = _QUOTED.sub("“”", sentence).replace("’", "'")
    if _ASKS.search(text) or text.endswith((":", "：")):
        return False
    written = writing(text)
    said = text.lower() if written == "latin" else simplified(text) if written == "han" else text
    found = _pattern(about, written).search(said)
    return found is not None and not (written == "latin" and _UNREAL.search(said[: found.start()]))


_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|`[^`]*`")
_ASKS = re.compile(f"(?:{alternatives('facts', 'question')})[。.!！~\\s]*$")
_READS = re.compile(
    r"(?:get|list|find|search|read|view|calculate|think|recall|look|query"
    r"|fetch|check|describe|open|show|retrieve|count)(?:_|[A-Z]|$)"
)
_UNREAL = pattern("facts", "unreal", "latin")


@cache
def _pattern(about: About, language: Writing) -> re.Pattern[str]:
    return pattern("facts", about, language)
