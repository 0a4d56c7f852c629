"""The user's lasting instructions, the last message of the Contents Page.

    <memci:standing 1f9a03c2>
    Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:
    #3 Never book before 11.
    #9 Always answer in French.
    </memci:standing 1f9a03c2>

They are short, and matter most after their page has left the window. They are quoted from the user, as data, never as
the system's words.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple
from zlib import crc32

from ..text.interface import section
from ..text.language.change import shares_words
from ..text.language.instructions import Clause

Instructions = tuple[tuple[int, str], ...]  # (page index, sentence) of each, oldest first

_NAME = re.compile(r"(?:\([^()]{1,40}\) )?[^:.,!?]{1,40}: ")
HEADING = section("standing")["heading"]


class Instruction(NamedTuple):
    """A lasting instruction of the user, or what takes one back."""

    id: str  # by which `Context.drop_instruction` drops it, such as "3-9f2c01ab"
    page: int
    text: str  # in the user's own words, in a group behind the name
    shown: bool  # whether it stands in the window; else its page is still there, or it had no room


def mark_of(page: int, text: str) -> tuple[int, int]:
    """Return what stands for the instruction *text* of *page* where it was dropped."""
    return page, crc32(text.encode(errors="surrogatepass"))


def id_of(page: int, text: str) -> str:
    """Return the id of the instruction *text* of *page*."""
    return "{}-{:08x}".format(*mark_of(page, text))


def standing_with(before: Sequence[tuple[int, str]], new: Iterable[tuple[int, Clause]]) -> list[tuple[int, str]]:
    """Return the instructions *before* with the *new* clauses; what takes one back counts only behind an earlier one.

    O(characters), and O(instructions) for each that must be about the same thing as an earlier one.
    """
    standing = list(before)
    for page, (text, takes_back) in new:
        if takes_back and not standing:
            continue
        if takes_back == "same" and not any(shares_words(_said(text), _said(earlier)) for _, earlier in standing):
            continue
        standing.append((page, text))
    return standing


def _said(text: str) -> str:
    """Return *text* without the day and the name in front of it, which are no words of the instruction."""
    return text[found.end() :] if (found := _NAME.match(text)) else text


def instructions_text(instructions: Sequence[tuple[int, str]]) -> str:
    """Return the lines that show *instructions*, without their frame."""
    return "\n".join([HEADING, *(f"#{index} {sentence}" for index, sentence in instructions)])


def choose_newest(instructions: Sequence[tuple[int, str]], budget: int, count: Callable[[str], int]) -> Instructions:
    """Return the newest *instructions* that fit *budget* tokens, oldest first; a repeated one counts as new.

    It stops at the first one that does not fit, since that one may have replaced an older one. O(instructions), and
    O(characters · log instructions) of the result.
    """
    newest: dict[str, tuple[int, str]] = {}
    for index, sentence in reversed(instructions):
        newest.setdefault(" ".join(sentence.casefold().split()), (index, sentence))
    latest = list(newest.values())

    def cost(most: int) -> int:
        return count(instructions_text(latest[:most][::-1]))

    many = 1
    while many < len(latest) and cost(many) <= budget:
        many *= 2
    few = bisect_right(range(min(many, len(latest)) + 1), budget, lo=1, key=cost) - 1
    return tuple(latest[:few][::-1])
