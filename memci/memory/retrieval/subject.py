"""Subject: of whom a message tells, among the people who speak.

Finn: "Zoe moved to Girona."              of Zoe, although Finn says it
Zoe:  "I work at the aquarium."           of Zoe
Zoe:  "Thanks, Finn! I sold the boat."    of Zoe: who is spoken to is not told of
"""

import re
from collections.abc import Iterable

from ...text.language.marks import MARKS
from ...text.language.patterns import WIDE, pattern

_SELF = pattern("change", "self")
_CALLED = "(?<![,，] )(?<![,，])"
_CALLS = r"(?!\s*(?:[,!?.…，。！？、]|$))"


def tells_of(text: str, named: Iterable[str], others: Iterable[str], *, speaks: bool) -> bool:
    """Return whether *text* tells of one of the people *named*. O(length · people).

    *others* are the other people; *speaks*: whether one of the people named says it.
    """
    lower = text.lower()
    if _mentions(lower, named):
        return True
    return speaks and (_SELF.search(lower) is not None or not _mentions(lower, others))


def _mentions(lower: str, people: Iterable[str]) -> bool:
    """Return whether a text names one of *people* without speaking to them."""
    for name in people:
        bare = re.escape(name.lower())
        word = rf"(?<!\w){bare}(?:['’]s\b|(?![\w{MARKS}]))" if not WIDE.search(name) else bare
        if re.search(f"{_CALLED}{word}{_CALLS}", lower):
            return True
    return False
