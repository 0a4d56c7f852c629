"""Identifiers: the words of a text by which something is named again later, such as paths, ids and symbols.

What a tool call needs of the past is named by them, in whatever argument they stand: a value, a command, code.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_WORD = re.compile(r"[\w./:@#+-]{5,200}")
_NAMES = re.compile(r"[/_.\d]|[a-z][A-Z]")  # what the name of a thing has, and a word of a language has not
_EDGES = "./:-#@+"
_LEAST, _DIGITS = 4, 3
"""characters of a whole value, and digits of a number, that are looked for: shorter ones recur by chance"""
_LONGEST = 200  # characters of a value that may be said again whole


def identifiers(text: str) -> Iterator[str]:
    """Yield the identifiers in *text*, in order, also repeated ones. O(characters).

    >>> list(identifiers("sed -n 1,40p src/app.py | grep TypeError"))
    ['src/app.py', 'TypeError']
    """
    for match in _WORD.finditer(text):
        word = match[0].strip(_EDGES)
        if len(word) >= 5 and _NAMES.search(word):
            yield word


def needed(arguments: str) -> Iterator[str]:
    """Yield what the *arguments* of a tool call (JSON) name: short values, and identifiers in any. O(characters)."""
    try:
        left: list[Any] = [json.loads(arguments)]
    except (TypeError, ValueError, RecursionError):
        return
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str):
            if _LEAST <= len(value) <= _LONGEST:
                yield value
            yield from (word for word in identifiers(value) if word != value)
        elif type(value) in {int, float} and sum(map(str.isdigit, str(value))) >= _DIGITS:
            yield str(value)
