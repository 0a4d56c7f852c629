"""Find a user's lasting instructions, in the user's own words.

    "I fly on Friday. Always answer in French. I prefer tea, what is there? 以后请用中文回答。"
    →  "Always answer in French."   "I prefer tea"   "以后请用中文回答。"

Each clause of a sentence is judged by itself. It is an instruction if it asks for something permanently, says how to
answer or act, or states a lasting preference or constraint. These are no instructions: questions, quotations, words and
acts of others, habits ("I always run late"), choices for one task ("I'd prefer the morning flight"), small talk ("Never
say never!"), code, and output of machines. Neighbouring clauses stay together. Each item of a list is one whose heading
says that it holds for good ("Rules for this chat:").

A sentence that takes one back ("You can go back to English now.") is given whole, with how: it stands as the later one
beside an earlier instruction, and is nothing without one. Which one it takes back, patterns can't tell. A clause that
only points back ("Number them. Always do it like that.") is given with what is before it.
"""

import re
from functools import cache
from typing import Literal, NamedTuple

from .marks import compose
from .patterns import LATIN, WIDE, Writing, finder, has, pattern
from .sentences import languages, lower_case, sentences, simplify

LONGEST = 400  # characters of an instruction; longer clauses are descriptions
SCANNED = 40_000  # characters of a text that are read, a bound on its cost

_SHORTEST = 6
_SHORTEST_WIDE = 3  # characters of an instruction, and of one that is not ASCII: "be kind", "叫我王"
_SHORT = 80  # characters of a clause that says how to answer; longer ones have such words by chance

_BACK = 160  # characters of a sentence that takes an instruction back: it says little else

_BESIDE = 3  # characters between two sentences that are not side by side

_FEW = 1  # common words by which the language of a sentence may be mistaken: that of the text counts

_EDGE = " \t,;:–—-，、；：。."
_ENDS = _EDGE + "!！"
_COMMA = re.compile(r"[,，、] ?")
_READ = re.compile(rf"[A-Za-z\u00c0-\u024f\u0400-\u04ff]|{WIDE.pattern}")  # letters of the languages of the tables
_ASKED = re.compile(r"[?？][\s)”\"'»]*$")
_HEADING = pattern("instructions", "heading", flags=re.MULTILINE)
_LIST = re.compile(
    r"\n{1,2}(?:[ \t]*(?:[-–—•*·・●○①-⑳]|[\d一二三四五六七八九十]{1,2}[.)）、])[ \t]*\S.*(?:\n|\Z))+"
    r"|\n(?:[ \t]*\S.*(?:\n|\Z)){2,}"
)
"""the items behind a heading: lines with a mark, or two or more without one, up to a blank line"""

_EITHER = {"gives": ("direct", "asks", "polite"), "takes": ("back", "fine")}
"""each clause that gives an instruction has one of the first, each sentence that takes one back one of the others"""


@cache
def _says(written: Writing, key: str) -> re.Pattern[str]:
    """Return the pattern *key* of a language."""
    if key in ("cut", "thus"):
        return pattern("instructions", key, written)
    return finder("instructions", *_EITHER.get(key, (key,)), languages=(written,))


class Clause(NamedTuple):
    """A verbatim clause that gives an instruction or takes one back."""

    text: str
    takes_back: Literal["", "any", "same"] = ""
    """"": it gives one. "any": it takes back an earlier one. "same": only one that is about the same thing"""


def instructions(text: str, own: str) -> list[str]:
    """Return the instructions in a user's *text*: verbatim clauses, in order, each once. O(characters).

    *own* is the text with what is not the user's own masked (`memci.text.provenance.mask`).
    """
    return [each.text for each in clauses(text, own) if not each.takes_back]


def names_near_day(text: str) -> bool:
    """Return whether *text* names a day by the day on which it is said: "until Friday", 本周. O(characters)."""
    return has("instructions", "near", lower_case(text))


