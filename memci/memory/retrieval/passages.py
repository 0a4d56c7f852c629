"""Cuts pages into passages, the pieces of messages that a search finds.

A passage has at most about 120 tokens, and ends at the end of a paragraph, a sentence or a word. The passages of a
message together are its whole text. A passage is found by the terms of its text, of the name of a tool that returned
it, and of its date.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from ...formats.utterance import utterances
from ...messages import Message
from ...text.language.change import SIGNS, Sign, signs
from ...text.language.dates import date_terms
from ...text.language.patterns import STOPS
from ...text.language.sentences import greeted
from ...text.language.terms import terms

LONGEST = 600  # width of a passage, about 120 tokens, a few sentences: 1 for a character, 3 in scripts without spaces
MOST = 256  # passages of one message at most; those of longer messages are larger

_BORDERS = (
    re.compile(r"\n\s*\n\s*"),
    re.compile(r"\n+"),
    re.compile(rf"(?<=[.!?…{STOPS}])[\"'”’)\]]*\s+|[。！？；{STOPS}]+[”’」』）]*"),
    re.compile(r"[,;:，、]\s*|[}\]]"),
    re.compile(r"\s+"),
)
"""where a text may be cut, the best first: between paragraphs, lines, sentences, clauses, words"""
_WIDE = re.compile("[\u1100-\u11ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff]")


class Passage(NamedTuple):
    """A piece of a message: the ordinal of the message, and the number of the piece, from 0."""

    entry: int
    part: int
    role: str
    speaker: str  # the `name` of the message, or of the tool that answers; "" if unknown
    text: str
    start: int = 0  # position in the text of the message, in characters
    own: str = ""  # the text with what is not the user's own masked, if its message gives or takes back an instruction


def passages(entries: Sequence[tuple[int, Message]]) -> list[Passage]:
    """Cut the messages of a page into passages, in order. O(characters)."""
    found = []
    for said in utterances(entries):
        start, own = 0, said.own if said.clauses else ""
        for part, piece in enumerate(pieces(said.text)):
            found.append(
                Passage(said.entry, part, said.role, said.speaker, piece, start, own[start : start + len(piece)])
            )
            start += len(piece)
    return found


def pieces(text: str, longest: int = LONGEST) -> list[str]:
    """Cut *text* into pieces of at most about *longest* width, which together are the text. O(characters)."""
    if not text.strip():
        return []
    width = _width(text)
    count = -(-width // max(longest, -(-width // MOST)))
    return [text] if count == 1 else list(_cut(text, -(-width // count)))


def passage_terms(passage: Passage, when: datetime | None) -> list[str]:
    """Return the terms of *passage*: of its text, its tool, and the day on which it was said.

    A person's statement also has a term for each of its signs of change, and for the name of whom it greets.
    """
    tool = terms(passage.speaker) if passage.role == "tool" else ()
    own = passage.role == "user" or (passage.speaker and not tool)
    marks = [*map(sign_term, signs(passage.text)), *map(greeting_term, terms(greeted(passage.text)))] if own else ()
    return [*terms(passage.text), *tool, *(date_terms(when) if when is not None else ()), *marks]


def sign_term(sign: Sign) -> str:
    """Return the term of a passage with *sign*."""
    return f"@={sign}"


def greeting_term(name: str) -> str:
    """Return the term of a passage that greets somebody by the term *name*."""
    return f"@>{name}"


def _width(text: str) -> int:
    return len(text) if text.isascii() else len(text) + 2 * len(_WIDE.findall(text))


def _cut(text: str, width: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        reach = start + width * 5 // 4
        if _width(text[start:reach]) <= width * 5 // 4 and reach >= len(text):
            yield text[start:]
            return
        end = _end(text, start, width)
        yield text[start:end]
        start = end


def _end(text: str, start: int, width: int) -> int:
    """Return the end of the piece that begins at *start*: the best border in the second half of *width*."""
    reach = min(len(text), start + width)
    if _WIDE.search(text, start, reach):
        room = width
        for place in range(start, reach):
            room -= 3 if _WIDE.match(text[place]) else 1
            if room < 0:
                reach = max(place, start + 1)
                break
    floor = start + (reach - start) // 2
    beyond = min(len(text), reach + (reach - start) // 4)  # the end of a paragraph or a line may lie a little farther
    for rank, border in enumerate(_BORDERS):
        last = 0
        for match in border.finditer(text, floor, beyond if rank < 2 else reach):
            last = match.end()
        if last > start:
            return last
    return reach


SIGN_TERMS: Final = tuple(map(sign_term, SIGNS))  # terms that texts do not have
