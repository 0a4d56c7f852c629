"""Find the sentences of a text that a person wrote: all of them, or the first with content.

    Hi Dr. Li! How are you?        "Hi Dr. Li!"  "How are you?"
    - Book HAT1.                   "Book HAT1."
    ERROR: no such flight          nothing

    "Hi there! Thanks. Could you please move my flight to May 27? I fly from Denver."
     └── small talk ─┘└──────── politeness ┘

`sentences` yields all of them for patterns to read. `point` finds the first one with content, in any text. `request`
also leaves out the politeness, for titles. In a text that is only small talk, the point is the first sentence.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import get_args

from .marks import normalize, with_marks
from .patterns import LATIN, STOPS, WIDE, Writing, alternatives, words

_KANA = re.compile("[\u3041-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN = re.compile("[\u3400-\u9fff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_WORDS = re.compile(with_marks(r"[^\W\d_]"))
_ASCII_WORDS = re.compile("[a-z]+")
_COMMON = {
    word: [one for one in LATIN if word in words("words", "common", one)]
    for voter in LATIN
    for word in words("words", "common", voter)
}
"""for each common word, the languages in which it is common"""
_STRANGE = {one: frozenset(word for word, ones in _COMMON.items() if one not in ones) for one in LATIN}
_FENCED = re.compile(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.DOTALL)
_MACHINE = re.compile(
    r"[{}\[<|$\\]|>|(?:at |File \"|import |def |class |const |function "
    r"|return |\d{4}-\d\d-\d\d[ T]\d\d:|[\w.-]{1,40}[@:]~?/?\S*[$#] )"
    r"|(?:\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|Traceback )|[\w.-]+\s*[=({]|\"[\w -]+\"\s*:"
)
_BULLET = re.compile(r"(?:[-*•–]\s+|\(?\d{1,2}[.)]\s+|#{1,6}\s+)")
_END = re.compile(
    rf"[.!?。！？｡…{STOPS}](?:(?<=[.!?])(?<![.!?].)[.!?]*+[\"'”’)\]*]*+(?=\s)|(?<![.!?])[。！？｡…{STOPS}]*[」』”’）)]*)"
)
_LONGEST_SHORT = 9  # characters of a short form at most, with its stop and a mark before it
_SIMPLE = str.maketrans(*(alternatives("characters", key, "han") for key in ("traditional", "simplified")))

# A point is in the first sentences; one of fewer characters ("For Mia:") takes the next sentence too.
_LOOKED_AT = 2_000
_SENTENCES = 8
_SHORT = 24
_SMALL = 120

_WORD = re.compile(r"\w")

# A set of characters at the beginning lets the search skip quickly.
_ENDS = re.compile(rf"[.!?。！？｡…{STOPS}\n](?:(?<=[.!?])[.!?]{{0,2}}[\"'”’)]?(?=\s|$)|(?<=[。！？｡…{STOPS}\n]))")
_ASCII_ENDS = re.compile(r"[.!?\n](?:(?<=[.!?])[.!?]{0,2}[\"')]?(?=\s|$)|(?<=\n))")
_SHORTENED, _NUMBERED, _CLOSING, _COUNTS = (
    frozenset(word for one in get_args(Writing) for word in words("words", key, one))
    for key in ("abbreviations", "numbered", "closing", "ordinal")
)
_NEVER, _ALWAYS, _ORDINAL, _CLOSES, _NUMBER = range(5)
"""a short form: never, always, with a word that counts before it, before a digit or a small letter, before a digit"""
_LEAD = re.compile(r"[\s#>›*•\-–—,，、.!！。~～:：]+")
SMALL_TALK = re.compile(
    rf"(?:(?:{alternatives('small_talk', 'greetings')})(?=[\s,.!?;:…]|$)"
    rf"|(?:{alternatives('small_talk', 'phrases')})(?=\s*(?:[,.!?;:，。！？、~～…]|$)))"
)
_GREETING = re.compile(rf"\W*(?:{alternatives('small_talk', 'greetings')})(?=\W|$|[^\x00-\x7f])")
_GREETED = re.compile(rf"{_GREETING.pattern}[\s,，]*({_WORDS.pattern})\s*(?:[,.!?;:，。！？{STOPS}]|$)")
_POLITENESS = re.compile(
    rf"{alternatives('politeness', 'lead')}(?:{alternatives('politeness', 'phrases')})(?=\s|[^\x00-\x7f])[\s,:]*"
)


def greets(text: str) -> bool:
    """Return whether *text* begins with a greeting. O(1)."""
    return _GREETING.match(text[:60].lower()) is not None


def greeted(text: str) -> str:
    """Return the name of whom *text* greets at its beginning, with a capital if there are any: "Hi Kate!". O(1)."""
    found = _GREETED.match(text[:60].lower())
    name = found and text[found.start(1) : found.end(1)]
    return name if name and not name[0].islower() else ""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of *text* verbatim, without code, quotations and output of machines."""
    for line in _FENCED.sub("\n", text).splitlines():
        bare = line.strip()
        bullet = _BULLET.match(bare)
        bare = bare[bullet.end() :] if bullet else bare
        if not bare or _MACHINE.match(bare):
            continue
        start = 0
        for end in _END.finditer(bare):
            if end[0] == "." and end.end() < len(bare) and is_short_form(bare, end.end(), start):
                continue
            if sentence := bare[start : end.end()].strip():
                yield sentence
            start = end.end()
        if rest := bare[start:].strip():
            yield rest


