"""Concepts and relations of pages, as a model reads them.

    "My wife Anna adopted a puppy in Oslo."   ──▶   Mel ──married to──▶ Anna      Anna ──adopted──▶ puppy

A relation weighs as much as there are pages that state it. A model is not asked for weights, so that erasing a page
removes exactly what it stated. This module knows nothing of the graph.
"""

from collections.abc import Sequence
from functools import partial

from ....llm import ChatModel
from ...backend import PageRecord
from ...tiers.graph import PER_PAGE, Relation, name_key
from .page_text import MANY, RULES, WHOLE, Framed, PageKey, framed
from .validation import AnswerSchema, asked, invented, moment, told

NAME_COLUMNS = 60
KIND_COLUMNS = 40


class RelationAnswer(AnswerSchema):
    """A statement, and the page that states it."""

    subject: str
    relation: str
    object: str
    page: int
    date: str | None = None


class RelationsAnswer(AnswerSchema):
    """What is asked of pages."""

    relations: list[RelationAnswer]


PROMPT = f"""\
Read from these pages of a conversation what they state of people, places, things and projects. {RULES}
{{"relations": [{{"subject": "a name", "relation": "a verb or role, at most 3 words", "object": "a name or thing, \
at most 4 words", "page": 1, "date": "YYYY-MM-DD if it is dated, else null"}}]}}
Call the same thing by the same name throughout; a speaker who says I is the "name" of the message, or user. Only \
what is stated, no questions or wishes; at most 10 for each page, the telling ones first. "page" is the page that \
states it. An empty list is fine."""


def related(chat: ChatModel, pages: Sequence[PageRecord]) -> tuple[list[Relation], tuple[PageKey, ...]]:
    """Return what *chat* reads of concepts in *pages*, and the pages that it has read. One call.

    Raises:
        ModelError: If there is no usable answer.
    """
    shown = framed(pages, most=MANY, least=WHOLE)
    return asked(chat, PROMPT, shown.text, RelationsAnswer, partial(_relations, shown), step="concepts"), shown.sent


def _relations(shown: Framed, answer: RelationsAnswer) -> list[Relation]:
    found: dict[tuple[PageKey, str, str, str], Relation] = {}
    counts: dict[PageKey, int] = {}
    for each in answer.relations:
        page = shown.page(each.page)
        source, target = told(each.subject, NAME_COLUMNS), told(each.object, NAME_COLUMNS)
        kind = told(each.relation, KIND_COLUMNS)
        keys = name_key(source), name_key(kind), name_key(target)
        if page is None or not all(keys) or keys[0] == keys[2] or invented(f"{source} {target}", shown.said):
            continue
        counts[page.key] = counts.get(page.key, 0) + 1
        if counts[page.key] <= PER_PAGE:
            when = moment(each.date, page.at)
            relation = Relation(source, kind, target, page.key, page.at if when is None else when)
            found.setdefault((page.key, *keys), relation)
    return list(found.values())
