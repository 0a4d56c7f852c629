"""Standing instructions: what a user said that is to hold from then on.

    "I fly on Friday. Always answer in French. Do you always book so early? 以后请用中文回答。"
    →  "Always answer in French."   "以后请用中文回答。"

Whole sentences, in the user's own words. A pattern says that a sentence asks for something for good, or tells a lasting
preference or constraint; questions, quotations, habits ("I always run late"), reported speech, code and what machines
print are none. Patterns can't tell that one takes back another: both stay, and the later one wins.

This module knows nothing of the patterns of each language, or of how instructions are shown and stored.
"""

import re
from collections.abc import Callable

from .instructions_chinese import chinese
from .instructions_english import english
from .instructions_japanese import japanese
from .instructions_korean import korean
from .patterns import writing
from .sentences import sentences

LONGEST = 400
"""characters of one instruction; a longer sentence is none"""
SCANNED = 40_000
"""characters of a text that are looked at"""

Detector = Callable[[str], list[str]]
"""Return the sentences of a user's text that are standing instructions, exactly as they are said."""


def instructions(text: str) -> list[str]:
    """Return the standing instructions in a user's *text*, verbatim, in order, none twice. O(characters)."""
    found = [each for each in sentences(text[:SCANNED]) if len(each) <= LONGEST and _stands(each)]
    return list(dict.fromkeys(found))


_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^']{3,}'(?!\w)|`[^`]*`")
_STANDS = {"latin": english, "han": chinese, "kana": japanese, "hangul": korean}


def _stands(sentence: str) -> bool:
    bare = _QUOTED.sub("“”", sentence).replace("’", "'")
    return _STANDS[writing(bare)](bare)
