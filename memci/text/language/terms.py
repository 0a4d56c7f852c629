"""Text into terms: what a search compares.

    terms("Booked HAT170 to Sydney on May 8")    ["book", "hat170", "hat", "170", "sydney", "may", "8"]
    terms("我住在上海")                            ["住在", "在上", "上海", …]

Words are folded and stemmed, function words dropped, identifiers kept whole and in parts. Writing without spaces (Han,
kana, Hangul) becomes pairs of characters, and single ones that count for little. The same text gives the same terms
always: they are stored. This module knows nothing of messages or scores.
"""

import re
import threading
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from snowballstemmer.english_stemmer import EnglishStemmer

LONGEST = 48
"""characters of a term; what is longer is cut, at both ends of the index alike"""

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

_FUNCTION_WORDS = """
    a about above after again against ai all also am an and any are aren as at be because been before being below
    between both but by ca can cannot cant could couldn did didn didnt do does doesn doing done dont down during
    each few for from further get getting go going gone gonna got gotta had hadn has hasn have haven having he hello
    her here hers herself hey hi him himself his how i if im in into is isn it its itself ive just let ll lot me
    might more most must my myself no nor not now of off oh ok okay on once only or other our ours ourselves out
    over own re really s same shall she should shouldn so some such t than thank thanks that the their theirs them
    themselves then there these they thing things this those through to too under until up us ve very wanna was wasn
    we went were weren what when where which while who whom why will with wo would wouldn wow yeah yes you your
    yours yourself yourselves
"""
STOP_WORDS = frozenset(_FUNCTION_WORDS.split())
"""English words that carry no topic, and what is left of them before an apostrophe"""

_ASKING = "kind type sort many much long often tell say said know mention mentioned ever please recall"
"""words that a question has and its answer has not"""

_TIED_GRAMMAR = frozenset(
    "的了是在我你他她它们們这這那有和也不就都吗嗎呢吧啊呀嘛么麼什甚哪谁誰怎为為与與之其很个個一上下到说說要会會把被让讓给給从從"
    "のはがをにへとでもやかねよなたでするれしいうおてまっらりるん"
)
"""characters that are grammar more often than words; a pair of them is dropped, too"""
_PARTICLES = frozenset("이그저은는을를의에가도로고")
"""Hangul that is so at a word's end, and in pairs is not"""

_lock = threading.Lock()
_stemmer = EnglishStemmer()


def terms(text: str) -> list[str]:
    """Return the terms of *text*, in order, repeated as often as they are said. O(length)."""
    found: list[str] = []
    for chunk in _CHUNK.findall(_folded(text)):
        found += _of_chunk(chunk) if len(chunk) <= LONGEST else _analysed(chunk)
    return found


def query_terms(text: str) -> list[str]:
    """Return the terms to search for, each once, without what only questions say (unless that is all there is)."""
    found = list(dict.fromkeys(terms(text)))
    return [term for term in found if term not in _ASKING_STEMS] or found


def extent(found: Sequence[str]) -> int:
    """Return how long a text of these terms is, in words: two pairs of a writing without spaces are one. O(terms)."""
    words = pairs = 0
    for term in found:
        if len(term) <= 2 and _TIED.match(term):
            pairs += len(term) == 2
        else:
            words += not term.startswith("@")
    return words + -(-pairs // 2)


def is_single(term: str) -> bool:
    """Tell whether *term* is a single character of a writing without spaces: it says little by itself."""
    return len(term) == 1 and _TIED.fullmatch(term) is not None


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).casefold().replace("’", "'")


@lru_cache(maxsize=65_536)
def _of_chunk(chunk: str) -> tuple[str, ...]:
    return tuple(_analysed(chunk))


def _analysed(chunk: str) -> list[str]:
    if not chunk.isascii() and _TIED.search(chunk):
        return _of_tied(chunk)
    if chunk.isalpha():
        return _of_word(chunk)
    if chunk.isdigit():
        return [chunk[:LONGEST]]
    if _THOUSANDS.fullmatch(chunk):
        return [chunk.replace(",", "")]
    bare = _without_clitics(chunk) if "'" in chunk else chunk
    return _of_compound(chunk) if bare == chunk else _analysed(bare) if bare else []


