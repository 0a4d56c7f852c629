"""Succession: what was said later about the same thing as a result of a search.

    result      #5   "The alarm code of the studio is 5190."
    candidates  later passages with its rarest words, or of its topic, or loose corrections behind it
    later       #21  "We had the code of the studio's alarm changed, it is 7264 now."

The index proposes few candidates for each result, their texts are read at once, and `memci.text.language.change`
decides. Nothing of it is stored, so that an erasure needs no more than that of the passages.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...formats.provenance import own_words, whose
from ...formats.utterance import entry_text
from ...messages import Message
from ...text.language.change import LONGEST, Claim, names_ids, shares_words, takes_up
from ...text.language.instructions import clauses
from ...text.language.synonyms import same_meaning
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
    """A result of a search, to be followed: the position of its passage, its text, and what was read of it."""

    position: int
    text: str
    speaker: str
    role: str
    source: tuple[FoundPassage, Message]


def successors(session: Session, results: Collection[Said]) -> dict[int, tuple[FoundPassage, str, str]]:
    """Return the latest successor of those results that have one, by position: its passage, its text, its speaker.

    One batch of postings and one of messages. O(postings of the rarest words).
    """
    told = [each for each in results if len(each.text) <= LONGEST and _tells(each)][:_FOLLOWED]
    states = {each.position: claims_of(each.text, each.speaker, each.role) for each in told}
    told = [each for each in told if states[each.position]]
    if not told:
        return {}
    proposed = _propose(session, told, states)
    known = {each.position: each.source for each in told}
    every = known | read_at(
        session, {position for some in proposed.values() for position in some if position not in known}
    )
    said: dict[int, tuple[FoundPassage, str, str]] = {}
    for position, (row, message) in every.items():
        text = entry_text(message)[row.start : row.start + row.size]
        if 0 < len(text) <= LONGEST:
            said[position] = row, text, str(message.get("name") or row.speaker)
    own = {position: claims_of(text, speaker, row.role) for position, (row, text, speaker) in said.items()}
    found = {}
    for each in told:
        for position, loose in proposed[each.position].items():  # the latest first
            if position not in own or not takes_up(own[position], states[each.position], loose=loose):
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
        each.position: places[::-1].tolist()
        for each in results
        if at.standing[each.position] and len(places := _latest(index.layout, each.position, ends, _CANDIDATES))
    }
    said: dict[int, tuple[FoundPassage, str, str]] = {}
    bare = set()
    for there, (row, message) in read_at(session, {place for places in behind.values() for place in places}).items():
        own = own_words(message)[row.start : row.start + row.size]
        for text, takes_back in clauses(own, own):
            piece = row._replace(start=row.start + own.index(text))
            said[there] = piece, text, str(message.get("name") or row.speaker)
            bare.update([there] * (takes_back == "any"))
    found = {}
    for each in results if said else ():
        last = [place for place in behind.get(each.position, ()) if place in said]
        named = (place for place in last if shares_words(said[place][1], each.text))
        if (place := next(named, next((place for place in last if place in bare), None))) is not None:
            found[each.position] = said[place]
    return found


def read_at(session: Session, positions: Collection[int]) -> dict[int, tuple[FoundPassage, Message]]:
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


def _propose(session: Session, told: Sequence[Said], states: Mapping[int, list[Claim]]) -> dict[int, dict[int, bool]]:
    """Return for each result the positions that may take it up, the latest first, and whether they are loose."""
    index, layout = session.owner.index, session.owner.index.layout
    own_terms = [_terms_of(each.text) for each in told]
    every = dict.fromkeys(term for words, alike in own_terms for term in (*words, *alike))
    signed = {term: having for term, (having, _) in index.exact(SIGN_TERMS).items()}
    most = max(_COMMON, min(len(layout) // 20, _MANY))
    postings = {term: having for term, (having, _) in index.exact(every, most).items() if len(having)}
    at = layout.columns
    telling = at.role == ROLES["tool"]
    for having in signed.values():
        telling[having] = True
    here = np.array([each.position for each in told])
    rare: list[tuple[int, Integers]] = []
    near = [(who, here) for who in range(len(told))]
    loose = np.full(len(told), -1)
    for who, (each, (words, alike)) in enumerate(zip(told, own_terms, strict=True)):
        own = [postings[term] for term in words if len(postings.get(term, ())) > 1]
        rare += [(who, having) for having in sorted(own, key=len)[:_TERMS]]
        near += [(who, postings[term]) for term in alike if 0 < len(postings.get(term, ())) <= _COMMON]
        topics = {sign_term(topic) for claim in states[each.position] for topic in claim.topics}
        near += [(who, _latest(layout, each.position, signed[topic], _TOPICAL)) for topic in topics]
        loose[who] = _next_loose(layout, each.position, signed[sign_term("loose")])
    near += [(who, loose[who : who + 1]) for who in np.flatnonzero(loose >= 0).tolist()]
    whose, places = map(np.concatenate, zip(_by_words(rare, telling, layout), _pairs(near), strict=True))
    telling[here] = True
    good = telling[places] & ((places == loose[whose]) | _later(layout, here[whose], places))
    whose, places = np.divmod(np.unique(whose[good] * len(telling) + places[good]), len(telling))
    when = at.at[places]
    order = np.lexsort((at.nth[places], np.where(np.isnan(when), 0.0, when)))[::-1]
    proposed: dict[int, dict[int, bool]] = {each.position: {} for each in told}
    for who, place in zip(whose[order].tolist(), places[order].tolist(), strict=True):
        proposed[told[who].position][place] = place == loose[who]
    return proposed


@lru_cache(maxsize=1024)
def _terms_of(text: str) -> tuple[list[str], list[str]]:
    """Return the terms of *text*, and those of words that mean the same. O(length), the first time."""
    alike = sorted({*terms(" ".join(same_meaning(text[:LONGEST])))})
    return [term for term in query_terms(text) if not is_single(term)], alike


def _pairs(groups: Sequence[tuple[int, Integers]]) -> tuple[Integers, Integers]:
    """Return the places of all *groups*, and before them the number of the group of each."""
    return (
        np.repeat([who for who, _ in groups], [len(places) for _, places in groups]).astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *(places for _, places in groups)]),
    )


def _by_words(
    rare: Sequence[tuple[int, Integers]], telling: NDArray[np.bool_], layout: Layout
) -> tuple[Integers, Integers]:
    """Return for each number the *telling* passages that have most of the rarity of its terms, by their postings."""
    whose, places = _pairs(rare)
    rarity = np.log1p(len(layout) / np.array([len(having) for _, having in rare], np.float64))
    least = _LEAST * np.bincount([who for who, _ in rare], rarity)
    kept = telling[places]
    keys, which = np.unique(whose[kept] * len(telling) + places[kept], return_inverse=True)
    shares = np.bincount(which, np.repeat(rarity, [len(having) for _, having in rare])[kept], len(keys))
    whose, places = np.divmod(keys, len(telling))
    good = np.flatnonzero(shares >= least[whose])
    good = good[np.lexsort((-shares[good], whose[good]))]
    whose = whose[good]
    first = np.arange(len(good)) - np.searchsorted(whose, whose) < _CANDIDATES
    return whose[first], places[good[first]]


def _later(layout: Layout, position: int | Integers, places: Integers) -> NDArray[np.bool_]:
    """Return which of *places* are statements of people or tools said later than *position*, or than that of each."""
    at = layout.columns
    here, there = at.at[position], at.at[places]
    later = np.where(
        np.isnan(here) | np.isnan(there) | (there == here), at.nth[places] > at.nth[position], there > here
    )
    named = at.speaker[places] != layout.speakers.get("", -1)
    return np.asarray(later & ((at.role[places] != ROLES["assistant"]) | named) & (at.question[places] == 0))


def _latest(layout: Layout, position: int, places: Integers, most: int) -> Integers:
    """Return the last *most* of *places* that are `_later` than *position*, in order of arrival."""
    found = places[_later(layout, position, places)] if len(places) else places
    return found[np.argsort(layout.columns.nth[found])][-most:] if len(found) else found


def _next_loose(layout: Layout, position: int, places: Integers) -> int:
    """Return which of the loose corrections at *places* means *position*; -1: none.

    It is the first one behind it, with no other time between, or nothing at all if it has no time.
    """
    at = layout.columns

    def follows(some: Integers | slice) -> NDArray[np.bool_]:
        same = (at.context[some] == at.context[position]) & (at.role[some] != ROLES["assistant"])
        return np.asarray(same & (at.nth[some] > at.nth[position]))

    behind = places[follows(places)] if len(places) else places
    if not len(behind):
        return -1
    first = int(behind[np.argmin(at.nth[behind])])
    between = follows(slice(None)) & (at.timed >= at.timed[position]) & (at.question == 0) & (at.nth < at.nth[first])
    return -1 if between.any() else first
