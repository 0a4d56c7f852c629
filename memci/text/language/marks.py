"""Marks of letters: accents and vowel signs that are characters of their own.

    "हिन्दी"      three letters with three marks; the class of letters in `re` has none
    "é"          one character, or "e" with a mark

A pattern of words is made `with_marks`; words are compared after `normalize`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal

_PILED = 30  # marks of a letter that count; no language has as many
_PILE = re.compile(rf"[^\w\s\x00-\u02ff]{{{_PILED + 1},}}")
"""marks of one letter, or other characters that are no letters"""


def normalize(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return *text* in a normal form of Unicode, with 30 marks of a letter at most. O(length).

    The time in which `unicodedata` sorts the marks of a letter is the square of their number.
    """
    if form == "NFKC":
        text = text.replace("\uff9e", "\u3099").replace("\uff9f", "\u309a")  # letters, which become marks
    if not text.isascii() and _PILE.search(text):
        text = _PILE.sub(lambda pile: "".join(_thinned(pile[0])), text)
    return unicodedata.normalize(form, text)


def _thinned(pile: str) -> Iterator[str]:
    """Yield the characters of *pile*, of marks in a row the first ones."""
    count = 0
    for each in pile:
        count = count + 1 if unicodedata.combining(each) else 0
        if count <= _PILED:
            yield each


def compose(text: str) -> tuple[str, Sequence[int]]:
    """Return *text* with one character for a letter and its marks, and where each character begins in it. O(length).

    The last place is the end of *text*.
    """
    if text.isascii() or normalize("NFC", text) == text:
        return text, range(len(text) + 1)
    parts, places = [], list[int]()
    for each in _CLUSTER.finditer(text):
        parts.append(normalize("NFC", each[0]))
        places += [min(each.start() + at, each.end() - 1) for at in range(len(parts[-1]))]
    return "".join(parts), [*places, len(text)]


def with_marks(letter: str) -> str:
    """Return a regular expression of *letter* once or more, each with its marks; it gives no character back.

    The class of letters in `re` has no marks: by it alone, "हिन्दी" is three words.
    """
    return rf"{letter}++(?:[{MARKS}]++{letter}*+)*+"


_BLOCKS = (
    "\u0300\u1dff", "\u2cef\u2dff", "\u302a\u309a", "\ua66f\uabff", "\ufb1e\ufb1e", "\ufe20\ufe2f",
    "\U0001e944\U0001e94a",
)  # fmt: skip


def _combining() -> Iterator[str]:
    """Yield the runs of marks that are written above, below or beside a letter, as parts of a set."""
    for block in _BLOCKS:
        begin = end = 0
        for code in range(ord(block[0]), ord(block[1]) + 1):
            if unicodedata.category(chr(code)) in ("Mn", "Mc"):
                if code - 1 != end:
                    if begin:
                        yield f"{chr(begin)}-{chr(end)}"
                    begin = code
                end = code
        yield f"{chr(begin)}-{chr(end)}"


MARKS = "".join(_combining()) + "\u200d\u00ad\u055b\u055c\u055e"
"""marks of letters, without those that make emoji, and what else stands within a word: the joiner of letters, a hyphen
that is not shown, marks of Armenian tone. A part of a set in a regular expression. Of the scripts beyond U+FFFF only
Adlam is there: the ranges of all would double the time of a search"""
_CLUSTER = re.compile(rf"(?:[\u1100-\u115f][\u1160-\u11a7]|[\uac00-\ud7a3])[\u11a8-\u11ff]?|.[{MARKS}]*+", re.DOTALL)
"""a letter with its marks, or a syllable of Hangul in two or three characters"""
MARKED = re.compile(f"[{MARKS}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""a mark, or a letter of Thai, Lao, Burmese or Khmer, which have few words without one"""
