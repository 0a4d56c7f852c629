"""Instructions that hold from then on, in the words of the user who gave them.

    "I fly on Friday. Always answer in French. I prefer tea, what is there? 以后请用中文回答。"
    →  "Always answer in French."   "I prefer tea"   "以后请用中文回答。"

A sentence is judged clause by clause. A clause is an instruction if it asks for something for good, says how to answer
and act, or states a lasting preference or constraint. Questions, quotations, what others said or do, habits ("I always
run late"), choices for one task ("I'd prefer the morning flight"), code and the output of machines are none.
Neighbouring clauses stay together. Patterns can't see that one instruction cancels another: both stay.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from .patterns import Writing, pattern
from .sentences import languages, lower_case, sentences, simplify

LONGEST = 400
"""characters of one instruction; a longer one is none"""
SCANNED = 40_000
"""characters of a text that are looked at"""

_SHORT = 80
"""characters of a clause that says how to answer; a longer one has such words by chance"""

_ENTRIES = ("cut", "waits", "question", "polite", "lasting", "once", "asks", "manner", "direct", "others")
_QUOTED = re.compile(
    r"\"[^\"\n]*\"|“[^”\n]*”|„[^“”\n]*[“”]|«[^»\n]*»|「[^」]*」|『[^』]*』|《[^》]*》|(?<!\w)'[^'\n]{3,}'(?!\w)|`[^`]*`"
)
_EDGE = " \t,;:–—-，、；：。."
_ASKED = re.compile(r"[?？][\s)”\"'»]*$")

_Says = Mapping[str, re.Pattern[str]]


def instructions(text: str) -> list[str]:
    """Return the instructions in a user's *text*, clause by clause, verbatim, in order, none twice. O(characters)."""
    text = text[:SCANNED]
    unquoted = _QUOTED.sub(_blank, text)
    written = languages(unquoted)
    found: dict[str, None] = {}
    place = 0
    for sentence in sentences(unquoted):
        place = unquoted.index(sentence, place)
        for own in languages(sentence, written):
            for start, end in _standing(_plain(sentence, own), _patterns(own)):
                if end - start <= LONGEST:
                    found[text[place + start : place + end]] = None
        place += len(sentence)
    return list(found)


def _blank(quoted: re.Match[str]) -> str:
    return re.sub(r"[^\n]", "_", quoted[0][1:-1]).join((quoted[0][0], quoted[0][-1]))


def _plain(sentence: str, written: Writing) -> str:
    """Return *sentence* as patterns read it; every character stays in its place."""
    text = sentence.replace("’", "'").replace("\t", " ")
    return simplify(text) if written == "han" else lower_case(text)


def _standing(sentence: str, says: _Says) -> Iterator[tuple[int, int]]:
    """Yield where the instructions of *sentence* begin and end, those of neighbouring clauses as one."""
    begun = ended = 0
    asked = False
    for start, end in _clauses(sentence, says):
        clause = sentence[start : min(end, start + LONGEST)]
        asks = says["question"].search(clause) is not None or (not asked and _ASKED.search(clause) is not None)
        stands = end - start <= LONGEST and _stands(clause, says, asks=asks)
        if ended and (asks or not stands):
            yield begun, ended
            ended = 0
        if stands:
            begun = begun if ended else start
            whole = end == len(sentence) and not asked
            ended = end if whole else start + len(clause.rstrip(_EDGE + "?？"))
        asked = asked or asks
    if ended:
        yield begun, ended


def _clauses(sentence: str, says: _Says) -> Iterator[tuple[int, int]]:
    """Yield where the clauses of *sentence* begin and end, without what joins them."""
    start = 0
    for cut in says["cut"].finditer(sentence):
        if cut.start() <= start:
            continue
        before, behind = sentence[start : cut.start()][-LONGEST:], sentence[cut.end() : cut.end() + LONGEST]
        if not says["waits"].search(before) or says["question"].search(behind):
            yield start, cut.start()
            start = cut.end()
    yield start, len(sentence)


def _stands(clause: str, says: _Says, *, asks: bool) -> bool:
    """Return whether *clause* asks for something for good, or states a lasting preference or constraint."""

    def has(key: str) -> bool:
        return says[key].search(clause) is not None

    # what hardly any clause has comes first: the others are rarely looked for
    if asks:
        return has("lasting") and has("polite") and not has("others")
    direct = has("direct")
    if not direct and not has("asks"):
        return False
    lasting = has("lasting")
    stands = direct or lasting or (len(clause) <= _SHORT and has("manner"))
    return stands and (lasting or not has("once")) and not has("others")


@cache
def _patterns(written: Writing) -> _Says:
    return {key: pattern("instructions", key, written) for key in _ENTRIES}
