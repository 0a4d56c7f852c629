"""Bounds: where a span of a text may begin and end, so that it does not say the opposite of the text.

    I have never flown in a helicopter, but I like trains.
           └────────── scope ────────┘               a span with a word of the scope begins at "never", or before it
    Wir heizen seit dem Winter nicht mehr mit Öl.
       └─────────────── scope ─────────────────┘     "nicht" turns the whole clause
    It was −8 °C in the cellar.                      a number keeps its sign and unit, and the word before it

A span that has a word of the scope of a negator or a modal word has that too, and one of a sentence with a condition
has that. A limit belongs to the next word, an intention ("considering") to what follows up to the first telling word.
"""

import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from operator import itemgetter

from ...workers import cached_property
from ..language.patterns import WIDE
from ..language.scopes import AHEAD, BEHIND, CLAUSE, CONDITION, FUNCTION, INTENT, JOINS, LIMIT, Turn, role_of, turning
from ..language.telling import EVERYDAY_SHARE, ID_SHARE, MARK, Word, telling_words
from ..sanitize import ELLIPSIS, harmless, one_line, width

_SIGN = re.compile(r"[-−–+±~≈≤≥<>‹›]\s?$")
_UNIT = re.compile(rf"\s?(?:[%‰℃℉€$£¥₽₩]|°\s?[CFcf]?|[^\W\d_]{{1,3}}[²³]?(?!\w))|(?:{WIDE.pattern}){{1,2}}")
_FIGURE = re.compile(r"[$€£¥₩]?\d")
_DIGIT = re.compile(r"\d")
_MAY_COUNT = re.compile(r"[^\x00-#%-/:-\x7f]")  # digits, the dollar, and what is not ASCII
_MONEY = "$€£¥₩"
_MARK = re.compile(MARK)
_NEVER = -1
_REST = 100  # characters behind a cut that are read, to know how its clause ends
_SCOPE = 40  # telling words of a scope at most, a bound on the time; clauses are shorter


