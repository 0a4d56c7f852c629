"""Words that turn, weaken or limit others, and the words at which clauses begin.

    I have never flown in a helicopter, but I may try.
           before                       clause  modal
    Wir heizen nicht mehr mit Öl.       before and after: it turns what stands on both sides of it

The words are in the tables, [scope]. `summarize.bounds` keeps others in their scope.
"""

import re
from collections.abc import Sequence
from functools import cache

from .patterns import Writing, pattern, words

FUNCTION, LIST, CLAUSE, LIMIT, INTENT, MODAL, JOINS, AFTER, BEFORE, CONDITION = (1 << place for place in range(10))
"""what a word is to others: a function word, or see [scope] of the English table"""
AHEAD, BEHIND = BEFORE | MODAL | CONDITION, AFTER | JOINS | CONDITION  # what turns words behind it, and before it
LEAST = CLAUSE  # less says nothing by itself
Turn = tuple[int, int, int]  # where such a word begins and ends, and what it is

_SPACED: Sequence[Writing] = ("latin", "german", "french", "spanish", "italian", "portuguese", "russian")


def role_of(word: str) -> int:
    """Return what *word*, in lower case, is to others; of a language that puts spaces between words. O(1)."""
    found = _roles().get(word, 0)
    if found or ("'" not in word and "’" not in word):
        return found
    head, _, tail = word.replace("’", "'").partition("'")
    return BEFORE if (tail == "t" and head[-1:] == "n") or head == "n" else _roles().get(head, 0) & (CLAUSE | FUNCTION)


@cache
def turning() -> frozenset[str]:
    """Return the words that turn what is before them into its opposite, or join it."""
    return frozenset(word for word, role in _roles().items() if role & BEHIND)


@cache
def _roles() -> dict[str, int]:
    found: dict[str, int] = {}
    keys = ("list", "clause", "limit", "intent", "modal", "joins", "after", "before", "condition")
    for language in _SPACED:
        for word in words("words", "common", language):
            found[word] = FUNCTION
    for language in _SPACED:
        for place, key in enumerate(keys, 1):
            for word in words("scope", key, language):
                found[word] = found.get(word, 0) | 1 << place
    return found


def wide_turns(text: str, *, kana: bool) -> list[Turn]:
    """Return such words in *text*, of languages without spaces between words, and of Korean. O(length)."""
    found = [
        (*each.span(), role)
        for script in ("kana" if kana else "han", "hangul")
        for key, role in (("before", BEFORE), ("after", AFTER), ("condition", CONDITION))
        for each in pattern("scope", key, script).finditer(text)
    ]
    return found + [(each.start(), each.start(), CLAUSE) for each in (_PAUSE if kana else _COMMA).finditer(text)]


_PAUSE, _COMMA = re.compile("[，,、]"), re.compile("[，,]")
"""borders of clauses; in Chinese, 、 stands between the words of a list"""
