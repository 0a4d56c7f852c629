"""Where the point of a text begins.

    "Hi there! Thanks. Could you please move my flight to May 27? I fly from Denver."
     └── small talk ─┘└──────── politeness ┘

`point` finds the first sentence that says something; `request` also takes the politeness off it, for titles. English,
Chinese, Japanese and Korean; a text that is nothing but small talk is its own point.

This module knows nothing of messages or of columns.
"""

import re
from collections.abc import Iterator

from .patterns import alternatives, words

_LOOKED_AT = 2_000
_SENTENCES = 8
_SHORT = 24

_WORD = re.compile(r"\w")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

# One set of characters in front lets the search skip what can't be an end.
_END = re.compile(r"[.!?。！？｡…\n](?:(?<=[.!?])[.!?]{0,2}[\"'”’)]?(?=\s|$)|(?<=[。！？｡…\n]))")
_ASCII_END = re.compile(r"[.!?\n](?:(?<=[.!?])[.!?]{0,2}[\"')]?(?=\s|$)|(?<=\n))")
_ABBREVIATIONS = frozenset(words("words", "abbreviations"))
_LEAD = re.compile(r"[\s#>›*•\-–—,，、.!！。~～:：]+")
_SMALL_TALK = re.compile(
    rf"(?:(?:{alternatives('small_talk', 'greetings')})(?=[\s,.!?;:…]|$)"
    rf"|(?:{alternatives('small_talk', 'phrases')})(?=\s*(?:[,.!?;:，。！？、~～…]|$)))"
)
_POLITENESS = re.compile(
    rf"{alternatives('politeness', 'lead')}(?:{alternatives('politeness', 'phrases')})(?=\s|[^\x00-\x7f])[\s,:]*"
)


def point(text: str) -> tuple[int, int]:
    """Return where the first sentence that says something begins and ends. O(1): looks at 2,000 characters."""
    text = text[:_LOOKED_AT]
    lowered = _lowered(text)
    ascii_only = text.isascii()
    spans = _sentences(text, _ASCII_END if ascii_only else _END)
    first = None
    for sentence, end in spans:
        first = first or (sentence, end)
        start = _after_small_talk(lowered, sentence, end)
        if end - start >= 2 and _WORD.search(text, start, end):
            # a wide character says about twice as much
            short = _SHORT // 2 if not ascii_only and _WIDE.search(text, start, end) else _SHORT
            return start, next(spans, (start, end))[1] if end - start < short else end
    return first or (0, len(text))


def request(text: str) -> str:
    """Return the first sentence that says something, without the politeness in front of it."""
    start, end = point(text)
    sentence = text[start:end].strip()
    polite = _POLITENESS.match(_lowered(sentence))
    bare = sentence[polite.end() :] if polite else sentence
    if len(bare) < 4:
        return sentence
    return bare[0].upper() + bare[1:] if polite else bare


def _lowered(text: str) -> str:
    # the one letter that becomes two
    return text.replace("İ", "i").lower()


def _after_small_talk(text: str, start: int, end: int) -> int:
    while start < end:
        lead = _LEAD.match(text, start, end)
        start = lead.end() if lead else start
        talk = _SMALL_TALK.match(text, start, end)
        if not talk:
            break
        start = talk.end()
    return min(start, end)


def _sentences(text: str, ends: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    start = 0
    found = 0
    for mark in ends.finditer(text):
        if mark.group() == "." and _abbreviated(text[max(start, mark.start() - 8) : mark.start()]):
            continue
        if text[start : mark.start()].strip():
            yield start, mark.end()
            found += 1
            if found == _SENTENCES:
                return
        start = mark.end()
    if text[start:].strip():
        yield start, len(text)


def _abbreviated(before: str) -> bool:
    words = before.split()
    last = words[-1].lower() if words else ""
    return last in _ABBREVIATIONS or (len(last) == 1 and last.isalnum())
