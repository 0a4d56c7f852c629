"""The lines of a text that say what went wrong.

    Traceback (most recent call last):
      File "/srv/app/main.py", line 3, in load    →   ["ValueError: bad id 42"]
    ValueError: bad id 42

English, Chinese, Japanese and Korean. This module knows nothing of messages or of what else a text says.
"""

import re

from .patterns import alternatives, words

_ASCII_WORDS = tuple(words("errors", "words"))
_WORDS = (
    *_ASCII_WORDS,
    *(word for language in ("han", "kana", "hangul") for word in words("errors", "words", language)),
)
_AT_START = re.compile(rf"\s*(?:{alternatives('errors', 'start')})", re.IGNORECASE)
_PHRASE = re.compile(r"\b[A-Za-z_.]{0,60}(?:Error|Exception): [^\n.]{1,80}")


def has_error(text: str) -> bool:
    """Return whether *text* has a word of something that went wrong. O(characters)."""
    lowered = text.lower()
    return any(map(lowered.__contains__, _ASCII_WORDS if text.isascii() else _WORDS))


def error_lines(text: str) -> list[str]:
    """Return the last two lines of *text* that are errors, oldest first. O(characters)."""
    if not has_error(text):
        return []
    last: list[str] = []
    for line in reversed(text.split("\n")):
        if _AT_START.match(line) and line.strip() not in last:
            last.insert(0, line.strip())
            if len(last) == 2:
                break
    return last or list(dict.fromkeys(found.group() for found in _PHRASE.finditer(text)))[-2:]
