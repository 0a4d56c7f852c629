"""Positions of a query's words in a text, also in another form: to mark what a search found.

[*find_words("We flew to Oslo.", "flights to Oslo")]        [(11, 15)]
"""

import re
from collections.abc import Iterator

from ..text.language.marks import with_marks
from ..text.language.terms import query_terms, terms

_LETTERS = with_marks(r"[^\W_]")
_WORD = re.compile(rf"(?>{_LETTERS}(?:['’.,:/@#&+_-]+{_LETTERS})*)")


def find_words(text: str, query: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each word of *query* in *text*, in order. O(characters)."""
    wanted = frozenset(query_terms(query))
    for word in _WORD.finditer(text):
        for start, end in _matches(word[0], wanted):
            yield word.start() + start, word.start() + end


def _matches(word: str, wanted: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Yield where *word* has one of the terms: all of it, or pairs of characters where there are no spaces."""
    found = terms(word)
    if wanted.isdisjoint(found):
        return
    pairs = [at for at in range(len(word) - 1) if not word[at].isascii() and word[at : at + 2] in wanted]
    if pairs:
        yield from ((at, at + 2) for at in pairs)
    elif word.isascii() or len(found) == 1:
        yield 0, len(word)
    else:
        yield from ((at, at + 1) for at, letter in enumerate(word) if letter in wanted)
