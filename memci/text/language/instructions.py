"""Instructions that hold from then on, in the words of the user who gave them.

    "I fly on Friday. Always answer in French. Do you always book so early? 以后请用中文回答。"
    →  "Always answer in French."   "以后请用中文回答。"

Whole sentences, exactly as they stand. A sentence is one if it asks for something for good, or states a lasting
preference or constraint. Questions, quotations, habits ("I always run late"), reported speech, code and the output of
machines are none. Patterns can't see that one instruction cancels another: both stay, and the later one wins.

This module knows nothing of the words of each language, or of how instructions are shown and stored.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache

from .patterns import Writing, pattern
from .sentences import sentences, simplified, writing

LONGEST = 400
"""characters of one instruction; a longer sentence is none"""
SCANNED = 40_000
"""characters of a text that are looked at"""

_ENTRIES = (
    *("question", "polite", "lasting", "signs", "asks", "language"),
    *("direct", "others", "reported", "joined", "narrated", "addressed"),
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^']{3,}'(?!\w)|`[^`]*`")


def instructions(text: str) -> list[str]:
    """Return the instructions in a user's *text*, verbatim, in order, none twice. O(characters)."""
    text = text[:SCANNED]
    if text.isascii() and not _searches("latin")["signs"](" ".join(text.lower().split())):
        return []
    found = [each for each in sentences(text) if len(each) <= LONGEST and _instructs(each)]
    return list(dict.fromkeys(found))


def _instructs(sentence: str) -> bool:
    """Return whether *sentence* asks for something for good, or states a lasting preference or constraint."""
    text = _QUOTED.sub("“”", sentence).replace("’", "'")
    language = writing(text)
    if language == "latin":
        text = " ".join(text.lower().split())
    elif language == "han":
        text = simplified(text)
    says = _searches(language)
    if says["question"](text):
        return bool(says["polite"](text) and says["lasting"](text))
    if not says["signs"](text):
        return False
    if says["asks"](text) and (says["lasting"](text) or says["language"](text)):
        return True
    found = says["direct"](text)
    if not found or says["others"](text) or says["reported"](text, 0, found.start() + 1):
        return False
    # "I sing, and always have": a story continues, and nobody is addressed
    joined = says["joined"](found[0])
    return not (joined and says["narrated"](text) and not says["addressed"](text))


@cache
def _searches(language: Writing) -> Mapping[str, Callable[..., re.Match[str] | None]]:
    """Return what searches for the pattern of each entry of *language*."""
    return {key: pattern("instructions", key, language).search for key in _ENTRIES}