class Bounds:
    """Where a span begins whose first word is each of *told* (`firsts`), and where one ends whose last it is (`lasts`).

    -1 where none may begin or end. *turns* are the words of `language.scopes` in *text*. O(words of scopes).
    """

    def __init__(self, text: str, told: Sequence[Word], turns: Sequence[Turn]) -> None:
        self._text, self._told = text, told
        self.firsts, self.lasts = [word[0] for word in told], [word[1] for word in told]
        self._held = 0  # before which word the scope of the last condition ends
        self._light = 0  # before which word the last scope has everyday words only
        self._tied = 0  # the last word before a word that turns what precedes it
        self._breaks = sorted([start for start, _, role in turns if role & CLAUSE])
        for start, end, role in sorted(turns):
            if role & (AHEAD | INTENT | LIMIT):
                self._tie_following(start, end, role)
            if role & BEHIND:
                self._tie_preceding(start, end, role)
        self._tie_figures()

    def _tie_following(self, start: int, end: int, role: int) -> None:
        """Let no span begin in the scope of the word at *start*, what follows it in its clause, but at that word.

        A clause goes on where it has only everyday words so far: "I don't think that …". A condition holds for all
        that follows in its sentence: "If they pay, we sell the house".
        """
        told, firsts = self._told, self.firsts
        at = bisect_left(told, end, key=itemgetter(0))
        if role & INTENT and end + 1 in self._breaks:
            return  # "could you" asks
        if at == len(told) or not (role & (AHEAD | INTENT) or _FIGURE.match(self._text, told[at][0])):
            return
        held = at > 0 and told[at - 1][1] > start  # it is a telling word itself: "refuses"
        heavy, begin = False, at
        tied = max(self._held if role & CONDITION else 0, self._light if role & AHEAD else 0)
        if at < tied and firsts[at] == _NEVER:  # by a word before it
            begin, heavy, end = tied, tied > self._light, max(end, told[tied - 1][0])
            if held:
                self.lasts[at - 1] = _NEVER
        for index in range(begin, min(at + _SCOPE, len(told))):
            first, _, _, share, _, _, gap = told[index]
            if gap == math.inf and (index > at or self.has_mark(end, first)):
                return
            if heavy and not role & CONDITION and bisect_left(self._breaks, end) < bisect_left(self._breaks, first + 1):
                return
            if index > at or held:
                firsts[index] = _NEVER
            elif firsts[index] != _NEVER:
                firsts[index] = min(firsts[index], start)
            if index == at and held:
                self.lasts[at - 1] = _NEVER
            if role & CONDITION:
                self._held = index + 1
            if not heavy:
                heavy, end = share < EVERYDAY_SHARE, max(end, first)
                if role & AHEAD and not heavy:
                    self._light = index + 1
            if not role & AHEAD and (heavy or not role & INTENT):
                return

    def _tie_preceding(self, start: int, end: int, role: int) -> None:
        """Let no span end in the scope of the word at *start*, what precedes it in its clause, but at that word."""
        told, lasts = self._told, self.lasts
        place = bisect_left(self._breaks, start)
        begun = self._breaks[place - 1] if place else 0
        at = bisect_left(told, start, key=itemgetter(0)) - 1
        held = at + 1 < len(told) and told[at + 1][0] < end
        for index in range(at, max(at - _SCOPE, -1), -1):
            if told[index][0] < begun or (index < at and role & JOINS) or index < self._tied:
                break
            if index == at and self.has_mark(told[at][1], start):
                return
            if index < at or held:
                lasts[index] = _NEVER
            elif lasts[index] != _NEVER:
                lasts[index] = max(lasts[index], end)
            if told[index][6] == math.inf:
                break
        if not role & JOINS:
            self._tied = at  # those before it are tied by now

    def has_mark(self, start: int, end: int) -> bool:
        """Return whether a mark that no span crosses is between two words. O(the text), once."""
        at = bisect_left(self._marks, start, key=itemgetter(0))
        return at < len(self._marks) and self._marks[at][1] <= end

    @cached_property
    def _marks(self) -> list[tuple[int, int]]:
        """Where marks begin and end; a dash with the space behind it."""
        found = (mark.start() for mark in _MARK.finditer(self._text))
        return [(at, at + 1 + (self._text[at] == "-")) for at in found]

    def _tie_figures(self) -> None:
        """Let no span end between a number and its sign, its unit, or what is counted; nor be a number alone."""
        text, told, firsts, lasts = self._text, self._told, self.firsts, self.lasts
        if not _MAY_COUNT.search(text):
            return
        for at, (start, end, _, share, _, _, gap) in enumerate(told):
            if not (text[start].isdigit() or text[start] in _MONEY) or share <= ID_SHARE:
                continue
            if firsts[at] != _NEVER and (sign := _SIGN.search(text, max(0, start - 2), start)):
                firsts[at] = min(firsts[at], sign.start())
            unit = _UNIT.match(text, end)
            if unit and role_of(unit.group().strip()) > FUNCTION:
                unit = None
            reach = max(end + 1, unit.end() if unit else 0)
            counted = at + 1 < len(told) and told[at + 1][6] != math.inf and told[at + 1][0] <= reach
            if counted:
                lasts[at] = firsts[at + 1] = _NEVER
            elif unit and lasts[at] != _NEVER:
                lasts[at] = max(lasts[at], unit.end())
            if gap != math.inf and (unit or not counted):
                firsts[at] = _NEVER


def clip(text: str, columns: int, most: int) -> str:
    """Return the beginning of *text* in *columns* columns; no cut turns it into its opposite. O(columns).

    Where too little would be left, it has up to *most* columns.
    """
    line = one_line(text, columns)
    if not line.endswith(ELLIPSIS):
        return line
    turns: list[Turn] = []
    flat = " ".join(harmless(text[: 2 * max(columns, most) + _REST]).split())
    kept = len(line) - len(ELLIPSIS)
    figure = _DIGIT.search(flat, kept - 2, kept + 2)
    behind = {word.strip(".,;:!?") for word in flat[kept:].lower().split()}
    if flat.isascii() and not figure and turning().isdisjoint(behind):
        return line
    words = telling_words(flat, turns)
    lasts = Bounds(flat, words, turns).lasts
    at = bisect_left(words, kept, key=itemgetter(0)) - 1
    if at < 0 or 0 <= lasts[at] <= kept:
        return line
    ends = [end for end in lasts if end >= 0]
    end = max((end for end in ends if end <= kept), default=0)
    if end < kept // 3:
        end = next((end for end in ends if end > kept and width(flat[:end]) < most), end)
    line = one_line(flat[:end], columns if end <= kept else most) if end else ""
    return line.removesuffix(ELLIPSIS).rstrip() + ELLIPSIS
