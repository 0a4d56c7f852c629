"""Identifiers: the words of a text by which something is named again later, such as paths, ids and symbols.

What a tool call needs of the past is named by them, in whatever argument they stand: a value, a command, code.
"""

import json
import re
from typing import Any

_WORD = re.compile(r"[\w./:@#+-]{5,200}")
_ONE_WORD = re.compile(r"\w[\w./:@#+-]*\w")
_NAMES = re.compile(r"[/_.\d]|[a-z][A-Z]")  # what the name of a thing has, and a word of a language has not
_EDGES = "./:-#@+"
_LEAST, _DIGITS = 4, 3
"""characters of a whole value, and digits of a number, that are looked for: shorter ones recur by chance"""
_LONGEST = 200  # characters of a value that may be said again whole


def identifiers(text: str) -> list[str]:
    """Return the identifiers in *text*, in order, also repeated ones. O(characters).

    >>> identifiers("sed -n 1,40p src/app.py | grep TypeError")
    ['src/app.py', 'TypeError']
    """
    words = [word.strip(_EDGES) for word in _WORD.findall(text)]
    return [word for word in words if len(word) >= 5 and _NAMES.search(word)]


def needed(arguments: str) -> list[str]:
    """Return what the *arguments* of a tool call (JSON) name: short values, and identifiers in any. O(characters)."""
    try:
        left: list[Any] = [json.loads(arguments)]
    except (TypeError, ValueError, RecursionError):
        return []
    found: list[str] = []
    while left:
        value = left.pop()
        if isinstance(value, str):
            if _LEAST <= len(value) <= _LONGEST:
                found.append(value)
                if _ONE_WORD.fullmatch(value):  # it names nothing beside itself
                    continue
            found += [word for word in identifiers(value) if word != value]
        elif isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):
            left += value
        elif type(value) in {int, float} and sum(map(str.isdigit, str(value))) >= _DIGITS:
            found.append(str(value))
    return found
