"""Telling words: the words of a text that show its subject, and how rare they are.

    We adopted a puppy from the Oslo Dog Shelter.
       ───────   ─────          ──── ─── ───────        function words tell nothing

Words are counted by their key, which all forms of a word share. A word's share is the part of all texts that have such
a word, before any text was counted: ids and facts are rare, everyday words common. Han text is cut at grammatical
characters, Hangul words lose their particles. `summarize.gists` makes spans of these words, `keywords` keywords.
"""

import math
import re
from functools import cache, lru_cache

from ..sanitize import is_narrow, width
from .marks import MARKED, normalize, with_marks
from .patterns import GRAMMAR, HAN, HIRAGANA, LETTER, PARTICLE, PREDICATE, STOPS, words
from .salience import FACT, ID, rank_of
from .scopes import AFTER, BEFORE, CLAUSE, FUNCTION, JOINS, LEAST, LIST, Turn, role_of, wide_turns
from .sentences import is_short_form

ID_SHARE, FACT_SHARE, WORD_SHARE, _SHORT, EVERYDAY_SHARE = 0.00001, 0.004, 0.01, 0.05, 0.3
"""The part of all texts that have an id, a fact, a word, a short word, an everyday word. That of ids
was measured (benchmarks/LOG.md); of the others only the order of magnitude matters."""
_LONGEST = 6  # characters of a piece of Han text that count: longer pieces are not more important

_MARKS = f'.!?;:()\n—–"“”「」『』。！？；：…|·{STOPS}؛'
MARK = rf"[{_MARKS}]|(?<=\s)-(?=\s)"  # a mark that no span crosses
_SCRIPTS = {"han": f"[{HAN}]+", "kata": "[\u30a1-\u30ff]{2,}", "hangul": "[\uac00-\ud7a3]+"}
_SYLLABLES = (
    "[\u0e40-\u0e44\u0ec0-\u0ec4]*[\u0e01-\u0e3a\u0e45-\u0e4e\u0e81-\u0ebd\u0ec6-\u0ece]+"
    "|(?=[\u1000-\u103f\u1050-\u108f])(?:[\u1000-\u1037\u1039\u103b-\u103f\u1050-\u108f]|\u103a\u1039)*+"
    "\u103a?[\u1037\u1038]*"
    "|(?=[\u1780-\u17d3])[\u1780-\u17c5\u17c8-\u17ca\u17cc\u17ce-\u17d3]*[\u17c6\u17c7\u17cb\u17cd]*"
)
"""Syllables of Thai and Lao, Burmese, Khmer, which put no spaces between words: a vowel that is written first begins
one, a sign that is written last ends one; several, if they have no such letter"""
_WIDE = re.compile("|".join(f"(?P<{name}>{run})" for name, run in _SCRIPTS.items()))


def _runs(wide: str, word: str) -> re.Pattern[str]:
    """Return what finds words, and the marks at which a span ends."""
    letters = rf"{word}(?:(?:[_'’.@&:/+-]|(?<=\d),(?=\d)){word})*+%?"
    return re.compile(rf"({wide}{letters}|(?:[$€£¥₩]|(?<!#)#){letters}|{MARK})")


_RUN, _ASCII_RUN = _runs("|".join([*_SCRIPTS.values(), ""]), f"{LETTER}++"), _runs("", "[A-Za-z0-9]++")
"""The second pattern finds the same in ASCII, faster."""


@cache  # it takes long to compile, and most texts have no marks
def _marked_run() -> re.Pattern[str]:
    return _runs("|".join([*_SCRIPTS.values(), _SYLLABLES, ""]), with_marks(LETTER))


_ENDS = frozenset(f"{_MARKS}-")  # a hyphen alone is no word
_ENDING = re.compile("(?:(?<=..)n['’]t|['’](?:s|re|ve|ll|d|m|t)|(?<=..)(?:(?<!s)s|es|ed|e|y|ies|ied|ing|ly))$")
Word = tuple[int, int, str, float, float, int, float]
"""Start and end in its text, key, share, how many words it counts as, columns, and the columns between it and the word
before: infinite if a mark is between them."""


