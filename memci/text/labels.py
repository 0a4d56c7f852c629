"""Labels at the beginning of messages, and whether they name the speakers.

    user        Mel: I painted it.         a transcript: everybody on the page has a label, and there are several names
    assistant   Caro: When?

    user        Deadline: 10 May.          no transcript: the answer has no label
    assistant   Noted.

A label alone shows nothing: "Code: 12" and "Anna: 12" look alike. A program that knows who speaks says so (`name`).
"""

import re
from collections.abc import Sequence

from .language.marks import MARKS
from .language.patterns import pattern

_NAME = rf"[^\W\d_a-z][\w{MARKS}.'’-]{{0,20}}"
_LABEL = re.compile(
    r"\s*(?:[\[(][^\])\n]{1,40}[\])]\s*)?"  # "[8 May, 13:56] "
    rf"(?P<name>{_NAME}(?: {_NAME}){{0,2}})[:：](?=\s|[^\x00-\x7f])"
)
_NO_NAME = pattern("words", "labels", flags=re.IGNORECASE)
"""words that are labels of what follows: "question", "deadline" """


def speakers(texts: Sequence[str]) -> list[str]:
    """Return the speaker of each of *texts*, which one page has: its label, if they are a transcript, else "".

    In a transcript each has a label, and two or more labels differ. O(texts).
    """
    found = [_LABEL.match(text) for text in texts]
    names = {each["name"] for each in found if each}
    if len(names) < 2 or None in found or any(map(_NO_NAME.fullmatch, names)):
        return [""] * len(texts)
    return [each["name"] for each in found if each]