def is_short_form(text: str, end: int, start: int = 0) -> bool:
    """Return whether the stop before *end*, in what begins at *start*, is that of a short form or an ordinal. O(1).

    "Dr. Li"; "No. 5", but not "No. I walked"; "at 5 p.m. on Friday", but not "at 5 p.m. We left"; "am 12. Juni".
    """
    least = max(start, end - 12)
    cut = text.rfind(" ", least, end - 1) + 1 or least
    if end - cut > _LONGEST_SHORT:
        return False
    shortened = _shortened(text[cut : end - 1])
    if not shortened or shortened == _ALWAYS:
        return shortened == _ALWAYS
    if shortened == _ORDINAL:
        return text[max(start, cut - 8) : cut].lower().rstrip().rpartition(" ")[2] in _COUNTS
    behind = text[end : end + 4].lstrip()[:1]
    return behind.isdigit() or (shortened == _CLOSES and behind.islower())


@lru_cache(maxsize=4_096)  # most words before a stop were there before
def _shortened(word: str) -> int:
    """Return what the *word* before a stop may be: never a short form, always one, or one if something else is true."""
    word = word.lower().rpartition("\n")[2].lstrip('([«„“"')
    if word in _SHORTENED or (len(word) == 1 and word.isalnum() and not WIDE.match(word)):
        return _ALWAYS
    if word.isdigit():
        return _ORDINAL if len(word) == 2 else _NEVER
    if word in _CLOSING or ("." in word and word.isascii() and word.replace(".", "").isalpha()):
        return _CLOSES
    return _NUMBER if word in _NUMBERED else _NEVER


def writing(text: str) -> Writing:
    """Return the script of *text*; "latin" for every script that is not listed. O(length)."""
    if text.isascii():
        return "latin"
    if _KANA.search(text):
        return "kana"
    if _HANGUL.search(text):
        return "hangul"
    return "han" if _HAN.search(text) else "latin"


def main_language(texts: Sequence[str]) -> str:
    """Return the language of most of *texts*, among those of `text.interface`; of the first one if as many differ.

    A text is English unless it has more Han letters, kana and Hangul than words in other letters. O(length).
    """
    votes = Counter(
        writing(text) if len(WIDE.findall(text)) > len(_WORDS.findall(WIDE.sub(" ", text))) else "latin"
        for text in texts
    )
    return {"han": "zh", "kana": "ja", "hangul": "ko"}.get(max(votes, key=votes.__getitem__, default=""), "en")