def _without_clitics(chunk: str) -> str:
    end = len(chunk)
    while clitic := next((each for each in _CLITICS if chunk.endswith(each, 0, end)), ""):
        end -= len(clitic)
    return chunk[:end]


def _of_compound(chunk: str) -> list[str]:
    """Return an identifier whole, if it has a figure or a sign that binds, and its parts."""
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
            if len(parts) <= 4:  # a hash or a key has too many to mean anything
                for part in parts:
                    found += [part[:LONGEST]] if part.isdigit() else _of_word(part)
    return found


def _of_word(word: str) -> list[str]:
    if word in STOP_WORDS:
        return []
    return [_stem(word)] if word.isascii() and len(word) <= LONGEST else [_unaccented(word)[:LONGEST]]


def _of_tied(chunk: str) -> list[str]:
    found = []
    last = 0
    for match in _TIED.finditer(chunk):
        for between in _CHUNK.findall(chunk[last : match.start()]):
            found += _analysed(between)
        last = match.end()
        run = match[0]
        pairs = (run[place : place + 2] for place in range(len(run) - 1))
        found += [pair for pair in pairs if not _TIED_GRAMMAR.issuperset(pair)]
        found += [letter for letter in run if _says_something(letter, alone=len(run) == 1)]
    for between in _CHUNK.findall(chunk[last:]):
        found += _analysed(between)
    return found


def _says_something(letter: str, *, alone: bool) -> bool:
    if letter in _TIED_GRAMMAR or letter in _PARTICLES:
        return False
    return alone or _SINGLE.match(letter) is not None


def _unaccented(word: str) -> str:
    """Return *word* without accents, stemmed if that makes it plain: "café" is found by "cafe"."""
    bare = "".join(letter for letter in unicodedata.normalize("NFD", word) if not unicodedata.combining(letter))
    return _stem(bare) if bare.isascii() and len(bare) <= LONGEST else unicodedata.normalize("NFC", bare)


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    with _lock:  # the stemmer keeps its word in itself
        return str(_stemmer.stemWord(word))


_IRREGULAR_FORMS = """
    bought buy, brought bring, built build, caught catch, chose chosen choose, came come, dealt deal, drew drawn
    draw, drank drunk drink, drove driven drive, ate eaten eat, fell fallen fall, felt feel, fed feed, fought fight,
    found find, flew flown fly, forgot forgotten forget, forgave forgive, froze frozen freeze, gave given give, grew
    grown grow, heard hear, held hold, hid hidden hide, kept keep, knew known know, laid lay, led lead, learnt
    learn, left leave, lent lend, lost lose, made make, meant mean, met meet, paid pay, rode ridden ride, rang rung
    ring, rose risen rise, ran run, said say, saw seen see, sold sell, sent send, shook shaken shake, shone shine,
    shot shoot, showed shown show, sang sung sing, sank sunk sink, sat sit, slept sleep, slid slide, spoke spoken
    speak, spent spend, stood stand, stole stolen steal, stuck stick, struck strike, swam swum swim, swore sworn
    swear, took taken take, taught teach, tore torn tear, told tell, thought think, threw thrown throw, understood
    understand, woke woken wake, wore worn wear, won win, wrote written write, began begun begin, became become,
    bent bend, bit bitten bite, blew blown blow, broke broken break, dug dig, dreamt dream, hung hang, hurt hurt,
    lit light, sought seek, sewn sew, swept sweep, children child, kids kid child, men man, women woman, feet foot,
    teeth tooth, mice mouse, wives wife, lives life, knives knife, leaves leaf, mom mum mommy mama mother, dad daddy
    papa father, grandma granny grandmother, grandpa grandfather, photo photos pic pics picture pictures photo, tv
    television, fridge refrigerator, bike bikes bicycle, movie movies film
"""
_IRREGULAR = {form: base for *forms, base in map(str.split, _IRREGULAR_FORMS.split(",")) for form in forms}
_ASKING_STEMS = frozenset(_stem(word) for word in _ASKING.split())
