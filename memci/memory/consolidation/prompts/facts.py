"""Asks a model for long-term knowledge in pages: traits of the user, facts about both sides, and relations.

    profile  formality: low           pages   1 "Would you kindly …"       2 "I moved to Oslo in May."
    ──▶ Findings   traits  formality: high (page 1)     facts  user: "Moved to Oslo in May." (page 2)     sent  1, 2
    "My wife Anna adopted a puppy in Oslo."   ──▶   Mel ──married to──▶ Anna      Anna ──adopted──▶ puppy

One call asks for traits and facts, where MemoryOS (arXiv 2506.06326) has two. Traits that the answer leaves out stay; a
new trait with a reason and a page replaces the old one of its dimension. The weight of a relation is the number of
pages that state it, never a number of the model, so that erasing a page removes exactly what it stated.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from ....llm import ChatModel
from ...backend import PageKey, PageRecord
from ...tiers.facts import LONGEST, PER_PAGE, About, Known, is_of_others
from ...tiers.graph import PER_PAGE as RELATIONS_PER_PAGE
from ...tiers.graph import Relation, name_key
from ...tiers.profile import Findings, Level, Profile, Trait, unite_traits
from ...tiers.rules import DIMENSIONS
from .page_text import MANY, WHOLE, Framed, frame_pages
from .validation import AnswerSchema, Lowered, ask_checked, clean_line, clean_statement, has_invented_id, parse_day

# limits of texts in an answer: about twice what the prompts ask for
NAME_COLUMNS = 60
KIND_COLUMNS = 40
REASON_COLUMNS = 120
SHOWN = 30  # known facts that a model sees at most: some 600 tokens


class TraitAnswer(AnswerSchema):
    """A trait of the user."""

    dimension: Annotated[str, Lowered]
    level: Annotated[Level, Lowered]
    reason: str
    page: int


class FactAnswer(AnswerSchema):
    """A fact and its page, and the number of the known fact that does not hold any more."""

    fact: str
    page: int
    replaces: int | None = None


class LearnedAnswer(AnswerSchema):
    """The answer about pages."""

    traits: list[TraitAnswer]
    user: list[FactAnswer]
    assistant: list[FactAnswer]


def ask_for_facts(
    chat: ChatModel,
    profile: Profile,
    pages: Sequence[PageRecord],
    facts: Mapping[int, Known] | None = None,
    dimensions: Sequence[str] = DIMENSIONS,
) -> Findings:
    """Return the traits and facts that *chat* finds in as many of *pages* as fit, with those of *profile*. One call.

    It sees the latest of the known *facts*, and says which of them new ones come after.
    """
    known = {each.dimension: each.level for each in profile.traits if each.dimension in dimensions}
    latest = sorted((facts or {}).items(), key=lambda each: each[1].at or 0.0)[-SHOWN:]
    told = {str(key): fact.text for key, fact in latest}
    before = {"dimensions": ", ".join(dimensions), "known": known, **({"facts": told} if told else {})}
    shown = frame_pages(pages, before=before, most=MANY, least=WHOLE)

    def read(answer: LearnedAnswer) -> Findings:
        traits = unite_traits(profile.traits, _traits(answer.traits, shown, dimensions))
        found = (*_facts(answer.user, "user", shown, dict(latest)), *_facts(answer.assistant, "assistant", shown))
        return Findings(traits, found, shown.sent, dict(latest))

    return ask_checked(chat, shown.text, LearnedAnswer, read, step="analysis", most=800 + 400 * len(shown.pages))


def _traits(given: Sequence[TraitAnswer], shown: Framed, dimensions: Sequence[str]) -> list[Trait]:
    found: dict[str, Trait] = {}
    for each in given:
        page, reason = shown.page(each.page), clean_statement(each.reason, REASON_COLUMNS, shown.said)
        known = page is not None and reason and each.dimension in dimensions
        if page is not None and known and not is_of_others(reason, page.own):
            found.setdefault(each.dimension, Trait(each.dimension, each.level, reason, page.context, page.index))
    return list(found.values())


def _facts(
    given: Sequence[FactAnswer], about: About, shown: Framed, known: Mapping[int, Known] | None = None
) -> list[Known]:
    found: dict[PageKey, dict[str, Known]] = {}
    for each in given:
        page, text = shown.page(each.page), clean_statement(each.fact, LONGEST, shown.said)
        if page is not None and text and not (about == "user" and is_of_others(text, page.own)):
            old = (known or {}).get(each.replaces or 0)
            after = () if old is None or (old.at or 0.0) >= (page.at or 0.0) else (each.replaces or 0,)
            fact = Known(text, about, page.context, page.index, page.turn, page.at, after=after)
            found.setdefault(page.key, {}).setdefault(text.casefold(), fact)
    return [fact for own in found.values() for fact in [*own.values()][:PER_PAGE]]


class RelationAnswer(AnswerSchema):
    """A relation and its page."""

    subject: str
    relation: str
    object: str
    page: int
    date: str | None = None


class RelationsAnswer(AnswerSchema):
    """The answer about pages."""

    relations: list[RelationAnswer]


def ask_for_relations(chat: ChatModel, pages: Sequence[PageRecord]) -> tuple[list[Relation], tuple[PageKey, ...]]:
    """Return the relations that *chat* finds in *pages*, and the pages that were sent. One call."""
    shown = frame_pages(pages, most=MANY, least=WHOLE)
    read, most = partial(_relations, shown), 200 + 600 * len(shown.pages)
    found = ask_checked(chat, shown.text, RelationsAnswer, read, step="concepts", most=most)
    return found, shown.sent


def _relations(shown: Framed, answer: RelationsAnswer) -> list[Relation]:
    found: dict[PageKey, dict[tuple[str, ...], Relation]] = {}
    for each in answer.relations:
        page = shown.page(each.page)
        source, target = clean_line(each.subject, NAME_COLUMNS), clean_line(each.object, NAME_COLUMNS)
        kind = clean_line(each.relation, KIND_COLUMNS)
        keys = name_key(source), name_key(kind), name_key(target)
        if page is None or not all(keys) or keys[0] == keys[2] or has_invented_id(f"{source} {target}", shown.said):
            continue
        when = parse_day(each.date, page.at)
        relation = Relation(source, kind, target, page.key, page.at if when is None else when)
        found.setdefault(page.key, {}).setdefault(keys, relation)
    return [relation for own in found.values() for relation in [*own.values()][:RELATIONS_PER_PAGE]]
