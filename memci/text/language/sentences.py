"""Sentences of a text that a person wrote, for patterns to read.

    Hi Dr. Li! How are you?        "Hi Dr. Li!"  "How are you?"
    - Book HAT1.                   "Book HAT1."
    > as quoted                    nothing
    ERROR: no such flight          nothing

They stand in the text letter by letter, without the marks of a list; code, quoted lines and what machines print are
left out. Chinese that is written the traditional way is read by patterns in the simplified one.

This module knows nothing of what a sentence says.
"""

import re
from collections.abc import Iterator

from .patterns import alternatives

_FENCED = re.compile(r"(?P<fence>```|~~~).*?(?:(?P=fence)|\Z)", re.DOTALL)
_MACHINE = re.compile(
    r"[{}\[<|$\\]|>|(?:at |File \"|import |def |class |const |function "
    r"|return |\d{4}-\d\d-\d\d[ T]\d\d:|[\w.-]{1,40}[@:]~?/?\S*[$#] )"
    r"|(?:\[?(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE)\b|Traceback )|[\w.-]+\s*[=({]|\"[\w -]+\"\s*:"
)
_BULLET = re.compile(r"(?:[-*•–]\s+|\(?\d{1,2}[.)]\s+|#{1,6}\s+)")
_END = re.compile(r"(?<![.!?])[.!?]++[\"'”’)\]*]*+(?=\s)|[。！？｡…]+[」』”’）)]*")
_SHORTENED = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|no|vs|etc|e\.g|i\.e|a\.m|p\.m|approx|inc|jr|sr|\w)\.$", re.IGNORECASE
)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of *text* exactly as they stand; code, quotations and output of machines are left out."""
    for line in _FENCED.sub("\n", text).splitlines():
        bare = line.strip()
        bullet = _BULLET.match(bare)
        bare = bare[bullet.end() :] if bullet else bare
        if not bare or _MACHINE.match(bare):
            continue
        start = 0
        for end in _END.finditer(bare):
            if end[0] == "." and _SHORTENED.search(bare, max(start, end.end() - 8), end.end()):
                continue
            if sentence := bare[start : end.end()].strip():
                yield sentence
            start = end.end()
        if rest := bare[start:].strip():
            yield rest


_SIMPLE = str.maketrans(*(alternatives("characters", key, "han") for key in ("traditional", "simplified")))


def simplified(text: str) -> str:
    """Return *text* with the traditional characters that patterns name written the simplified way. O(length)."""
    return text.translate(_SIMPLE)