def telling_keys(text: str) -> set[str]:
    """Return the keys of the telling words of *text*, and its negators. O(characters)."""
    turns: list[Turn] = []
    keys = {word[2] for word in telling_words(text, turns)}
    return keys | {_lower(text[start:end]) for start, end, role in turns if role & (BEFORE | AFTER | JOINS)}


def telling_words(text: str, turns: list[Turn] | None = None) -> list[Word]:
    """Return the words of *text* that are no function words. O(characters).

    The words that turn or limit others, and the borders of clauses, are added to *turns*.
    """
    found: list[Word] = []
    before = end = 0
    gap = math.inf
    narrow = is_narrow(text)
    kanji = not narrow and HIRAGANA.search(text) is not None
    marked = not narrow and MARKED.search(text) is not None
    runs = iter((_ASCII_RUN if text.isascii() else _marked_run() if marked else _RUN).split(text))
    for between, run in zip(runs, runs, strict=False):  # nothing follows the last text between
        start = end + len(between)
        end = start + len(run)
        if run in _ENDS:
            if run != "." or end == len(text) or not is_short_form(text, end):
                gap = math.inf
            continue
        wide = None if narrow else _WIDE.match(run)
        if wide is None:
            key, share, role = _read(run)
            if turns is not None and (role or not key):
                if not role & LIST and text[start - 2 : start] == ", ":
                    role |= CLAUSE
                if role >= LEAST:
                    turns.append((start, end, role))
            if not key:
                continue
            if narrow:  # in most texts, every word
                found.append((start, end, key, share, 1.0, end - start, gap or start - before))
                before, gap = end, 0
                continue
            pieces = [(start, end, key, share, 1.0)]
        elif wide.lastgroup == "han":
            pieces = [(start + a, start + b, *_read_han(run[a:b])) for a, b in _cut(run, kanji=kanji)]
        else:
            bare = run if wide.lastgroup == "kata" else PARTICLE.sub("", run)
            verb = bare == run and wide.lastgroup == "hangul" and PREDICATE.search(run)
            pieces = [(start, end, bare or run, 3 * _SHORT if verb or len(bare) < 2 else WORD_SHARE, 1.0)]
        for first, last, key, share, size in pieces:
            found.append((first, last, key, share, size, width(text[first:last]), gap or width(text[before:first])))
            before, gap = last, 0
    if turns is not None and not narrow:
        turns += wide_turns(text, kana=kanji)
    return found


def _cut(run: str, *, kanji: bool) -> list[tuple[int, int]]:
    """Return where the pieces of *run* begin and end. Japanese grammar is in kana: its Han runs stay whole."""
    if kanji:
        return [(0, len(run))]
    cuts = [(cut.start(), cut.end()) for cut in GRAMMAR.finditer(run)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(run)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def _read_han(piece: str) -> tuple[str, float, float]:
    return (piece, WORD_SHARE, min(len(piece), _LONGEST) / 2) if len(piece) > 1 else (piece, EVERYDAY_SHARE, 1.0)


@lru_cache(maxsize=16_384)
def _read(word: str) -> tuple[str, float, int]:
    """Return the key of *word*, its share, and what it is to others; the key of a function word is ""."""
    lower = _lower(word)
    key, role = _key(lower), role_of(lower)
    if lower in _FUNCTION or key in _FUNCTION:
        return "", 1.0, role
    rank = rank_of(word)
    if rank in (ID, FACT):
        return key, ID_SHARE if rank == ID else FACT_SHARE, role
    if key in _EVERYDAY_KEYS or role & (FUNCTION | JOINS | AFTER | BEFORE):  # a negator says nothing alone
        return key, EVERYDAY_SHARE, role
    return key, _SHORT if len(word) < 3 or (len(word) == 3 and word.islower()) else WORD_SHARE, role


def _lower(word: str) -> str:
    """Return *word* in lower case, with its accents in one form."""
    return word.lower() if word.isascii() else normalize("NFC", word).lower()


def _key(lower: str) -> str:
    """Return the key of a word in lower case: roughly its stem, without a stemmer, which would take long to load."""
    return _ENDING.sub("", lower)


_FUNCTION = frozenset(words("words", "function"))
_EVERYDAY_KEYS = frozenset(map(_key, words("words", "everyday")))
