"""Results: what of the ranked passages a search shows, within a number of messages and a budget of tokens.

    passages, best first  ──▶  read from their pages, cut to what fits  ──▶  messages, each once

Equal words are one result, thanks are none, and what tells nothing waits until the end.
"""

import logging
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from statistics import fmean
from typing import NamedTuple

import numpy as np

from ...formats.provenance import own_words, spans_of, whose
from ...formats.utterance import entry_text
from ...messages import Message
from ...text.language.instructions import instructions
from ...text.language.questions import is_question
from ...text.language.sentences import is_small_talk, sentences
from ...text.language.terms import terms
from ...text.provenance import Span
from ..backend import FoundPage, PageKey, Shown, Source, Tier
from ..owner import Session
from ..repository.page_source import Place, read_messages
from ..repository.pages import EVICTED, MID, OBSERVED, SHORT
from ..repository.passages import FoundPassage
from .layout import Integers
from .passages import pieces
from .ranking import Query, Ranking, certainty
from .subject import tells_of
from .succession import read_at

_AT_ONCE = (8, 32)  # passages that the first query reads at least, and any query at most
_WIDEST = 16  # characters that a token has at most, nearly always: longer passages cannot fit, and are not read
_CRUMB = 4  # tokens that are too few for any passage
_MISSES = 32  # consecutive passages that do not fit, or repeat a result, after which the search stops
_ECHO = 0.5  # share of the best score of a message that another piece of it needs to be shown, too
_LINE = 240  # width of a result, if a question asks for many: about 50 tokens, as long as most messages between people
_SAME = 0.6  # share of the words of a question that another one about the same has
_FEW = 8  # words of an acknowledgement, of thanks or of a goodbye, at most
_RIVALS = 10  # messages with which each is compared for its certainty; `certainty` was chosen with so many
_READ = 512  # messages that are looked at to fill a budget, at most
_MOST = 64  # pieces of a message that are shown at most, without a budget
_TIERS: dict[int, Tier] = {OBSERVED: "observed", SHORT: "short", MID: "mid", EVICTED: "evicted"}
_LOG = logging.getLogger(__name__)


class RetrievalRequest(NamedTuple):
    """A query; its fields are the arguments of `MemoryBackend.search`."""

    query: str
    k: int = 5
    budget: int | None = None
    since: float | None = None
    until: float | None = None
    exclude: frozenset[Shown] = frozenset()
    wall: bool = False
    now: date | None = None
    skip: int = 0


