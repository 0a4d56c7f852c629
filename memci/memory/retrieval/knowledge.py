"""Knowledge lookup: finds facts, concepts and statements for a question.

Facts are found by the words of the question, concepts by the names in it.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from types import MappingProxyType

from ...text.language.dates import date_terms
from ...text.moments import moment
from ...text.sanitize import JOINT, one_line
from ..backend import Concept, Fact, FoundPage, PageKey, Statement, StatementKind
from ..owner import Owner
from ..tiers.events import day_of
from ..tiers.facts import outdates, split_speaker, terms_of, versions
from ..tiers.graph import activate, seeds
from ..tiers.rules import Rules
from .ranking import Query

CONCEPTS = 5
COLUMNS = 320  # of an episode or a day that a search returns: two sentences
SOURCES = 3  # pages that are named with a statement
STATEMENTS = 3  # returned at most, so that they take little room beside the messages
HALF = 0.5  # share of the words of a question that a statement must have
OF_USER = 32  # facts that a question for all of the user gets: more than an answer of the search tool has room for
RELATIONS = 5  # relations that are returned with a concept at most


def find_facts(
    owner: Owner,
    asked: Iterable[str],
    rules: Rules,
    near: Mapping[PageKey, float] = MappingProxyType({}),
    *,
    of_user: bool = False,
) -> list[tuple[int, Fact]]:
    """Return the facts that match the terms *asked*, best first, with their ids; or all *of_user*. O(facts).

    The score is the share of the terms that a fact has, weighted by their rarity among the facts; or that of its page,
    if an embedder found it (*near*). Names of speakers have no weight. If the question names speakers of facts, facts
    of other speakers are left out.
    """
    facts = owner.tiers.facts
    said = {key: tuple(map(terms_of, split_speaker(fact.text))) for key, fact in facts.items()}
    common = Counter(term for _, own in said.values() for term in own)
    words = dict.fromkeys(asked)
    named = words.keys() & frozenset().union(*(speaker for speaker, _ in said.values()))
    weights = {term: math.log(1 + len(facts) / max(1, common[term])) for term in words if term not in named}
    total = sum(weights.values())
    found = []
    for key, each in facts.items():
        speaker, own = said[key]
        score = sum(weight for term, weight in weights.items() if term in own) / total if total else 0.0
        wanted = of_user and each.about == "user"
        score = 1.0 if wanted else max(score, near.get((each.context, each.index), 0.0))
        if score >= rules.fact_score and (wanted or not named or not speaker or named & speaker):
            found.append((round(score, 4), key, each))
    most = max(OF_USER, rules.found_facts) if of_user and rules.found_facts else rules.found_facts
    best = sorted(found, key=lambda one: (-one[0], -(one[2].at or 0.0), one[1]))[:most]
    ids = {id(fact): key for key, fact in facts.items()}
    among = {key: each for _, key, each in best} if of_user else facts
    shown: dict[int, Fact] = {}
    for score, _, each in best:
        every = versions(each, among)
        *before, last = (Fact(v.text, v.about, score, v.context, v.index, v.turn, v.at) for v in every)
        shown.setdefault(ids[id(every[-1])], replace(last, before=tuple(before)))
    return list(shown.items())


def add_overviews(owner: Owner, pages: Sequence[FoundPage], chains: Mapping[PageKey, int | None]) -> list[FoundPage]:
    """Return *pages*, the first one of each chain with the overview of the chain. O(pages)."""
    shown, found = set[int](), []
    for page in pages:
        chain = owner.tiers.chains.get(key := chains.get((page.context, page.index)) or 0)
        new = chain is not None and len(chain.points) > 1 and key not in shown
        found.append(replace(page, overview=str(chain)) if new else page)
        shown.add(key)
    return found


def find_concepts(owner: Owner, query: str) -> Iterator[Concept]:
    """Yield the concepts that *query* activates, the most active first. The size of the graph does not matter."""
    graph = owner.tiers.graph
    for key, activation in activate(graph, seeds(graph, query), limit=CONCEPTS) if len(graph) else ():
        edges = graph.relations(key, RELATIONS)
        told = tuple(f"{graph.name(edge.source)} — {edge.kind} → {graph.name(edge.target)}" for edge in edges)
        yield Concept(graph.name(key), round(activation, 4), told, graph.pages(key))


def find_statements(
    owner: Owner, query: Query, pages: Mapping[PageKey, float | None], zone: tzinfo
) -> list[tuple[int, Statement]]:
    """Return derived texts for *query*, best first, each with the id of its item. O(events + days + chains).

    Those of a model must have half of its terms. Events are only those of *pages*, the pages that the search found,
    with their times. A day that *query* names is returned in any case. Episodes are returned, and days without a text
    of a model, if it asks what a talk was about, or what happened.
    """
    tiers, profile, words = owner.tiers, owner.tiers.profile, set(query.terms)
    found: list[tuple[int, Statement]] = []

    def look(kind: StatementKind, texts: Iterable[str], item: int, date: str = "", least: float = HALF) -> None:
        for text in filter(None, texts):
            score = len(words & terms_of(text)) / max(1, len(words))
            if score >= least:
                found.append((item, Statement(kind, text, round(score, 4), date)))

    for key, each in tiers.events.items():
        if (each.context, each.index) in pages:
            at = each.when if each.when is not None else pages[each.context, each.index]
            look("event", [each.what], key, "" if at is None else day_of(at, zone))
    for date, (key, day) in tiers.days.items():
        if day.felt is not None:
            look("day", [day.summary], key, date, 0.0 if _names(query, date) else HALF)
    for talk in profile.conversations:
        if talk.sentiment is not None:
            look("conversation", [talk.summary, *talk.notable_moments], tiers.profile_id or 0, talk.date)
    look("profile", profile.text.splitlines(), tiers.profile_id or 0)
    look("strategy", [profile.strategy], tiers.profile_id or 0)
    if query.asks_talk or query.form == "summary":
        found += _days(owner, query, zone) if query.dates else _episodes(owner, query, zone)
    best = sorted(found, key=lambda each: -each[1].score)[:STATEMENTS]
    return [(item, _complete(owner, item, each)) for item, each in best]


def _names(query: Query, date: str) -> bool:
    """Return whether *query* names the day *date*, or a span of days that has it."""
    terms, dates = set(date_terms(moment(date))), set(query.dates)
    return bool(dates & terms) if query.spans else bool(dates) and dates <= terms


def _days(owner: Owner, query: Query, zone: tzinfo) -> Iterator[tuple[int, Statement]]:
    """Yield what the talks were about of the days that *query* names, by their overviews."""
    told = {date for date, (_, day) in owner.tiers.days.items() if day.felt is not None}
    for key, chain in owner.tiers.chains.items():
        date = "" if chain.at is None else day_of(chain.at, zone)
        if chain.points and date and date not in told and _names(query, date):
            share = len(set(query.terms) & terms_of(str(chain))) / max(1, len(query.terms))
            yield key, Statement("day", one_line(str(chain), COLUMNS), round(max(HALF, share), 4), date)


def _episodes(owner: Owner, query: Query, zone: tzinfo) -> Iterator[tuple[int, Statement]]:
    """Yield the episodes that have half of those terms of *query* that any has, by their rarity."""
    texts = {key: terms_of(f"{each.summary}\n{' '.join(each.keywords)}") for key, each in owner.tiers.episodes.items()}
    counts = {term: sum(term in own for own in texts.values()) for term in dict.fromkeys(query.terms)}
    weights = {term: math.log(1 + len(texts) / count) for term, count in counts.items() if count}
    total = sum(weights.values())
    for key, own in texts.items() if total else ():
        share = sum(weight for term, weight in weights.items() if term in own) / total
        if share >= HALF:
            each = owner.tiers.episodes[key]
            days = dict.fromkeys(day_of(at, zone) for at in (each.first, each.last) if at is not None)
            text = one_line(JOINT.join(each.summary.splitlines()), COLUMNS)
            yield key, Statement("episode", text, round(share, 4), " to ".join(days))


def _complete(owner: Owner, item: int, statement: Statement) -> Statement:
    """Return *statement* with its pages, and whether a later fact about the user says something else."""
    facts = owner.tiers.facts_about("user").values()
    day = statement.date.rpartition(" ")[2]
    later = (each.text for each in facts if day and each.at is not None and day_of(each.at, UTC) > day)
    outdated = any(outdates(text, statement.text) for text in later)
    return replace(statement, pages=tuple(owner.pages.sources(item, SOURCES)), outdated=outdated)