def clauses(text: str, own: str, *, mixed: bool = False) -> list[Clause]:
    """Return the `instructions`, and the sentences that take one back, in order, each once. O(characters).

    *mixed*: others' words stand beside the user's own: what only says how ("more formal, please") is about these.
    """
    own, places = compose(own[:SCANNED])
    written = languages(own, LATIN, slack=_FEW) if len(own) <= _BACK else languages(own)
    prepared = lower_case(own.replace("’", "'").replace("\t", " "))
    found: dict[str, Clause] = {}
    listed = _listed(prepared)
    before = start = end = 0  # where the last sentence begins, and this one begins and ends
    for sentence in sentences(own):
        last, start = start, own.index(sentence, end)
        beside = start - end < _BESIDE and start + len(sentence) - last <= LONGEST
        before, end = last if beside else start, start + len(sentence)
        if listed[start] and len(sentence) <= LONGEST and not _ASKED.search(sentence):
            item = text[places[start] : places[end]]
            found.setdefault(item, Clause(item))
            continue
        if len(sentence) < (_SHORTEST if sentence.isascii() else _SHORTEST_WIDE) or not _READ.search(sentence):
            continue
        for one in languages(sentence, written, slack=_FEW):
            said = simplify(prepared[start:end]) if one == "han" else prepared[start:end]
            spans = [each for each in _find_spans(said, one, mixed=mixed) if each[1] - each[0] <= LONGEST]
            takes = "" if spans else _takes_back(said, one)
            if takes:
                spans = [(0, len(said))]
            for first, stop in spans:
                only_points = _says(one, "thus").fullmatch(said[first:stop].strip(_ENDS)) is not None
                begins = start + first if not only_points else start if first else before
                each = Clause(text[places[begins] : places[start + stop]], takes)
                found.setdefault(each.text, each)
    return list(found.values())


def _listed(prepared: str) -> bytearray:
    """Return for each character of a text whether it is in a list that holds for good: 1, else 0."""
    found, end = bytearray(len(prepared)), 0
    for head in _HEADING.finditer(prepared) if "\n" in prepared else ():
        if head.end() >= end and (below := _LIST.match(prepared, head.end())):
            end = below.end()
            found[head.end() : end] = b"\1" * (end - head.end())
    return found


def _find_spans(sentence: str, written: Writing, *, mixed: bool) -> list[tuple[int, int]]:
    """Return where the instructions of *sentence* begin and end; neighbouring ones are joined."""
    places = _clauses(sentence, written)
    parts = [sentence[start : min(end, start + LONGEST)] for start, end in places]
    found: list[tuple[int, int]] = []
    if not any(map(_says(written, "gives").search, parts)) and not _behind_condition(sentence, written):
        return found
    begun = ended = 0
    asked = False
    for (start, end), clause in zip(places, parts, strict=True):
        asks = bool(_says(written, "question").search(clause) or (not asked and _ASKED.search(clause)))
        lasts = end - start <= LONGEST and (
            _is_instruction(clause, written, asks=asks, mixed=mixed)
            or (not asks and _lasts_behind_condition(clause, written))
        )
        if ended and (asks or not lasts):
            found.append((begun, ended))
            ended = 0
        if lasts:
            begun = begun if ended else start
            whole = end == len(sentence) and not asked
            ended = end if whole else start + len(clause.rstrip(_EDGE + "?？"))
        asked = asked or asks
    return [*found, (begun, ended)] if ended else found


def _behind_condition(clause: str, written: Writing) -> str:
    """Return what stands behind a condition in *clause*: "always ask me." of "If it is red, always ask me."; or ""."""
    comma = _COMMA.search(clause)
    return clause[comma.end() :] if comma and _says(written, "waits").search(clause[: comma.start()]) else ""


def _lasts_behind_condition(clause: str, written: Writing) -> bool:
    tail = _behind_condition(clause, written)
    if not tail or not _says(written, "lasting").search(tail) or not _is_instruction(tail, written):
        return False
    return not any(_says(written, key).search(clause) for key in ("others", "talk"))


def _clauses(sentence: str, written: Writing) -> list[tuple[int, int]]:
    """Return where the clauses of *sentence* begin and end, without conjunctions."""
    found, start = [], 0
    for cut in _says(written, "cut").finditer(sentence):
        if cut.start() <= start:
            continue
        before, behind = sentence[start : cut.start()][-LONGEST:], sentence[cut.end() : cut.end() + LONGEST]
        if not _says(written, "waits").search(before) or _says(written, "question").search(behind):
            found.append((start, cut.start()))
            start = cut.end()
    return [*found, (start, len(sentence))]


def _takes_back(sentence: str, written: Writing) -> Literal["", "any", "same"]:
    if len(sentence) > _BACK or not _says(written, "takes").search(sentence) or _ASKED.search(sentence):
        return ""
    if WIDE.search(sentence) is not None and _says(written, "question").search(sentence) is not None:
        return ""
    return "any" if _says(written, "back").search(sentence) or _says(written, "again").search(sentence) else "same"


def _is_instruction(clause: str, written: Writing, *, asks: bool = False, mixed: bool = False) -> bool:
    """Return whether *clause* is a lasting request, preference or constraint."""

    def shows(key: str) -> bool:
        return _says(written, key).search(clause) is not None

    # rare patterns come first, so that the others are seldom tried
    if asks:
        return shows("lasting") and shows("polite") and not shows("others")
    direct = shows("direct")
    if not direct and not shows("asks"):
        return False
    lasting = shows("lasting")
    wanted = direct or lasting or (len(clause) <= _SHORT and not mixed and shows("manner"))
    return wanted and (lasting or not shows("once")) and not shows("others") and not shows("talk")