class Results:
    """Collects at most k messages within a budget of tokens. *best* are positions, best first."""

    def __init__(
        self, session: Session, request: RetrievalRequest, query: Query, ranking: Ranking, best: Sequence[int]
    ) -> None:
        self.found: dict[tuple[int, int], FoundPage] = {}
        """by page (its id) and entry"""
        self._session, self._scores, self._fit = session, ranking.scores, ranking.fit
        self._layout = session.owner.index.layout
        self.columns = self._layout.columns
        self._keys: dict[int, tuple[int, int]] = {}
        """page (its id) and entry of each position that was read"""
        self._most, self._left, self._missed = request.k + request.skip, request.budget, 0
        self._skip = request.skip
        # the terms by which each result is cut to a line, if the question asks for many
        self._asked = frozenset(query.terms) if query.many and request.budget is not None else None
        self._budget, self._spared = request.budget, 0
        self._standing, self._beside = False, 0  # whether instructions are added, and how many were
        # positions of passages that tell nothing: they only ask the same, or say that it is not known
        self._idle: list[int] | None = []
        self._query, self._terms = request.query, frozenset(query.terms)
        self._shown: set[int] = set()
        self.positions: dict[tuple[int, int], int] = {}
        """position of the first piece of each message, in the order in which they were added"""
        self.sources: dict[tuple[int, int], tuple[FoundPassage, Message]] = {}
        """the first piece of each message, with the message"""
        self.chains: dict[PageKey, int | None] = {}
        self._same: dict[tuple[str, str, str], tuple[int, int]] = {}
        """the message that is shown for all with the same words by the same speaker"""
        self._firsts: dict[tuple[int, int], float] = {}
        """score of the first piece of each message"""
        self._rivals = self._messages(best)
        self._pieces = _MOST if self._left is None else max(1, self._left // session.weights.packed)
        if self._asked is not None or query.form == "order":
            self._pieces = 1
        self._read: dict[Place, Message | None] = {}
        """messages that were read; None: it no longer exists"""
        self._spans: dict[Place, list[Span]] = {}
        """whose words the parts of the messages are that are shown"""

    def add(self, positions: Sequence[int], source: Source = "words", *, share: float = 1.0) -> None:
        """Add passages at *positions*, best first, until there are k messages, or they cost a *share* of the budget."""
        self._spared = max(0, (self._left or 0) - int((self._budget or 0) * share))
        self._standing, self._missed = source == "standing", 0
        at, here = self.columns, np.array(positions, np.int64)
        keys = zip(at.page[here].tolist(), at.entry[here].tolist(), strict=True)
        self._keys.update(zip(positions, keys, strict=True))
        owner, left = self._session.owner, iter(positions)
        size = min(max(_AT_ONCE[0], self._most), _AT_ONCE[1])
        while part := list(islice(filter(self._wanted, left), size)):
            ids = owner.index.ids[part].tolist()
            rows = owner.passages.find(ids)
            places = [rows[id_].place for id_ in ids if id_ in rows]
            for position, id_ in zip(part, ids, strict=True):
                if self._missed > _MISSES or (self._left is not None and self._left < _CRUMB):
                    return
                passage = rows.get(id_) if self._wanted(position) else None
                if passage is None:
                    continue
                if source != "standing" and self._left is not None and passage.size > _WIDEST * self._left:
                    self._missed += 1
                else:
                    self._take(position, passage, source, places)
            if len(self.found) - self._beside >= self._most:  # only further pieces of these messages are wanted
                left = iter([each for each in left if self._keys[each] in self.found])
            size = min(2 * size, _AT_ONCE[1])

    def add_telling(self, positions: Integers) -> None:
        """Add passages, those with the rarest words first: small talk says the same again. O(characters).

        Of more than `_READ`, as many are looked at, evenly over time.
        """
        some = np.unique(np.linspace(0, max(len(positions) - 1, 0), _READ).astype(int))[: len(positions)]
        told = read_at(self._session, positions[some].tolist())
        self._read |= {row.place: message for row, message in told.values()}
        texts = {at: entry_text(message)[row.start :][: row.size] for at, (row, message) in told.items()}
        found = {at: set(terms(text)) for at, text in texts.items()}
        often = Counter(term for each in found.values() for term in each)
        rare = {at: fmean(math.log(len(found) / often[term]) for term in each) for at, each in found.items() if each}
        ids = self._session.owner.index.ids
        self.add(sorted(rare, key=lambda at: (-rare[at], ids[at])), "time")

    def sort(self) -> None:
        """Put what the words found in order of score: a budget chose it by its worth for its length."""
        found = [key for key, page in self.found.items() if page.source == "words"]
        best = iter(sorted(found, key=lambda key: -round(self._firsts[key], 5)))
        keys = [next(best) if page.source == "words" else key for key, page in self.found.items()]
        self.found = {key: self.found[key] for key in keys}

    def add_idle(self) -> None:
        """Add the passages that tell nothing, which were left out so far."""
        idle, self._idle = self._idle, None
        if idle:
            self.add(idle)

    def drop(self, count: int) -> None:
        """Drop the first *count* results, in the order in which they were added."""
        for key in list(self.positions)[:count]:
            del self.found[key], self.positions[key]

    def refit(self, ranking: Ranking) -> float:
        """Return how well what was found fits the people whom the question names, now that its text is known."""
        if ranking.words is None:
            return self._fit
        named, others = self._layout.names(ranking.people)
        told, speaker = {}, self.columns.speaker
        for key, position in self.positions.items():
            speaks = int(speaker[position]) in ranking.people
            told[position] = tells_of(self.found[key].text, named, others, speaks=speaks)
        self._fit = ranking.refit(told, self._layout)
        for key, page in self.found.items():
            score = certainty(self._firsts[key], self._rivals, self._fit)
            self.found[key] = replace(page, score=score)
        return self._fit

    def _messages(self, positions: Sequence[int]) -> list[float]:
        """Return the scores of the first `_RIVALS` messages of *positions*."""
        at, here = self.columns, np.array(positions, np.int64)
        firsts = np.unique(at.page[here] << 32 | at.entry[here], return_index=True)[1]
        return [*self._scores[here[np.sort(firsts)[:_RIVALS]]].tolist()]

    def _wanted(self, position: int) -> bool:
        if position in self._shown:
            return False
        known = self.found.get(key := self._keys[position])
        if known is None:
            # instructions are in addition to the k messages that were requested
            return self._standing or len(self.found) - self._beside < self._most
        return len(known.more) + 1 < self._pieces and bool(self._scores[position] >= _ECHO * self._firsts[key])

    def _message(self, place: Place, places: Sequence[Place]) -> Message | None:
        """Return the message at *place*. Read with it as many of the next *places* as may still be taken."""
        if place not in self._read:
            fresh = [each for each in places[places.index(place) :] if each not in self._read]
            few = list(dict.fromkeys(fresh))[: max(1, self._most - len(self.found) + self._beside + self._missed)]
            self._read |= dict.fromkeys(few) | read_messages(self._session.storage, few)
        return self._read[place]

    def _take(self, position: int, passage: FoundPassage, source: Source, places: Sequence[Place]) -> None:
        message = self._message(passage.place, places)
        score = float(self._scores[position])
        shown = _found_page(message, passage, certainty(score, self._rivals, self._fit), source)
        if message is None or shown is None:
            return
        if source == "standing" and (shown := _clauses(shown, own_words(message))) is None:
            return
        short = self.columns.length[position] <= _FEW
        again = short and self._layout.in_group(np.array([position]))[0]  # "Yes." answers something else each time
        if short and not (again and source == "beside") and is_small_talk(shown.text):
            return
        if (
            self._idle is not None
            and source == "words"
            and (self.columns.unknown[position] or (self.columns.question[position] and self._repeats_it(shown.text)))
        ):
            self._idle.append(position)
            return
        words = _words_of(shown)
        if not again and self._keys[position] not in self.found and (same := self._same.get(words)):
            self._shown.add(position)
            self._missed += 1
            first = self.found[same]
            later = (shown.at or 0.0) > (first.at or 0.0)
            latest = replace(shown, whose=self._whose(message, passage)) if later else first
            self.found[same] = replace(latest, score=first.score, more=first.more, times=first.times + 1)
            return
        if self._asked is not None:
            shown = _line(shown, self._asked)
            words = _words_of(shown)
        if self._left is not None and (len(self.found) >= self._skip or self._keys[position] in self.found):
            cost = self._session.count(shown.text)
            if cost > self._left - self._spared:
                self._missed += 1
                return  # a shorter one may fit
            self._left -= cost
        self._missed = 0
        self._shown.add(position)
        self.chains[passage.context, passage.page] = passage.chain
        if whose := self._whose(message, passage):
            shown = replace(shown, whose=whose)
        if known := self.found.get(key := self._keys[position]):
            self.found[key] = replace(known, more=(*known.more, *shown.pieces))
            return
        self.found[key], self._firsts[key], self.positions[key] = shown, score, position
        self.sources[key] = passage, message
        self._same[words] = key
        self._beside += source == "standing"

    def _repeats_it(self, text: str) -> bool:
        """Return whether *text* does nothing but ask about the same as the query, which is a question."""
        if not is_question(self._query) or len(self._terms.intersection(terms(text))) < _SAME * len(self._terms):
            return False
        return sum(1 for _ in sentences(text)) == 1

    def _whose(self, message: Message, passage: FoundPassage) -> str:
        """Return whose words *passage* of *message* has. O(characters) once for each message."""
        if passage.place not in self._spans:
            self._spans[passage.place] = spans_of(message)
        return whose(message, passage.start, passage.start + passage.size, self._spans[passage.place])


def _words_of(page: FoundPage) -> tuple[str, str, str]:
    return page.role, page.speaker, " ".join(page.text.casefold().split())


def _line(found: FoundPage, asked: frozenset[str]) -> FoundPage:
    """Return *found* with the part of its text that has most of the terms *asked*, `_LINE` wide at most."""
    parts = pieces(found.text, _LINE)
    if len(parts) < 2:
        return found
    best = max(range(len(parts)), key=lambda at: (len(asked.intersection(terms(parts[at]))), -at))
    before = len("".join(parts[:best]))
    text = parts[best].strip()
    return replace(found, text=text, start=found.start + before + parts[best].index(text))


def _clauses(found: FoundPage, own: str) -> FoundPage | None:
    """Return *found* with only the part of its text that has lasting instructions; None without such a part.

    *own* is the text of the message with what is not the user's own masked.
    """
    own = own[found.start : found.start + len(found.text)]
    places = [(found.text.find(each), len(each)) for each in instructions(found.text, own)]
    if not places:
        return None
    start, end = max(0, min(place for place, _ in places)), max(place + size for place, size in places)
    return replace(found, text=found.text[start:end], start=found.start + start)


def _found_page(message: Message | None, passage: FoundPassage, score: float, source: Source) -> FoundPage | None:
    """Return the result for *passage*, a piece of *message*; None if the message no longer has it."""
    text = "" if message is None else entry_text(message)
    index, start, end = passage.page, passage.start, passage.start + passage.size
    if message is None or len(text) < end:
        _LOG.warning(
            "page #%d differs from what the memory observed: it is observed again after its next change", index
        )
        return None
    speaker = str(message.get("name") or passage.speaker)
    return page_of(passage, text[start:end], speaker, score, source)


def page_of(passage: FoundPassage, text: str, speaker: str, score: float, source: Source = "words") -> FoundPage:
    """Return the result for *passage*, whose *text* the *speaker* said."""
    found = (passage.context, passage.page, passage.entry, score, text, passage.role, passage.turn, passage.at)
    return FoundPage(*found, speaker, passage.start, _TIERS[passage.tier], passage.episode, source, zone=passage.zone)
