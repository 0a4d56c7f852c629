"""Succession: what was said later about the same thing as a result of a search.

    result      #5   "The alarm code of the studio is 5190."
    candidates  later passages with its rarest words, or of its topic, or loose corrections behind it
    later       #21  "We had the code of the studio's alarm changed, it is 7264 now."

The index proposes few candidates for each result, their texts are read at once, and `memci.text.language.change`
decides. Nothing of it is stored, so that an erasure needs no more than that of the passages.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ...formats.provenance import own_words, whose
from ...formats.utterance import entry_text
from ...messages import Message
from ...text.language.change import LONGEST, Claim, follows, names_ids, same_meaning, takes_up
from ...text.language.instructions import clauses
from ...text.language.terms import is_single, query_terms, terms
from ..owner import Session
from ..repository.page_source import read_messages
from ..repository.passages import FoundPassage
from ..tiers.facts import claims_of
from .layout import ROLES, Integers, Layout
from .passages import SIGN_TERMS, sign_term

_FOLLOWED = 10  # results whose successors are looked for at most: the first ones, which a model reads
_TERMS = 8  # of the rarest terms of a result: enough to find what repeats half of them
_COMMON = 24  # passages that a term has at most, or a twentieth of all: what is more common tells no thing apart
_MANY = 2_000  # the same in a large memory: with all postings of a twentieth a search would cost what the memory has
_CANDIDATES = 6  # of each result by its words, at most
_TOPICAL = 3  # the latest of its topic
_LEAST = 0.15  # share of the rarity of the terms of a result that a candidate has


class Said(NamedTuple):
    """A result of a search, to be followed: the position of its passage, and its text."""

    position: int
    text: str
    speaker: str
    role: str


def successors(session: Session, results: Collection[Said]) -> dict[int, tuple[FoundPassage, str, str]]:
    """Return the latest successor of those results that have one, by position: its passage, its text, its speaker.

    One batch of postings and one of messages. O(postings of the rarest words).
    """
    told = [each for each in results if len(each.text) <= LONGEST and _tells(each)][:_FOLLOWED]
    states = {each.position: claims_of(each.text, each.speaker, each.role) for each in told}
    told = [each for each in told if states[each.position]]
    if not told:
        return {}
    proposed = dict(_propose(session, told, states))
    every = _read(session, {position for some in proposed.values() for position in some})
    said: dict[int, tuple[FoundPassage, str, str]] = {}
    for position, (row, message) in every.items():
        text = entry_text(message)[row.start : row.start + row.size]
        if 0 < len(text) <= LONGEST:
            said[position] = row, text, str(message.get("name") or row.speaker)
    own = {position: claims_of(text, speaker, row.role) for position, (row, text, speaker) in said.items()}
    found = {}
    for each in told:
        for position, loose in proposed[each.position].items():  # the latest first
            if position not in own or not (follows if loose else takes_up)(own[position], states[each.position]):
                continue
            row, message = every[position]
            if not whose(message, row.start, row.start + row.size):
                found[each.position] = said[position]
                break
    return found


def revocations(session: Session, results: Collection[Said]) -> dict[int, tuple[FoundPassage, str, str]]:
    """Return by what the user took back those of *results* that have an instruction, by position, as `successors`.

    It is the last sentence behind each that does so and shares a word with it, or else the last that names nothing.
    """
    index = session.owner.index
    at = index.layout.columns
    ends = np.flatnonzero(at.ends)
    behind = {
        each.position: places[: -_CANDIDATES - 1 : -1].tolist()
        for each in results
        if at.standing[each.position] and len(places := _later(index.layout, each.position, ends))
    }
    said: dict[int, tuple[FoundPassage, str, str]] = {}
    bare = set()
    for there, (row, message) in _read(session, {place for places in behind.values() for place in places}).items():
        own = own_words(message)[row.start : row.start + row.size]
        for text, takes_back in clauses(own, own):
            piece = row._replace(start=row.start + own.index(text))
            said[there] = piece, text, str(message.get("name") or row.speaker)
            bare.update([there] * (takes_back == "any"))
    found = {}
    for each in results if said else ():
        last = [place for place in behind.get(each.position, ()) if place in said]
        about = set(query_terms(each.text)) if last else set()
        named = (place for place in last if about.intersection(query_terms(said[place][1])))
        if (place := next(named, next((place for place in last if place in bare), None))) is not None:
            found[each.position] = said[place]
    return found


def _read(session: Session, positions: Collection[int]) -> dict[int, tuple[FoundPassage, Message]]:
    """Return the passages at *positions* with their messages, without removed ones. A batch of each."""
    every = sorted(positions)
    ids = session.owner.index.ids[every].tolist() if every else []
    rows = session.owner.passages.find(ids) if ids else {}
    messages = read_messages(session.storage, {row.place for row in rows.values()})
    found = ((place, rows[id_]) for place, id_ in zip(every, ids, strict=True) if id_ in rows)
    return {place: (row, message) for place, row in found if (message := messages.get(row.place)) is not None}


def _tells(said: Said) -> bool:
    """Return whether it states something; an assistant without a name only repeats what people and tools said."""
    return said.role != "assistant" or bool(said.speaker) or names_ids(said.text)


def _propose(
    session: Session, told: Collection[Said], states: Mapping[int, list[Claim]]
) -> Iterator[tuple[int, dict[int, bool]]]:
    """Yield for each result the positions that may take it up, the latest first, and whether they are loose."""
    index, layout = session.owner.index, session.owner.index.layout
    own_terms = {each.position: _terms_of(each.text) for each in told}
    every = dict.fromkeys(term for words, alike in own_terms.values() for term in (*words, *alike))
    postings = index.postings([*every, *SIGN_TERMS])
    at = layout.columns
    most = max(_COMMON, min(len(layout) // 20, _MANY))
    telling = at.role == ROLES["tool"]
    telling[np.concatenate([postings[term][0] for term in SIGN_TERMS])] = True
    changing = {term: having[telling[having]].tolist() for term in every if len(having := postings[term][0]) <= most}
    hits = [each.position for each in told]
    for each in told:
        words, alike = own_terms[each.position]
        own = [term for term in words if term in changing and len(postings[term][0]) > 1]
        rare = sorted(own, key=lambda term: len(postings[term][0]))[:_TERMS]
        rarity = {term: math.log1p(len(layout) / len(postings[term][0])) for term in rare}
        near = {*hits, *_by_words(changing, rarity)}
        near.update(*(changing[term] for term in alike if len(postings[term][0]) <= _COMMON))
        for topic in {topic for claim in states[each.position] for topic in claim.topics}:
            near.update(_later(layout, each.position, postings[sign_term(topic)][0])[-_TOPICAL:].tolist())
        behind = _later(layout, each.position, np.array([*near], np.int64)).tolist() if near else []
        loose = _next_loose(layout, each.position, postings[sign_term("loose")][0])
        places = dict.fromkeys(behind, False) | dict.fromkeys(loose.tolist(), True)
        here: Integers = np.array([*places], np.int64)
        when = at.at[here]
        order = here[np.lexsort((at.nth[here], np.where(np.isnan(when), 0.0, when)))][::-1].tolist()
        yield each.position, {place: places[place] for place in order}


@lru_cache(maxsize=1024)
def _terms_of(text: str) -> tuple[list[str], list[str]]:
    """Return the terms of *text*, and those of words that mean the same. O(length), the first time."""
    alike = sorted({*terms(" ".join(same_meaning(text)))})
    return [term for term in query_terms(text) if not is_single(term)], alike


def _by_words(changing: Mapping[str, Sequence[int]], rarity: Mapping[str, float]) -> list[int]:
    """Return the *changing* passages that have most of the *rarity* of these terms."""
    shares: dict[int, float] = {}
    for term, rare in rarity.items():
        for place in changing[term]:
            shares[place] = shares.get(place, 0.0) + rare
    least = _LEAST * sum(rarity.values())
    return sorted((place for place in shares if shares[place] >= least), key=lambda place: (-shares[place], place))[
        :_CANDIDATES
    ]


def _later(layout: Layout, position: int, places: Integers) -> Integers:
    """Return those of *places* that are statements of people or tools said later than *position*, in their order."""
    at = layout.columns
    here, there, nth = at.at[position], at.at[places], at.nth[places]
    behind = nth > at.nth[position]
    later = behind if math.isnan(here) else np.where(np.isnan(there) | (there == here), behind, there > here)
    named = at.speaker[places] != layout.speakers.get("", -1)
    good = np.flatnonzero(later & ((at.role[places] != ROLES["assistant"]) | named) & (at.question[places] == 0))
    found: Integers = places[good[np.argsort(nth[good])]]
    return found


def _next_loose(layout: Layout, position: int, places: Integers) -> Integers:
    """Return the loose correction that means *position*: the first one behind it, with no other time between."""
    at = layout.columns
    if not at.timed[position] or not len(places):
        return places[:0]
    same = (at.context == at.context[position]) & (at.role != ROLES["assistant"]) & (at.nth > at.nth[position])
    behind: Integers = places[same[places]]
    if not len(behind):
        return behind
    first = behind[np.argmin(at.nth[behind])]
    between = same & (at.timed > 0) & (at.question == 0) & (at.nth < at.nth[first])
    return np.array([] if between.any() else [first], np.int64)
