"""Knowledge lookup: finds facts, concepts and statements for a question.

Facts are found by the words of the question, concepts by the names in it.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import tzinfo

from ...text.language.dates import date_terms
from ...text.moments import moment
from ..backend import Concept, Fact, PageKey, Statement, StatementKind
from ..owner import Owner
from ..tiers.events import day_of
from ..tiers.facts import terms_of, versions
from ..tiers.graph import activate, seeds
from .ranking import Query

FACTS = 3  # facts that are returned at most, so that messages have the room (the code of the paper: 20 of each kind)
LEAST = 0.5
"""score from which a fact is returned: half of these are relevant; of those between 0.01 (the paper) and 0.25, 3 %"""
CONCEPTS = 5
STATEMENTS = 3  # returned at most, so that they take little room beside the messages
HALF = 0.5  # share of the words of a question that a statement must have
RELATIONS = 5  # relations that are returned with a concept at most


def find_facts(owner: Owner, asked: Iterable[str], limit: int = FACTS) -> list[tuple[int, Fact]]:
    """Return the facts that match the terms *asked*, best first, with their ids. O(facts).

    The score is the share of the terms that a fact has, weighted by their rarity among the facts. Names of speakers
    have no weight. If the question names speakers of facts, facts of other speakers are left out.
    """
    facts = owner.tiers.user.facts | owner.tiers.assistant.facts
    said = {key: _split_speaker(fact.text) for key, fact in facts.items()}
    common = Counter(term for _, own in said.values() for term in own)
    words = dict.fromkeys(asked)
    named = words.keys() & frozenset().union(*(speaker for speaker, _ in said.values()))
    weights = {term: math.log(1 + len(facts) / max(1, common[term])) for term in words if term not in named}
    total = sum(weights.values())
    found = []
    for key, each in facts.items():
        speaker, own = said[key]
        score = sum(weight for term, weight in weights.items() if term in own) / total if total else 0.0
        if score >= LEAST and (not named or not speaker or named & speaker):
            found.append((round(score, 4), key, each))
    best = sorted(found, key=lambda one: (-one[0], -(one[2].at or 0.0), one[1]))[:limit]
    ids = {id(fact): key for key, fact in facts.items()}
    shown: dict[int, Fact] = {}
    for score, _, each in best:
        every = versions(each, facts)
        *before, last = (Fact(v.text, v.about, score, v.context, v.index, v.turn, v.at) for v in every)
        shown.setdefault(ids[id(every[-1])], replace(last, before=tuple(before)))
    return list(shown.items())


def find_concepts(owner: Owner, query: str, limit: int = CONCEPTS) -> Iterator[Concept]:
    """Yield the concepts that *query* activates, the most active first. The size of the graph does not matter."""
    graph = owner.tiers.graph
    for key, activation in activate(graph, seeds(graph, query), limit=limit) if len(graph) else ():
        edges = graph.relations(key, RELATIONS)
        told = tuple(f"{graph.name(edge.source)} — {edge.kind} → {graph.name(edge.target)}" for edge in edges)
        yield Concept(graph.name(key), round(activation, 4), told, graph.pages(key))


def find_statements(owner: Owner, query: Query, pages: Mapping[PageKey, float | None], zone: tzinfo) -> list[Statement]:
    """Return texts of a model that have half of the terms of *query*, best first. O(events + days).

    Events are only those of *pages*, the pages that the search found, with their times. A day that *query* names is
    returned in any case.
    """
    tiers, profile, words = owner.tiers, owner.tiers.profile, set(query.terms)
    dates = set(query.dates)
    found: list[Statement] = []

    def look(kind: StatementKind, texts: Iterable[str], date: str = "", least: float = HALF) -> None:
        for text in filter(None, texts):
            score = len(words & terms_of(text)) / max(1, len(words))
            if score >= least:
                found.append(Statement(kind, text, round(score, 4), date))

    for each in tiers.events.values():
        if (each.context, each.index) in pages:
            at = each.when if each.when is not None else pages[each.context, each.index]
            look("event", [each.what], "" if at is None else day_of(at, zone))
    for date, (_, day) in tiers.days.items():
        if day.felt is not None:
            named = dates and dates.issubset(date_terms(moment(date)))
            look("day", [day.summary], date, 0.0 if named else HALF)
    for talk in profile.conversations:
        if talk.sentiment is not None:
            look("conversation", [talk.summary, *talk.notable_moments], talk.date)
    look("profile", profile.text.splitlines())
    look("strategy", [profile.strategy])
    return sorted(found, key=lambda each: -each.score)[:STATEMENTS]


def _split_speaker(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of the speaker of a fact ("Mel: I play."), if there is one, and those of the rest."""
    speaker = _SPEAKER.match(text)
    return (terms_of(speaker[1]), terms_of(text[speaker.end() :])) if speaker else (frozenset(), terms_of(text))


_SPEAKER = re.compile(r"([^:.!?]{1,40}): ")
