"""Turn text into terms, which a search compares.

    terms("Booked HAT170 to Sydney on May 8")    ["book", "hat170", "hat", "170", "sydney", "may", "8"]
    terms("我住在上海")                            ["住在", "在上", "上海", …]

Words are folded and stemmed, function words dropped, identifiers kept whole and in parts. Writing without spaces (Han,
kana, Hangul) becomes pairs of characters, and single characters of little weight. The same text always gives the same
terms: they are stored.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from snowballstemmer.english_stemmer import EnglishStemmer

from ...workers import guard_lock
from .patterns import alternatives, words

LONGEST = 48
"""characters of a term; longer ones are cut, in texts and in queries"""

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_TIED = re.compile(f"[{_HAN}{_KANA}{_HANGUL}]+")
_SINGLE = re.compile(f"[{_HAN}{_HANGUL}]")
_CHUNK = re.compile(r"\w(?:[\w'’.,:/@#&+-]*\w)?")
_PART = re.compile(r"[^\W\d_]+|\d+")
_WORD = re.compile(r"[^\W_]+")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "'t", "'em", "'all")

STOP_WORDS = frozenset(words("words", "function"))
"""English function words, and their parts in front of an apostrophe"""

_GRAMMAR = frozenset(alternatives("characters", "grammar", "han"))
"""grammatical Han characters; a pair with one of them is no term"""
_KANA_GRAMMAR = frozenset(alternatives("characters", "grammar", "kana"))
"""grammatical kana; a pair of them is no term"""
_PARTICLES = frozenset(
    alternatives("characters", "particles", "han")
    + alternatives("characters", "grammar", "kana")
    + alternatives("characters", "grammar", "hangul")
)
"""characters without a meaning of their own"""

_lock = guard_lock(threading.Lock())
_stemmer = EnglishStemmer()


def terms(text: str) -> list[str]:
    """Return the terms of *text*, in order, repeated as often as they occur. O(length)."""
    found: list[str] = []
    folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    for chunk in _CHUNK.findall(folded):
        found += _analyse_often(chunk) if len(chunk) <= LONGEST else _analyse(chunk)
    return found


def query_terms(text: str) -> list[str]:
    """Return the terms to search for, each once; question words only if there are no others. O(length)."""
    found = list(dict.fromkeys(terms(text)))
    return [term for term in found if term not in _ASKING_STEMS] or found


def extent(found: Sequence[str]) -> int:
    """Return how many words a text of these terms has; two pairs of characters count as one word. O(terms)."""
    words = pairs = 0
    for term in found:
        if len(term) <= 2 and _TIED.match(term):
            pairs += len(term) == 2
        else:
            words += not term.startswith("@")
    return words + -(-pairs // 2)


def is_single(term: str) -> bool:
    """Return whether *term* is a single character of a script without spaces, which means little by itself."""
    return len(term) == 1 and _TIED.fullmatch(term) is not None


def _analyse(chunk: str) -> list[str]:
    if not chunk.isascii() and _TIED.search(chunk):
        return _tied_terms(chunk)
    if chunk.isalpha():
        return _word_terms(chunk)
    if chunk.isdigit():
        return [chunk[:LONGEST]]
    if _THOUSANDS.fullmatch(chunk):
        return [chunk.replace(",", "")]
    bare = _strip_clitics(chunk) if "'" in chunk else chunk
    return _compound_terms(chunk) if bare == chunk else _analyse(bare) if bare else []


_analyse_often = lru_cache(maxsize=65_536)(_analyse)


def _strip_clitics(chunk: str) -> str:
    end = len(chunk)
    while clitic := next((each for each in _CLITICS if chunk.endswith(each, 0, end)), ""):
        end -= len(clitic)
    return chunk[:end]


def _compound_terms(chunk: str) -> list[str]:
    """Return the parts of an identifier, and all of it if it has a digit or a joining sign."""
    found = []
    for piece in re.split(r"[',&+]+|[.:/]+(?!\d)|(?<!\d)[.:/]+", chunk):
        words = _WORD.findall(piece)
        figures = any(letter.isdigit() for letter in piece)
        if len(words) > 1 and (figures or "_" in piece or "@" in piece):
            found.append(piece[:LONGEST])
        for word in words:
            parts = _PART.findall(word)
            if len(parts) > 1:
                found.append(word[:LONGEST])
            if len(parts) <= 4:  # a hash has more parts, without a meaning
                for part in parts:
                    found += [part[:LONGEST]] if part.isdigit() else _word_terms(part)
    return found


def _word_terms(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    return [_stem(word)] if word.isascii() and len(word) <= LONGEST else [_strip_accents(word)[:LONGEST]]


def _tied_terms(chunk: str) -> list[str]:
    found = []
    last = 0
    for match in _TIED.finditer(chunk):
        for between in _CHUNK.findall(chunk[last : match.start()]):
            found += _analyse(between)
        last = match.end()
        run = match[0]
        pairs = (run[place : place + 2] for place in range(len(run) - 1))
        telling = (pair for pair in pairs if _GRAMMAR.isdisjoint(pair) and not _KANA_GRAMMAR.issuperset(pair))
        found += [_IRREGULAR.get(pair, pair) for pair in telling]
        alone = len(run) == 1
        found += [letter for letter in run if letter not in _PARTICLES and (alone or _SINGLE.match(letter))]
    for between in _CHUNK.findall(chunk[last:]):
        found += _analyse(between)
    return found


def _strip_accents(word: str) -> str:
    """Return *word* without accents, and stemmed if it is ASCII then: "cafe" finds "café"."""
    bare = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    return _stem(bare) if bare.isascii() and len(bare) <= LONGEST else unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    with _lock:  # the stemmer stores its word
        return str(_stemmer.stemWord(word))


_IRREGULAR = {
    form: base
    for language in ("latin", "han")
    for *forms, base in map(str.split, " ".join(words("words", "irregular", language)).split(","))
    for form in forms
}
"""the base of irregular English words, and a synonym of Chinese ones"""
_ASKING_STEMS = frozenset(map(_stem, words("words", "asking")))
