"""Marks: numbers that stand for the words with a digit of pages that left the window, kept with their compaction.

    "Booked HAT136 for $163"    ──▶    1833811872, 3961824982

An id, a date or an amount that a tool call needs later is looked up in them. Equal words have equal marks in every
process. This module knows nothing of windows.
"""

import re
from base64 import b85decode, b85encode
from collections.abc import Iterable, Sequence
from struct import iter_unpack, pack
from zlib import crc32

from ..chapters.messagelist import MessageNode
from ..messages import Message, text_of, tool_calls

WORDS = 512
"""words that are kept of the pages of one compaction, the newest ones"""
Marks = tuple[int, frozenset[int]]
"""numbers that stand for words, and the seq before which those were said"""

_WORD = re.compile(r"[\w@.\-]{3,200}")


def said(message: Message) -> str:
    """Return all that *message* says: its text, and the arguments of its calls."""
    parts = [text_of(message), *(call["function"]["arguments"] for call in tool_calls(message) if "function" in call)]
    return "\n".join(parts)


def mark_of(text: str) -> int | None:
    """Return the mark of *text*, if it is one word that has a digit."""
    return next(iter(_of(text)), None) if _WORD.fullmatch(text) else None


def marks(nodes: Iterable[MessageNode]) -> Sequence[int]:
    """Return the numbers that stand for words with digits in *nodes*, none twice. O(characters)."""
    return [*_of("\n".join([said(node.message) for node in nodes]))]


def packed(pages: Iterable[Sequence[int]], until: int) -> str | None:
    """Return the marks of *pages*, which leave the window, as text; None if there are none. *until*: the seq behind."""
    found = list(dict.fromkeys(mark for page in pages for mark in page))[-WORDS:]
    return f"{until} {b85encode(pack(f'<{len(found)}I', *found)).decode()}" if found else None


def unpacked(text: str) -> Marks:
    """Return what `packed` wrote; ValueError if it did not write *text*."""
    until, _, marks = text.partition(" ")
    raw = b85decode(marks)
    if len(raw) % 4:
        raise ValueError("marks: expected numbers of four bytes")
    return int(until), frozenset(mark for (mark,) in iter_unpack("<I", raw))


def _of(text: str) -> dict[int, None]:
    """Return a number for each word of *text* that has a digit, as ids, dates and amounts do, none twice."""
    words = dict.fromkeys(_WORD.findall(text))
    return dict.fromkeys(crc32(word.encode()) for word in words if not word.isalpha() and any(map(str.isdigit, word)))
