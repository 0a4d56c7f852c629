"""What lasts of pages, as a model reads them: traits of the user, facts about the user and about the assistant.

    profile  formality: low           pages   1 "Would you kindly …"       2 "I moved to Oslo in May."
    ──▶ Learned   traits  formality: high (page 1)     facts  user: "Moved to Oslo in May." (page 2)     sent  1, 2

One call for all three, where MemoryOS (arXiv 2506.06326) has two. What the answer leaves out stays; a trait that is
told again, with a reason and a page that shows it, takes the place of the old one. This module knows nothing of heat.
"""

from collections.abc import Sequence
from typing import Annotated

from ....llm import ChatModel
from ...backend import PageRecord
from ...tiers.facts import LONGEST, PER_PAGE, About, Known
from ...tiers.profile import DIMENSIONS, Learned, Level, Profile, Trait, described, united
from .page_text import MANY, RULES, WHOLE, Framed, PageKey, framed
from .validation import AnswerSchema, Lowered, asked, stated

REASON_COLUMNS = 120


class TraitAnswer(AnswerSchema):
    """The user in one dimension."""

    dimension: Annotated[str, Lowered]
    level: Annotated[Level, Lowered]
    reason: str
    page: int


class FactAnswer(AnswerSchema):
    """A fact, and the page that states it."""

    fact: str
    page: int


class LearnedAnswer(AnswerSchema):
    """What is asked of pages."""

    traits: list[TraitAnswer]
    user: list[FactAnswer]
    assistant: list[FactAnswer]


PROMPT = f"""\
Learn from these pages of a conversation what stays true of its user. {RULES}
{{"traits": [{{"dimension": "one of those that are listed first", "level": "high, medium or low", \
"reason": "what shows it, at most 12 words", "page": 1}}],
"user": [{{"fact": "what the user is, has, likes, does or plans, one sentence with the name if known", "page": 1}}],
"assistant": [{{"fact": "what the assistant did, promised or advised, one sentence", "page": 2}}]}}
Only traits that the pages clearly show and that differ from "known"; only facts that will still matter in a month; \
empty lists are fine. "page" is the page that shows it. Copy names, ids, numbers and dates as they stand; for \
"yesterday" or "next week" write the date."""


def learned(chat: ChatModel, profile: Profile, pages: Sequence[PageRecord]) -> Learned:
    """Return what *chat* learns from as many of *pages* as fit, beside what *profile* knows. One call.

    Raises:
        ModelError: If there is no usable answer.
    """
    known = {each.dimension: each.level for each in profile.traits if each.dimension in DIMENSIONS}
    before = {"dimensions": ", ".join(DIMENSIONS), "known": known}
    shown = framed(pages, before=before, most=MANY, least=WHOLE)

    def read(answer: LearnedAnswer) -> Learned:
        traits = united(profile.traits, _traits(answer.traits, shown))
        facts = (*_facts(answer.user, "user", shown), *_facts(answer.assistant, "assistant", shown))
        return Learned(described(traits), traits, facts, shown.sent)

    return asked(chat, PROMPT, shown.text, LearnedAnswer, read, step="analysis")


def _traits(given: Sequence[TraitAnswer], shown: Framed) -> list[Trait]:
    found: dict[str, Trait] = {}
    for each in given:
        page, reason = shown.page(each.page), stated(each.reason, REASON_COLUMNS, shown.said)
        if page is not None and reason and each.dimension in DIMENSIONS:
            found.setdefault(each.dimension, Trait(each.dimension, each.level, reason, page.context, page.index))
    return list(found.values())


def _facts(given: Sequence[FactAnswer], about: About, shown: Framed) -> list[Known]:
    found: dict[tuple[PageKey, str], Known] = {}
    counts: dict[PageKey, int] = {}
    for each in given:
        page, text = shown.page(each.page), stated(each.fact, LONGEST, shown.said)
        if page is None or not text or (page.key, text.casefold()) in found:
            continue
        counts[page.key] = counts.get(page.key, 0) + 1
        if counts[page.key] <= PER_PAGE:
            fact = Known(text, about, page.context, page.index, page.turn, page.at, (page.key,))
            found[page.key, text.casefold()] = fact
    return list(found.values())
