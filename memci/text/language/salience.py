"""Find the words of a text that a summary must keep.

    "Move OI5L9G to May 27 and refund $157.50 to Mia Li, see https://a.io/r/7."
    →  OI5L9G · May 27 · $157.50 · Mia Li · https://a.io/r/7

Ranks, most important first:

    0  lines that say what went wrong       3  numbers (with their unit), words in capitals
    1  ids: letters and digits mixed,       4  names, quoted words
       long numbers, e-mail addresses
    2  dates, times, money, paths, URLs, commands, identifiers
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

from .patterns import WIDE, alternatives, words

ERROR, ID, FACT, NUMBER, NAME = range(5)
# Longer words are encoded data; a raw word may have marks around it.
_LONGEST = 64
_RAW = 80

_EDGES = ".,;:!?()[]{}\"'“”‘’*`‹›|=~&"
_SENTENCE_ENDS = '.!?:;|"*-•'
_MONTHS, _DAYS, _HALVES = (frozenset(words("dates", key)) for key in ("months", "weekdays", "halves"))
_NOT_NAMES, _NOT_UNITS = (frozenset(words("words", key)) for key in ("no_names", "no_units"))
_NUMERIC = re.compile(
    r"(?P<when>\d{4}[-/.]\d{1,2}(?:[-/.]\d{1,2}(?:T[\d:.+Z-]{4,20})?)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2}:\d{2}(?::\d{2})?(?:[aApP][mM])?|\d{1,2}(?:[aApP][mM]|h)|\d{1,2}/\d{1,2})"
    r"|(?P<money>[-+]?[$€£¥₩￥]\d[\d,.]*[kKmMbB]?|\d[\d,.]*(?:[$€£¥₩]|USD|EUR|GBP|CNY|JPY))"
    r"|(?P<quantity>[-+~≈]?\d[\d,.]*(?:[%°x×]|st|nd|rd|th|[a-zA-Z]{1,3})?)"
)
_QUANTITY = re.compile(r"[-+~≈]?\d[\d,.]*[%°x×]?")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_NUMBERED_LINE = re.compile(r"\d+:[^\d\s]")
_FILE = re.compile(r"[\w./-]{2,50}\.[a-z][a-z0-9]{0,4}(:\d+)*")
_QUOTED = re.compile(r"[`\"“](?:(?<=`)([^`\n]{2,80})`|(?<=[\"“])([^\"“”\n]{2,48})[\"”](?!\w))")
_COMMAND = re.compile(r"^[ \t]*(?:\$|❯|>>>|›››)[ \t]+(\S[^\n]{1,80})", re.MULTILINE)
_WIDE_KINDS = ("quoted", "when", "weekday", "number", "path", "latin", "person", "name")
_WIDE_ITEM = re.compile("|".join(f"(?P<{kind}>{alternatives('items', kind)})" for kind in _WIDE_KINDS))
_WIDE_RANKS = {"weekday": NUMBER, "number": NUMBER, "name": NAME}  # the others are facts
_ASCII_ERRORS = tuple(words("errors", "words"))
_ERRORS = (
    *_ASCII_ERRORS,
    *(word for language in ("han", "kana", "hangul") for word in words("errors", "words", language)),
)
_ERROR_START = re.compile(rf"\s*(?:{alternatives('errors', 'start')})", re.IGNORECASE)
_ERROR_PHRASE = re.compile(r"\b[A-Za-z_.]{0,60}(?:Error|Exception): [^\n.]{1,80}")

_Token = tuple[str, int, str, bool]
"""a word, its rank inside a sentence, the mark that ends its run (or ""), and whether a unit may follow"""
Piece = tuple[int, str]  # a rank, and a verbatim piece of a text


def find_salient(text: str, *, errors: bool = True) -> list[Piece]:
    """Return the pieces of *text* to keep: by rank, then in order of appearance, each once. O(characters)."""
    found: list[Piece] = [(ERROR, line) for line in error_lines(text)] if errors else []
    if "`" in text or '"' in text or "“" in text:
        found.extend((FACT if code else NAME, code or words) for code, words in _QUOTED.findall(text))
    if "$ " in text or "❯" in text or ">>>" in text or "›››" in text:
        found.extend((FACT, command[1]) for command in _COMMAND.finditer(text))
    if not text.isascii() and WIDE.search(text):
        found.extend(_wide(text))
    else:
        found.extend(_words(text))
    return sorted(dict.fromkeys(found), key=itemgetter(0))


def ids(text: str) -> list[str]:
    """Return the words of *text* that are ids, in order. O(characters)."""
    if not text.isascii() and WIDE.search(text):
        return [piece for rank, piece in _wide(text) if rank == ID]
    return [token[0] for _, token in _tokens(text.split()) if token[1] == ID]


def rank_of(word: str) -> int | None:
    """Return the rank of a single *word*, None for an ordinary word."""
    return _rank(word) if 2 <= len(word) <= _LONGEST else None


def has_error(text: str) -> bool:
    """Return whether *text* has a word that reports an error. O(characters)."""
    lowered = text.lower()
    return any(map(lowered.__contains__, _ASCII_ERRORS if text.isascii() else _ERRORS))


def error_lines(text: str) -> list[str]:
    """Return the last two lines of *text* that are errors, oldest first. O(characters)."""
    if not has_error(text):
        return []
    last: list[str] = []
    for line in reversed(text.split("\n")):
        if _ERROR_START.match(line) and line.strip() not in last:
            last.insert(0, line.strip())
            if len(last) == 2:
                break
    return last or list(dict.fromkeys(found.group() for found in _ERROR_PHRASE.finditer(text)))[-2:]


@lru_cache(maxsize=4096)
def _rank(word: str) -> int | None:
    if word.isalpha():
        capitals = len(word) > 2 and word.isupper()
        return NUMBER if capitals else FACT if _camel(word) else None
    if "@" in word[1:-1] and "=" not in word and "//" not in word:
        return ID
    if _DIGIT.search(word) and "//" not in word:
        return _rank_with_digits(word)
    path = word[0] in "/~\\" or word.count("/") > 1 or word.startswith(("./", "../")) or "\\" in word or "::" in word
    name = "_" in word.strip("_") or word.startswith("--") or word.endswith("()") or _camel(word)
    known = path or name or ("." in word and _FILE.fullmatch(word) is not None)
    return FACT if known and _LETTER.search(word) else None


def _rank_with_digits(word: str) -> int | None:
    digits = len(_DIGIT.findall(word))
    numeric = _NUMERIC.fullmatch(word)
    if numeric:
        if numeric.lastgroup != "quantity":
            return FACT
        return ID if digits > 5 and "," not in word and "." not in word else NUMBER
    if word[0] in "/~." or word.count("/") > 1:
        return FACT
    if _NUMBERED_LINE.match(word):
        return None
    return ID if _LETTER.search(word) or word[0] == "#" or digits > 5 else NUMBER


def _camel(word: str) -> bool:
    body = word[1:]
    return len(word) > 3 and word.isalnum() and not word.isupper() and body != body.lower() and body[:1].islower()


def _words(text: str) -> list[Piece]:
    words = text.split()
    runs: list[list[str]] = []
    kinds: list[int] = []
    at = -2
    for index, (word, inside, closed, unit_may_follow) in _tokens(words):
        follows = at == index - 1
        kind = inside
        if kind == NAME or word == "May":
            starts = index == 0 or words[index - 1][-1] in _SENTENCE_ENDS
            if starts and not (follows and kinds[-1] == NAME):
                kind = NAME + 1
        if follows and _continues(runs[-1][-1], kinds[-1], word, kind):
            runs[-1].append(word)
            kinds[-1] = min(kind, kinds[-1])
        else:
            runs.append([word])
            kinds.append(kind)
        at = index
        if closed:
            at = -2
            if closed == ":" and kinds[-1] == NAME:
                # a label, not a name
                kinds[-1] = NAME + 1
        elif unit_may_follow and index + 1 < len(words) and len(runs[-1]) == 1:
            unit = words[index + 1].rstrip(_EDGES)
            year = len(word) == 4 and word[:2] in ("19", "20")
            counts = _QUANTITY.fullmatch(word) is not None and not year
            if unit in _HALVES or (counts and unit.islower() and unit.isalpha() and unit not in _NOT_UNITS):
                runs[-1].append(unit)
                kinds[-1] = min(kinds[-1], NUMBER)
    return [
        (min(kind, NUMBER) if len(run) > 1 else kind, " ".join(run))
        for run, kind in zip(runs, kinds, strict=True)
        if kind <= NAME
    ]


def _tokens(words: Sequence[str]) -> list[tuple[int, _Token]]:
    if max(map(len, words), default=0) > _RAW:
        words = [raw if len(raw) <= _RAW else "" for raw in words]
    return [(index, token) for index, raw in enumerate(words) if (token := _token(raw))]


@lru_cache(maxsize=8_192)  # most words of a text occurred in the text before
def _token(raw: str) -> _Token | None:
    if not raw or (raw.isalpha() and raw.islower()):
        return None
    word = raw.strip(_EDGES)
    if not word.isalnum() and ("(" in word or "[" in word or "{" in word):
        # the brackets that it opens are its own
        word = raw.lstrip(_EDGES).rstrip(".,;:!?")
    kind = _kind(word) if word and not (word.isalpha() and word.islower()) else None
    if kind is None:
        return None
    ends = raw[-1] in _SENTENCE_ENDS + ")," and not _is_date(word)
    return word, kind, raw[-1] if ends else "", word[0].isdigit()


def _kind(word: str) -> int | None:
    if word in _MONTHS or word in _DAYS:
        return NUMBER
    if len(word) == 1:
        return NAME + 1 if word.isdigit() else None
    rank = rank_of(word)
    return NAME if rank is None and word[0].isupper() and word not in _NOT_NAMES else rank


def _is_date(word: str) -> bool:
    return word in _MONTHS or word in _DAYS or word.isdigit()


def _continues(before: str, kind: int, word: str, other: int) -> bool:
    if kind >= NAME and other >= NAME:
        return True
    if before in _MONTHS and word[:1].isdigit():
        return True
    return _is_date(before) and _is_date(word) and not (before.isdigit() and word.isdigit() and len(word) != 4)


def _wide(text: str) -> list[Piece]:
    found: list[Piece] = []
    for match in _WIDE_ITEM.finditer(text):
        kind = match.lastgroup or ""
        piece = match.group().strip(" \t:：.,")
        rank: int | None = _WIDE_RANKS.get(kind, FACT)
        if kind == "latin":
            rank = rank_of(piece)
            rank = NAME if rank is None and len(piece) > 2 else rank
        elif kind == "number" and any(char in piece for char in "¥￥$€₩元円원"):
            rank = FACT
        if rank is not None and piece:
            found.append((rank, piece))
    return found
