"""Words of statements: which are forms of one word or mean the same, which tell nothing, and which name a person.

"rent", "rents"      "Müll", "Müllabfuhr"      alike: a common beginning or end
"rent", "price"                                alike: in one group of the table
"they'll", "today", "感到"                      tell nothing of the thing that a statement is about
"""

import re
from functools import cache
from typing import Final, get_args

from .marks import with_marks
from .patterns import HIRAGANA, Writing, pattern, words
from .sentences import lower_case, simplify
from .terms import STOP_WORDS

LEAST: Final = 4  # letters at the beginning that two forms of a word share, at least
_NOT = pattern("facts", "negation")
TIED = re.compile("[\u3005-\u3007\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_SPACED, _ANY = map(with_marks, (r"[^\W\d_\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3]", r"[^\W\d_]"))
WORD = re.compile(f"{_SPACED}(?:['’-]{_ANY})*")


def normal(text: str) -> str:
    """Return *text* as its words are compared: in lower case, in simplified characters. O(length)."""
    lower = lower_case(text)
    if lower.isascii():
        return lower
    return (lower if HIRAGANA.search(lower) else simplify(lower)).replace("’", "'")


def is_alike(some: str, other: str) -> bool:
    """Return whether two words are forms of one, or mean the same."""
    if some == other or meaning().get(some, some) == meaning().get(other, other):
        return True
    short, long = (some, other) if len(some) <= len(other) else (other, some)
    if len(short) >= LEAST + 1 and long.endswith(short):
        return True  # "telefonnummer", "nummer"
    if some[:LEAST] != other[:LEAST]:
        return False
    if len(short) >= LEAST and long.startswith(short):
        return True  # "müll", "müllabfuhr"
    same = next((at for at, (a, b) in enumerate(zip(some, other, strict=False)) if a != b), len(short))
    return same >= LEAST and same >= 0.6 * len(long)


def edges_of(word: str) -> tuple[str, str, str]:
    """Return of what two words that are `is_alike` have one in common: a beginning, an end, the word they stand for."""
    return f"{word[:LEAST]}-", f"-{word[-LEAST - 1 :]}", meaning().get(word, word)


def covered(run: str, said: str) -> int:
    """Return how many characters of *run* are in runs of at least two characters that *said* has, too."""
    found = at = 0
    while at < len(run) - 1:
        size = next((size for size in range(len(run) - at, 1, -1) if run[at : at + size] in said), 0)
        found += size
        at += size or 1
    return found


@cache
def kin(*spoken: Writing) -> frozenset[str]:
    """Return the words for persons by what they are to others: "sister", "boss"; without *spoken* in all languages."""
    return frozenset(word for one in spoken or get_args(Writing) for word in words("change", "kin", one))


@cache
def plain() -> frozenset[str]:
    """Return the words that tell nothing."""
    keys = (("words", "common"), ("change", "plain"))
    listed = (word for language in get_args(Writing) for key in keys for word in words(*key, language))
    return STOP_WORDS | frozenset(listed) | frozenset(words("words", "everyday"))


def tells_nothing(word: str) -> bool:
    """Return whether *word* is a common one, also in front of what is left of another one: "they'll", "don't"."""
    return word in plain() or word.partition("'")[0] in plain() or _NOT.search(word) is not None


@cache
def plain_runs(written: Writing) -> re.Pattern[str]:
    """Return what finds what tells nothing in writing without spaces, and signs of change."""
    listed = sorted(words("change", "plain", written), key=len, reverse=True)
    return re.compile("|".join([*listed, pattern("change", "told", written).pattern]))


def same_meaning(text: str) -> list[str]:
    """Return words that mean the same as one of *text*: "size" for "shoe". O(length)."""
    said = normal(text)
    own = WORD.findall(said) + ([] if said.isascii() else tied_words().findall(said))
    return [other for word in own for other in _groups().get(meaning().get(word, ""), ()) if other != word]


@cache
def meaning() -> dict[str, str]:
    """Return for each word with others of its meaning the first of them."""
    return {word: first for first, group in _groups().items() for word in group}


@cache
def tied_words() -> re.Pattern[str]:
    """Return what finds those of them that are written without spaces."""
    return re.compile("|".join(sorted((each for each in meaning() if TIED.match(each)), key=len, reverse=True)))


@cache
def _groups() -> dict[str, list[str]]:
    """Return the words that mean the same, by the first of them."""
    listed = [
        group.split()
        for language in get_args(Writing)
        for group in " ".join(words("change", "alike", language)).split(",")
    ]
    return {group[0]: group for group in listed if group}