def script(text: str) -> str:
    """Return "latin" or "han" if all letters of *text* are in this script, Latin ones beside Han included; else "".

    O(length).
    """
    wide = [letter for letter in text if letter.isalpha() and letter > "\u024f"]
    return "latin" if not wide else "han" if all(map(_HAN.match, wide)) else ""


def languages(text: str, default: Sequence[Writing] = (), *, slack: int = 0) -> Sequence[Writing]:
    """Return the language of *text*; several if its common words fit several, those of *default* first.

    *slack*: how many of these words a further one may fit less; with no more words than these it may be any. Without
    such words it is the *default*, or "latin": English. O(1): reads 2,000 characters.
    """
    text = text[:_LOOKED_AT]
    if text.isascii():
        found = _ASCII_WORDS.findall(text.lower())
    else:
        if (written := writing(text)) != "latin":
            return [written]
        if _CYRILLIC.search(text):
            return ["russian"]
        found = _WORDS.findall(normalize("NFC", lower_case(text)))
    if len(default) == 1 and sum(map(_STRANGE.get(default[0], _COMMON).__contains__, found)) <= slack:
        return default  # no other language has more than *slack* common words more
    votes: dict[Writing, int] = {}
    for word in found:
        for one in _COMMON.get(word, ()):
            votes[one] = votes.get(one, 0) + 1
    most = max(votes.values(), default=0)
    if most <= slack:
        return default or ["latin"]
    best = [one for one, count in votes.items() if count >= most - slack]
    return [one for one in default if one in best] or best


def lower_case(text: str) -> str:
    """Return *text* in lower case, with every character at its place. O(length)."""
    # the only letter whose lower case has two characters
    return text.replace("İ", "i").lower()


def simplify(text: str) -> str:
    """Return *text* with simplified Chinese characters for the traditional ones that patterns use. O(length)."""
    return text.translate(_SIMPLE)


def point(text: str) -> tuple[int, int]:
    """Return where the first sentence with content begins and ends. O(1): reads 2,000 characters."""
    text = text[:_LOOKED_AT]
    lowered = lower_case(text)
    ascii_only = text.isascii()
    spans = _spans(text, _ASCII_ENDS if ascii_only else _ENDS)
    first = None
    for sentence, end in spans:
        first = first or (sentence, end)
        start = _skip_small_talk(lowered, sentence, end)
        if end - start >= 2 and _WORD.search(text, start, end):
            # a wide character says about twice as much
            short = _SHORT // 2 if not ascii_only and WIDE.search(text, start, end) else _SHORT
            return start, next(spans, (start, end))[1] if end - start < short else end
    return first or (0, len(text))


def request(text: str) -> str:
    """Return the first sentence with content, without the politeness in front of it."""
    start, end = point(text)
    sentence = text[start:end].strip()
    polite = _POLITENESS.match(lower_case(sentence))
    bare = sentence[polite.end() :] if polite else sentence
    if len(bare) < 4:
        return sentence
    return bare[0].upper() + bare[1:] if polite else bare


def is_small_talk(text: str) -> bool:
    """Return whether *text* is nothing but small talk: "Got it, thanks!", "好的，记下了". O(1)."""
    if len(text) > _SMALL:
        return False
    lowered = lower_case(text)
    start = _skip_small_talk(lowered, 0, len(lowered))
    return start > 0 and not _WORD.search(lowered, start)


def _skip_small_talk(text: str, start: int, end: int) -> int:
    while start < end:
        lead = _LEAD.match(text, start, end)
        start = lead.end() if lead else start
        talk = SMALL_TALK.match(text, start, end)
        if not talk:
            break
        start = talk.end()
    return min(start, end)


def _spans(text: str, ends: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = found = 0
    for mark in ends.finditer(text):
        if mark.group() == "." and is_short_form(text, mark.end(), start):
            continue
        if text[start : mark.start()].strip():
            yield start, mark.end()
            found += 1
            if found == _SENTENCES:
                return
        start = mark.end()
    if text[start:].strip():
        yield start, len(text)
