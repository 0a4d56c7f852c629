"""Turn text into terms, which a search compares.

    terms("Booked HAT170 to Sydney on May 8")    ["book", "hat170", "hat", "170", "sydney", "may", "8"]
    terms("我住在上海")                            ["住在", "在上", "上海", …]

    terms("Call loadCustomerLedger 🦉")          ["call", "loadcustomerledg", "load", "custom", "ledger", "🦉"]

Words are folded and stemmed, function words dropped, identifiers kept whole and in parts, also by their inner capitals.
Writing without spaces (Han, kana, Hangul, Thai) becomes pairs of characters, and single characters of little weight.
A word has the marks of its letters, as in Hindi; vowel marks of Arabic and Hebrew, and tone marks of Armenian, are left
out, and each emoji is a word. Words of a script that shows their language are stemmed in it. The same text always gives
the same terms: they are stored.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Final

import snowballstemmer
from snowballstemmer.english_stemmer import EnglishStemmer

from ...workers import guard_lock
from .marks import MARKED, MARKS, normalize, with_marks
from .numerals import figures
from .patterns import Writing, alternatives, words

LONGEST = 48  # characters of a term; longer ones are cut, in texts and in queries

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u309f\u30a1-\u30ff"
_HANGUL = "\uac00-\ud7a3"
_THAI = "\u0e00-\u0eff\u1000-\u1049\u104c-\u109f\u1780-\u17d3\u17d7\u17db-\u17ff"
"""Thai, Lao, Burmese and Khmer, with the marks of their vowels and tones, without their stops"""
_TIED = re.compile(f"[{_HAN}{_KANA}{_HANGUL}{_THAI}]+")
_TIED_RUN = re.compile(f"({_TIED.pattern})")
_CLUSTER = re.compile(
    f"[{_THAI}](?:[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u17b4-\u17d3])*"
)
"""a character of Thai and the like, with its marks"""
_MARKS = re.compile("[\u055b\u055c\u055e\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed]")
"""marks of Armenian tone within a word, vowel marks of Hebrew and Arabic, and the line that stretches Arabic"""
_LETTERS = str.maketrans("أإآٱىةک", "ااااي\u0647\u0643")  # variants of Arabic letters
_EMOJI = re.compile("[\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff]")
_INNER = re.compile(r"[A-Z](?:(?<=[a-z].)|(?<=[A-Z].)(?=[a-z]))")
"""an inner capital, and the last one of several; a set at the beginning lets the search skip quickly"""
_HEAD, _TAIL = re.compile(r"[A-Za-z0-9]*\Z"), re.compile("[A-Za-z0-9]*")
"""of an identifier, before and behind a capital"""
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_HUMPS = 8  # parts of an identifier with inner capitals; encoded data has more
_SINGLE = re.compile(f"[{_HAN}{_HANGUL}]")
_CHUNK = re.compile(r"\w(?:[\w'’.,:/@#&+-]*\w)?")
_PART = re.compile(with_marks(r"[^\W\d_]") + r"|\d+")
_WORD = re.compile(with_marks(r"[^\W_]"))
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_HAS_MARKS = re.compile("[\u055b-\u06ff]")
_ESCAPES = re.compile(r"(?:\\{1,4}u[0-9a-fA-F]{4})+")
_BREAK = re.compile(r"\\[nrt](\w+)")
"""letters as JSON may write them, and a break in front of a word; in a path or a formula it is a letter"""
_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "'t", "'em", "'all")

STOP_WORDS = frozenset(words("words", "function"))  # English function words, and their parts in front of an apostrophe

_GRAMMAR = frozenset(alternatives("characters", "grammar", "han"))
"""grammatical Han characters; a pair with one of them is no term"""
_KANA_PAIRS = frozenset(words("characters", "pairs", "kana"))  # pairs of grammatical kana, which are no terms
_PARTICLES = frozenset(
    alternatives("characters", "particles", "han")
    + alternatives("characters", "grammar", "kana")
    + alternatives("characters", "grammar", "hangul")
)
"""characters without a meaning of their own"""

_STEMMED: Final = ("german", "french", "spanish", "italian", "portuguese", "russian")
_SHORTEST: Final = 4  # letters of a stem by which other forms of a word are found, at least

_SCRIPT = re.compile(
    "(?P<hindi>[\u0900-\u097f]+)|(?P<tamil>[\u0b80-\u0bff]+)|(?P<arabic>[\u0620-\u064a]+)"
    "|(?P<greek>[\u0370-\u03ff\u1f00-\u1fff]+)|(?P<armenian>[\u0530-\u058f]+)"
)
"""scripts that show in which language a word is stemmed; Persian and Urdu have some letters more than Arabic"""

_stemmer_of = cache(snowballstemmer.stemmer)
_lock = guard_lock(threading.Lock())
_stemmer = EnglishStemmer()


def terms(text: str) -> list[str]:
    """Return the terms of *text*, in order, repeated as often as they occur. O(length)."""
    found: list[str] = []
    if "\\" in text:
        text = _unescaped(text)
    folded = text.lower() if text.isascii() else _fold(text)
    marked = not text.isascii() and MARKED.search(folded)
    for chunk in (_marked_chunk() if marked else _CHUNK).findall(folded):
        found += _analyse_often(chunk) if len(chunk) <= LONGEST else _analyse(chunk)
    end = 0
    for inner in _INNER.finditer(text):
        at = inner.start()
        if at >= end:
            head, tail = _HEAD.search(text[max(0, at - LONGEST) : at]), _TAIL.match(text, at)
            assert head and tail, "both may be empty"
            found += _humps(head[0] + tail[0])
            end = tail.end()
    if not text.isascii():
        found += _EMOJI.findall(text)
    return found


def _unescaped(text: str) -> str:
    """Return *text*, which may be JSON, with the letters that are escaped, and again the words behind a break."""

    def letters(run: re.Match[str]) -> str:
        return bytes.fromhex("".join(run[0].replace("\\", "").split("u"))).decode("utf-16-be", "ignore")

    return _BREAK.sub(r"\g<0> \1", _ESCAPES.sub(letters, text))


@cache  # it takes long to compile, and most texts have no marks
def _marked_chunk() -> re.Pattern[str]:
    return re.compile(rf"[\w{_THAI}](?:[\w{_THAI}{MARKS}'’.,:/@#&+-]*[\w{_THAI}{MARKS}])?")


def _fold(text: str) -> str:
    """Return *text* in lower case, with one form for what is written in several."""
    folded = normalize("NFKC", text).casefold().replace("’", "'")
    folded = folded.replace("\u200d", "").replace("\u00ad", "")  # a joiner of letters, and a hyphen that is not shown
    return _MARKS.sub("", folded).translate(_LETTERS) if _HAS_MARKS.search(folded) else folded


@lru_cache(maxsize=4_096)
def _humps(word: str) -> list[str]:
    """Return the terms of the parts of *word*, an identifier with inner capitals."""
    parts = _HUMP.findall(word) if len(word) <= LONGEST else ()
    return [term for part in parts for term in _analyse(part.lower())] if 1 < len(parts) <= _HUMPS else []


def query_terms(text: str, spoken: Sequence[Writing] = ()) -> list[str]:
    """Return the terms to search for, each once; question words only if there are no others. O(length).

    Function words of the languages *spoken*, in which the question may be, count as question words.
    """
    found = list(dict.fromkeys(terms(text)))
    few = _ASKING_STEMS
    for each in spoken:
        few = few | _function_terms(each) if each in _STEMMED else few
    return [term for term in found if term not in few] or found


def stems(text: str, spoken: Sequence[Writing]) -> dict[str, str]:
    """Return, by the term of each word of *text*, what its other forms begin with, too. O(length).

    *spoken* are the languages in which it may be. English has none: its terms are stems themselves.
    """
    found: dict[str, str] = {}
    told = dict.fromkeys(_WORD.findall(normalize("NFC", text).casefold()))  # each word once: a stemmer is slow
    for language in [each for each in spoken if each in _STEMMED]:
        for word in told:
            with _lock:
                stem = _strip_marks(_stemmer_of(language).stemWord(word))
            for term in _word_terms(word):
                if len(stem) >= _SHORTEST:
                    found.setdefault(term, stem)
    return found


def extent(found: Iterable[str]) -> int:
    """Return how many words a text of these terms has; two pairs of characters count as one word. O(terms)."""
    words = pairs = 0
    for term in found:
        if not term.isascii() and _TIED.match(term) and (len(term) <= 2 or _CLUSTER.match(term)):
            pairs += len(term) > 1
        else:
            words += not term.startswith("@")
    return words + -(-pairs // 2)


def is_single(term: str) -> bool:
    """Return whether *term* is a single character of a script without spaces, which means little by itself."""
    return len(term) == 1 and _TIED.fullmatch(term) is not None


def _analyse(chunk: str) -> list[str]:
    if not chunk.isascii() and _TIED.search(chunk):
        return _tied_terms(chunk)
    if _is_word(chunk):
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
        if _is_word(piece):
            found += _word_terms(piece)
            continue
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


def _is_word(chunk: str) -> bool:
    """Return whether *chunk* is nothing but letters and their marks."""
    return chunk.isalpha() or (not chunk.isascii() and not chunk.isdecimal() and _PART.fullmatch(chunk) is not None)


def _word_terms(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    if word.isascii() and len(word) <= LONGEST:
        return [_stem(word)]
    script = _SCRIPT.fullmatch(word[: LONGEST + 1])
    return [_strip_accents(_stem_in(script.lastgroup or "", word) if script else word)[:LONGEST]]


@lru_cache(maxsize=16_384)
def _stem_in(language: str, word: str) -> str:
    """Return the stem of *word* in a *language* that its script shows; *word* if the stem is but a letter."""
    if len(word) > LONGEST:
        return word
    if language == "arabic" and word.endswith("\u0647"):
        word = word[:-1] + "ة"  # the two letters are one in what is folded, and the stemmer knows this one as an ending
    with _lock:
        stem = str(_stemmer_of(language).stemWord(word))
    return stem if len(stem) > 1 else word


def _tied_terms(chunk: str) -> list[str]:
    found = [*figures(chunk)]
    for at, run in enumerate(_TIED_RUN.split(chunk)):
        if not at % 2:  # what stands between the runs
            found += [term for between in _CHUNK.findall(run) for term in _analyse(between)]
            continue
        if _CLUSTER.match(run):
            clusters = _CLUSTER.findall(run)  # each with its marks
            found += ["".join(clusters[place : place + 2]) for place in range(max(1, len(clusters) - 1))]
            continue
        pairs = (run[place : place + 2] for place in range(len(run) - 1))
        telling = (pair for pair in pairs if _GRAMMAR.isdisjoint(pair) and pair not in _KANA_PAIRS)
        found += [_IRREGULAR.get(pair, pair) for pair in telling]
        alone = len(run) == 1
        found += [letter for letter in run if letter not in _PARTICLES and (alone or _SINGLE.match(letter))]
    return found


@cache
def _function_terms(language: Writing) -> frozenset[str]:
    """Return the terms of the function and question words of a *language* whose inflections are looked for."""
    listed = (word for key in ("common", "asking") for word in words("words", key, language))
    return frozenset(term for word in listed for term in terms(word))


def _strip_marks(word: str) -> str:
    return "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))


def _strip_accents(word: str) -> str:
    """Return *word* without accents, and stemmed if it is ASCII then: "cafe" finds "café"."""
    bare = _strip_marks(word)
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
