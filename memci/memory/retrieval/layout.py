"""The layout: the passages of an owner as columns, and the shares of words that they borrow from neighbours.

    position   context  page  entry  part  role  speaker  length  at     flags
    0          0        0     0      0     user  Ann      9       1.7e9  question          ┐ one run: each borrows
    1          0        1     2      0     user  Ben      14      1.7e9  –                 ┘ words from those beside it
    2          0        2     4      0     user  Ann      6       1.9e9  –                   after a silence: a new run

Rows are appended as pages arrive, of several contexts in any order. Neighbours are always of the same context. The
share that a passage borrows depends on length and role: it is large in quick talk, small in long texts, and 0 where
one person makes statement after statement.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...text.language.change import knows_nothing
from ...text.language.dates import tells_time
from ...text.language.instructions import clauses
from ...text.language.questions import is_question
from ...text.language.sentences import sentences
from ...text.language.terms import is_single, terms
from .passages import Passage

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

QUESTION: Final = 1  # flag: the passage ends with a question
TIMED: Final = 2  # flag: the passage contains a time
STANDING: Final = 4  # flag: the passage has a lasting instruction or preference of the user
UNKNOWN: Final = 8  # flag: the passage only says that something is not known
ENDS: Final = 16  # flag: the passage takes back an instruction
FLAGS: Final = {"question": QUESTION, "timed": TIMED, "standing": STANDING, "unknown": UNKNOWN, "ends": ENDS}
"""flags by the column of each"""
ROLES: Final = {"user": 0, "assistant": 1, "tool": 2}

SPEAKER_FROM: Final = 5  # passages that a name needs to count as a speaker: "Monday: call Jacob" is no transcript
OTHERS: Final = 64  # speakers of whom a message may tell that are looked at, at most: more than a group has that talks
SHORT, LONG = 24, 48
"""terms up to which a message is a turn of talk, and from which it is a long text: see benchmarks/recall"""
REACH: Final = 12  # neighbours on each side from which a passage borrows: see benchmarks/recall
_GAP_SECONDS: Final = 6 * 3600.0  # silence after which a new run begins

# The shares of a neighbour's words that a passage borrows, chosen by benchmarks/recall.
_NEAR: Final = (0.3, 0.2, 0.15, 0.1, 0.1, 0.1)  # by distance, from the message beside it on
_GROUP: Final = (0.8, 0.7, 0.6, 0.6, 0.6, 0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2)
"""the same where three people or more speak: an answer is a stretch of their talk, however long its messages are"""
_PEOPLE: Final = 0.5  # least part of `_NEAR` between two people whose messages are long
_ASKED: Final = 0.55
"""in addition from the passage before, if it is a question: an answer leaves out the words of the question"""
_WHOLE: Final = (0.25, 0.175)  # between pieces of one long message, by distance
_PROMPT: Final = 0.15  # for an answer of any length from the message that it answers; nothing in the other direction


class Row(NamedTuple):
    """A passage without its text."""

    context: int
    page: int
    entry: int
    part: int
    role: str
    speaker: str
    length: int  # number of significant words: `memci.text.language.terms.extent` of its terms
    at: float | None  # when its message was said, in seconds since 1970 UTC
    flags: int = 0
    zone: int = 0  # the zone in which that was, in minutes east of UTC


def flags_of(passage: Passage) -> int:
    """Return those of `FLAGS` that apply to *passage*. O(length)."""
    given = [bool(each.takes_back) for each in clauses(passage.text, passage.own)]
    return (
        QUESTION * is_question(passage.text)
        + TIMED * (passage.role != "tool" and tells_time(passage.text))
        + STANDING * (False in given)
        + ENDS * (True in given)
        + UNKNOWN * (passage.role != "tool" and all(map(knows_nothing, (passage.text, *sentences(passage.text)))))
    )


class PassageColumns(NamedTuple):
    """The columns of passages, position by position."""

    nth: Integers  # number of passages of the owner before it
    context: Integers
    page: Integers
    entry: Integers
    part: Integers
    role: Integers
    speaker: Integers
    at: NDArray[np.float64]  # seconds since 1970 UTC; nan: unknown
    zone: Integers  # minutes east of UTC: the clock on the wall showed `at` + 60 · `zone`
    length: Floats
    whole: Floats  # terms of the whole message
    question: Floats
    timed: Floats
    standing: Floats
    unknown: Floats
    ends: Floats
    lecture: Floats
    """from 0 to 1, how much it belongs to a long text of the assistant, unless that follows the answer of a tool"""
    links: Integers
    """Positions of its neighbours in its run, two rows for each distance: one before, one after, two before, two after,
    …; -1: none"""
    lent: Floats  # the shares of the words that it borrows from these neighbours

    def cut(self, rows: slice) -> "PassageColumns":
        """Return views of some *rows*."""
        return PassageColumns._make(column[..., rows] for column in self)


class Layout:
    """The passages of an owner, in the order of their arrival. Not thread-safe while it grows."""

    def __init__(self) -> None:
        self.speakers: dict[str, int] = {}
        self._passages_of: Integers = np.zeros(0, np.int64)
        self._named: dict[str, list[int]] = {}
        self._greeted: dict[str, int] = {}
        """the number of the speaker who is greeted by a term that is no part of the name"""
        self._count = 0
        self._last: dict[int, int] = {}
        self._columns = room(64)
        self._waiting: list[Row] = []
        """rows that were appended since the columns were read: adding many at once costs little more than one"""
        self._views: PassageColumns | None = None
        self._lecturing: float | None = None
        self._excess: Floats | None = None
        self._lending: list[tuple[Integers, Integers, Floats]] | None = None

    def __len__(self) -> int:
        return self._count + len(self._waiting)

    @property
    def columns(self) -> PassageColumns:
        """The columns of all passages: views, valid until the next `extend`."""
        self._place()
        if self._views is None:
            self._views = self._columns.cut(slice(0, self._count))
        return self._views

    def extend(self, rows: Iterable[Row]) -> range:
        """Append *rows*, and return their positions. O(rows), amortised.

        The rows of a context must be in order, and the pieces of a message in one call.
        """
        start = len(self)
        self._waiting += rows
        return range(start, len(self))

    def fill(
        self,
        columns: Iterable[Sequence[Any]],
        *,
        nth: Integers | None = None,
        whole: Floats | None = None,
        lecture: Floats | None = None,
    ) -> None:
        """Append passages as *columns*, in the order of `Row`, with roles as the numbers of `ROLES`. O(passages).

        *nth* and *whole* are the values of these columns, and *lecture* those of the first rows; default: computed from
        the rows.
        """
        self._place()
        context, page, entry, part, role, speaker, length, when, flags, zone = columns
        if not len(page):
            return
        start, end = self._count, self._count + len(page)
        if end > len(self._columns.page):
            self._columns = room(max(end, 2 * start), self._columns.cut(slice(0, start)))
        self._count = end
        self._views = self._lecturing = self._excess = self._lending = None
        new = self._columns.cut(slice(start, end))
        new.context[:], new.page[:], new.entry[:], new.part[:], new.role[:] = context, page, entry, part, role
        numbers = {name: self._speaker(name) for name in dict.fromkeys(speaker)}
        new.speaker[:] = [numbers[name] for name in speaker]
        said = np.bincount(new.speaker[new.role != ROLES["tool"]], minlength=len(self.speakers))
        said[: len(self._passages_of)] += self._passages_of
        self._passages_of = said
        new.at[:] = np.array(when, np.float64)  # None becomes nan
        new.length[:], new.zone[:] = length, zone
        marks = np.array(flags)
        for name, flag in FLAGS.items():
            getattr(new, name)[:] = marks & flag != 0
        new.nth[:] = np.arange(start, end) if nth is None else nth
        message = np.cumsum(new.part == 0)
        new.whole[:] = np.bincount(message, new.length)[message] if whole is None else whole
        self._link(start, end, lecture)

    def _place(self) -> None:
        """Add the waiting rows to the columns."""
        fresh, self._waiting = self._waiting, []
        if fresh:
            context, page, entry, part, role, *more = zip(*fresh, strict=True)
            self.fill((context, page, entry, part, [ROLES.get(each, ROLES["tool"]) for each in role], *more))

    @property
    def lecturing(self) -> float:
        """From 0 to 1, how much the assistant answers in long texts: 0 between people, and for reports about tools."""
        self._place()
        if self._lecturing is None:
            others = self.columns.role != ROLES["user"]
            self._lecturing = float(self.columns.lecture[others].mean()) if others.any() else 0.0
        return self._lecturing

    @property
    def excess(self) -> Floats:
        """How much longer each passage is than the mean, as a part of it; 0 for turns of talk and results of tools."""
        self._place()
        if self._excess is None:
            at = self.columns
            counts = length_counts(at.lent, at.whole, at.role)
            self._excess = (counts * (at.length / max(self._mean_length(counts), 1) - 1)).astype(np.float32)
        return self._excess

    @property
    def lending(self) -> list[tuple[Integers, Integers, Floats]]:
        """By side and distance, where any is borrowed: who lends to a position, who borrows from it, and the shares."""
        at = self.columns
        if self._lending is None:
            # rows come in pairs: the one before a passage is the one that has it behind itself
            rows = [(at.links[row], at.links[row ^ 1], lent) for row, lent in enumerate(at.lent)]
            self._lending = [each for each in rows if each[2].any()]
        return self._lending

    def _mean_length(self, counts: NDArray[np.float64]) -> float:
        """Return the mean length of the passages, each of which counts as *counts* say."""
        return float((counts * self.columns.length).sum() / max(counts.sum(), 1e-6))

    def in_group(self, positions: Integers) -> NDArray[np.bool_]:
        """Return which of *positions* are in the talk of three people or more: only there words come from so far."""
        return np.asarray(self.columns.lent[2 * len(_NEAR) :, positions].max(axis=0) > 0)

    @property
    def replies(self) -> NDArray[np.bool_]:
        """Which passages an assistant without a name said. O(passages)."""
        at = self.columns
        return np.asarray((at.role == ROLES["assistant"]) & (at.speaker == self.speakers.get("", -1)))

    def people(self, term: str) -> list[int]:
        """Return the numbers of the speakers whose name has *term*, and who have at least `SPEAKER_FROM` passages."""
        self._place()
        known = self._named.get(term) or ([self._greeted[term]] if term in self._greeted else [])
        return [number for number in known if self._passages_by(number) >= SPEAKER_FROM]

    def _passages_by(self, speaker: int) -> int:
        return int(self._passages_of[speaker])

    def greet(self, term: str, greetings: Integers) -> None:
        """Let *term* name who answers, or spoke before, most of the passages at *greetings*, which greet by it.

        Only from `SPEAKER_FROM` greetings of one speaker with a name on. O(greetings).
        """
        self._greeted.pop(term, None)
        if len(greetings) < SPEAKER_FROM:
            return
        at = self.columns
        near = at.links[:, greetings]
        other = np.where((near >= 0) & (at.speaker[near] != at.speaker[greetings]), at.speaker[near], -1)
        whom = other[(other >= 0).argmax(axis=0), np.arange(len(greetings))]
        whom = whom[(whom >= 0) & (whom != self.speakers.get("", -1))]
        numbers, counts = np.unique(whom, return_counts=True)
        if counts.max(initial=0) >= SPEAKER_FROM:
            self._greeted[term] = int(numbers[counts.argmax()])

    def names(self, people: Collection[int]) -> tuple[list[str], list[str]]:
        """Return the names of *people* and of the first `OTHERS` other speakers, whole and in parts. O(speakers)."""
        found: tuple[list[str], list[str]] = [], []
        for name, number in islice(self.speakers.items(), OTHERS + len(people)):
            found[number not in people].extend(dict.fromkeys((name, *name.split())))
        return found

    def said_by(self, people: Iterable[int]) -> NDArray[np.bool_]:
        """Return which passages are by *people*. O(people · passages)."""
        speaker = self.columns.speaker
        found = np.zeros(len(speaker), bool)
        for each in people:
            found |= speaker == each
        return found

    def only(self, people: Collection[int]) -> bool:
        """Return whether all passages are by *people*, also those that are not in RAM. O(people · passages)."""
        return bool(self.said_by(people).all())

    def _speaker(self, name: str) -> int:
        number = self.speakers.get(name)
        if number is None:
            number = self.speakers[name] = len(self.speakers)
            for term in name_terms(name):
                self._named.setdefault(term, []).append(number)
        return number

    def _link(self, start: int, end: int, lecture: Floats | None) -> None:
        """Link the rows from *start* to the rows before them in their contexts, and compute the shares."""
        at, new = self.columns, np.arange(start, end)
        last = np.array(
            [self._last[each] for each in np.unique(at.context[new]).tolist() if each in self._last], np.int64
        )
        old = np.column_stack([at.links[-2::-2, last].T, last]).ravel()  # what is linked to the last row, and that row
        rows = np.append(old[old >= 0], new)
        order = rows[np.argsort(at.context[rows], kind="stable")]
        ends = np.append(at.context[order[1:]] != at.context[order[:-1]], True)
        self._last.update(zip(at.context[order[ends]].tolist(), order[ends].tolist(), strict=True))
        # An unknown time compares as false, so that the run continues.
        ends[:-1] |= at.at[order[1:]] - at.at[order[:-1]] > _GAP_SECONDS
        places = np.arange(len(order))
        depth = places - np.maximum.accumulate(np.where(np.append(True, ends[:-1]), places, 0))
        at.links[:, start:] = -1
        for distance, (back, forth) in enumerate(zip(at.links[::2], at.links[1::2], strict=True), start=1):
            linked = np.flatnonzero(depth >= distance)
            later, earlier = order[linked], order[linked - distance]
            back[later], forth[earlier] = earlier, later
        start_of = at.links[0][new - at.part[new]]
        unprompted = (at.role[new] == ROLES["assistant"]) & ((start_of < 0) | (at.role[start_of] != ROLES["tool"]))
        at.lecture[new] = unprompted * (1 - talk_like(at.whole[new]))
        if lecture is not None:
            at.lecture[start : start + len(lecture)] = lecture
        self._lend(rows if start else slice(0, end))

    def _lend(self, rows: Integers | slice) -> None:
        at = self.columns
        groups, count = len(self.speakers) > 2, at.role[rows].size
        who = at.speaker * len(ROLES) + at.role
        person = np.where(at.role == ROLES["user"], at.speaker, -1)
        monologue, most, least = np.ones(count, bool), np.full(count, -1), np.full(count, len(self.speakers))
        for link in at.links:  # row by row, since all at once would take 400 bytes a passage
            left = slice(None) if groups else np.flatnonzero(monologue)
            other = link[rows][left]
            others = (other >= 0) & (who[other] != who[rows][left])
            monologue[left] &= ~others
            if groups:
                theirs = np.where(others, person[other], -1)
                most, least = np.maximum(most, theirs), np.minimum(least, np.where(theirs < 0, least, theirs))
        group = (person[rows] >= 0) & (least < most)
        talks, user, tool = talk_like(at.whole), at.role == ROLES["user"], at.role == ROLES["tool"]
        message = at.page << 32 | at.entry
        own, speaks = message[rows], np.where(group, 1, _PEOPLE) * (user[rows] & ~monologue)
        beside = [
            (1 - at.lecture[link[rows]], monologue & (at.question[rows] + at.question[link[rows]] == 0))
            for link in at.links[:2]
        ]
        grouped, near, some = _by_distance(_GROUP), _by_distance(_NEAR), bool(group.any())
        for side, link in enumerate(at.links):
            share = np.where(group, grouped[side // 2], near[side // 2]) if some else near[side // 2]
            if side >= 2 * len(_WHOLE) and not share.any():
                at.lent[side, rows] = 0  # no one lends from so far
                continue
            other, (open_end, alone) = link[rows], beside[side % 2]
            talk = np.maximum(np.minimum(talks[rows], talks[other]), speaks * user[other])
            talk[tool[rows] | tool[other]] = 0
            lent = share * talk
            if side > 1:  # not across a long answer of the assistant
                lent *= open_end
            if side == 0:
                lent += _ASKED * talk * at.question[other]
            if side in (0, 2):  # the question may stand before another answer
                answers = (at.role[rows] == ROLES["assistant"]) & user[other]
                lent = np.maximum(lent, _PROMPT * answers)
            lent[alone] = 0  # one person alone does not answer: each statement is about something else
            lent[own == message[other]] = _WHOLE[side // 2] if side // 2 < len(_WHOLE) else 0
            at.lent[side, rows] = np.where(other >= 0, lent, 0)


def _by_distance(shares: Sequence[float]) -> NDArray[np.float64]:
    """Return *shares* with zeros up to `REACH`."""
    return np.pad(np.array(shares, np.float64), (0, REACH - len(shares)))


def name_terms(name: str) -> list[str]:
    """Return the terms by which a question may name the speaker *name*. O(length)."""
    parts = dict.fromkeys(terms(name))
    return [part for part in parts if not is_single(part)] or list(parts)


def length_counts(lent: Floats, whole: Floats, role: Integers) -> NDArray[np.float64]:
    """Return, from 0 to 1, how much the length of each passage counts: not in turns of talk or results of tools."""
    talk = np.where(lent[:2].any(axis=0), talk_like(whole), 0).astype(np.float64)
    return np.asarray((1 - talk) * (role != ROLES["tool"]))


def talk_like(words: Floats) -> Floats:
    """Return, from 0 to 1, how much messages of so many *words* are turns of talk rather than long texts."""
    return np.clip((LONG - words) / (LONG - SHORT), 0, 1)


def room(size: int, kept: PassageColumns | None = None) -> PassageColumns:
    """Return columns for *size* rows, which begin with *kept*. The system provides memory on the first write."""
    floats = ("length", "whole", *FLAGS, "lecture", "lent")
    kinds: dict[str, type] = dict.fromkeys(floats, np.float32)
    kinds["at"] = np.float64
    shapes = {"links": (2 * REACH, size), "lent": (2 * REACH, size)}
    columns = PassageColumns._make(
        np.zeros(shapes.get(name, size), kinds.get(name, np.int64)) for name in PassageColumns._fields
    )
    if kept is not None:
        for name, column in columns._asdict().items():
            column[..., : len(kept.page)] = getattr(kept, name)
    return columns
