"""The steps of the memory under a model that says anything: a value within all bounds, or a `ModelError`."""

import json
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from memci.errors import AnswerRejected, ModelError
from memci.llm import ChatModel, Reply
from memci.memory.backend import PageRecord
from memci.memory.consolidation.prompts.days import (
    SUMMARY_COLUMNS,
    ConversationAnswer,
    DayAnswer,
    ask_for_conversation,
    ask_for_day,
)
from memci.memory.consolidation.prompts.episodes import ThemesAnswer, ask_for_themes
from memci.memory.consolidation.prompts.facts import (
    KIND_COLUMNS,
    NAME_COLUMNS,
    REASON_COLUMNS,
    LearnedAnswer,
    RelationsAnswer,
    ask_for_facts,
    ask_for_relations,
)
from memci.memory.consolidation.prompts.pages import MOST_EVENTS, PageAnswer, describe
from memci.memory.consolidation.prompts.strategy import (
    MOST_TAGS,
    STRATEGY_COLUMNS,
    TAG_COLUMNS,
    StrategyAnswer,
    ask_for_strategy,
)
from memci.memory.tiers.events import WHAT_COLUMNS, ConversationSummary, DailySummary, LifeEvent
from memci.memory.tiers.facts import LONGEST, PER_PAGE
from memci.memory.tiers.graph import PER_PAGE as RELATIONS_PER_PAGE
from memci.memory.tiers.notes import Note
from memci.memory.tiers.profile import Findings, Profile, Trait, describe_traits
from memci.memory.tiers.rules import DIMENSIONS
from memci.memory.tiers.topics import CONTENT_LINES, MOST_KEYWORDS, THEME_COLUMNS, PageFeatures
from memci.text.sanitize import width
from memci.text.summarize import LINE_COLUMNS, TITLE_COLUMNS, extract, one_line
from tests.hostile_answers import PROSE, HostileChat, bad_answers

COUNT = 150
"""answers for each step: 1,050 in all"""

LONG = (
    "I'd like to move OI5L9G to May 27 since my sister Anna gets married that weekend in Oslo, and if there is any "
    "refund, please send $157.50 of it to mia.li@example.com; the papers are in /srv/papers/oslo.pdf, thank you!"
)
CHINESE = (
    "我想把去奥斯陆的机票改到五月二十七日，因为我姐姐安娜那个周末结婚，订单号是OI5L9G，如果有退款请退157.50美元到原来的卡上，"
    "另外行李还是两件，座位要靠窗的，最好在前面几排，谢谢您的帮助，麻烦了，我会等您的回复，越快越好。"
)
PAGES = tuple(
    PageRecord(
        "alice", index, index, ((1, {"role": "user", "content": said}), (2, {"role": "assistant", "content": to}))
    )
    for index, (said, to) in enumerate(
        [
            (LONG, "Done: OI5L9G is on May 27, flight HAT1. " * 6),
            (CHINESE, "好的，已经改签成功。"),
            ("My dog is ill.", "Sorry!"),
        ],
        1,
    )
)
PROFILE = Profile("formality: low — lol (#1)", (Trait("formality", "low", "lol", "alice", 1),), version=1)
BATCH = tuple(
    PageFeatures(f"text {n} of Oslo", f"Title {n}", ("oslo", f"word{n}"), np.eye(3, dtype=np.float32)[n])
    for n in range(3)
)


@dataclass(frozen=True)
class Step:
    """A step, what it asks for, and what must be true of what it gives."""

    name: str
    answer: type[BaseModel]
    run: Callable[[ChatModel], Any]
    check: Callable[[Any], None]


def line(text: str, columns: int) -> None:
    """Check that *text* is one harmless line that says something."""
    assert text
    assert width(text) <= columns
    assert one_line(text, columns) == text


def note(made: Note) -> None:
    """Check a page's note."""
    exact = extract([message for _, message in PAGES[0].entries])
    line(made.title, TITLE_COLUMNS)
    assert "OI5L9G" in made.title or "OI5L9G" not in exact.title
    for text, before in zip(made.lines, exact.lines, strict=True):
        line(text, LINE_COLUMNS)
        for kept in ("OI5L9G", "$157.50", "mia.li@example.com", "/srv/papers/oslo.pdf", "HAT1"):
            assert kept in text or kept not in before
        assert "ZZ99XX" not in text
    assert 1 <= len(made.keywords) <= MOST_KEYWORDS
    assert len(made.events) <= MOST_EVENTS
    for event in made.events:
        events(event)
    assert made.summary.title == made.title


def events(event: LifeEvent) -> None:
    """Check an event."""
    line(event.what, WHAT_COLUMNS)
    line(event.who, 40)
    assert 0 <= event.importance <= 1
    assert (event.context, event.index) == ("alice", 1)
    assert event.when is None or abs(event.when) < 1e10


def divided(made: Any) -> None:
    """Check topics."""
    assert 1 <= len(made) <= 2
    assert sorted(at for topic in made for at in topic.pages) == [0, 1, 2]
    for topic in made:
        line(topic.theme, THEME_COLUMNS)
        assert 1 <= len(topic.keywords) <= MOST_KEYWORDS
        lines = topic.content.splitlines()
        assert 1 <= len(lines) <= CONTENT_LINES
        for each in lines:
            line(each, 100)


def lasting(made: Findings) -> None:
    """Check what was learned."""
    keys = {page.key for page in PAGES}
    assert set(made.sent) <= keys
    assert {each.dimension for each in made.traits} <= set(DIMENSIONS)
    assert "formality" in {each.dimension for each in made.traits}
    assert len({each.dimension for each in made.traits}) == len(made.traits)
    for trait in made.traits:
        line(trait.reason, REASON_COLUMNS)
        assert trait.level in {"high", "medium", "low"}
        assert (trait.context, trait.index) in keys
    assert len(made.facts) <= 2 * PER_PAGE * len(keys)
    for fact in made.facts:
        line(fact.text, LONGEST)
        assert "ZZ99XX" not in fact.text
        assert set(fact.pages) <= keys
    new = PROFILE.replaced(describe_traits(made.traits), made.traits, now=1.0)
    assert len(new.traits) >= len(PROFILE.traits)
    assert new.text


def stated(made: Any) -> None:
    """Check relations."""
    found, sent = made
    assert set(sent) <= {page.key for page in PAGES}
    assert len(found) <= RELATIONS_PER_PAGE * len(PAGES)
    for relation in found:
        assert relation.page in sent
        line(relation.source, NAME_COLUMNS)
        line(relation.target, NAME_COLUMNS)
        line(relation.kind, KIND_COLUMNS)
        assert relation.at is None or abs(relation.at) < 1e10


def dated(made: Any) -> None:
    """Check a day."""
    line(made.summary, SUMMARY_COLUMNS)
    assert made.felt in {"positive", "negative", "mixed", "neutral"}
    assert (made.date, made.conversations, made.messages) == ("2024-05-04", 3, 6)


def ended(made: Any) -> None:
    """Check a conversation."""
    line(made.summary, SUMMARY_COLUMNS)
    assert made.sentiment in {"positive", "negative", "mixed", "neutral"}
    assert len(made.key_topics) <= 5
    assert len(made.notable_moments) <= 3
    for moment in made.notable_moments:
        line(moment, WHAT_COLUMNS)


def manner(made: Any) -> None:
    """Check a strategy."""
    strategy, tags = made
    line(strategy, STRATEGY_COLUMNS)
    assert "evil.example" not in strategy
    assert len(tags) <= MOST_TAGS
    for tag in tags:
        line(tag, TAG_COLUMNS)


DAY = DailySummary("2024-05-04", "agent", "oslo, flight", (), 3, 6, ("user",))
STEPS = (
    Step("page", PageAnswer, lambda chat: describe(chat, PAGES[0]), note),
    Step("topics", ThemesAnswer, lambda chat: ask_for_themes(chat, BATCH), divided),
    Step("analysis", LearnedAnswer, lambda chat: ask_for_facts(chat, PROFILE, PAGES), lasting),
    Step("concepts", RelationsAnswer, lambda chat: ask_for_relations(chat, PAGES), stated),
    Step("day", DayAnswer, lambda chat: ask_for_day(chat, DAY, PAGES), dated),
    Step(
        "conversation",
        ConversationAnswer,
        lambda chat: ask_for_conversation(chat, ConversationSummary("2024-05-04"), PAGES),
        ended,
    ),
    Step("strategy", StrategyAnswer, lambda chat: ask_for_strategy(chat, [m for _, m in PAGES[0].entries]), manner),
)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step_stays_within_its_bounds_when_a_model_says_anything(step: Step) -> None:
    """Whatever a model says, a step gives a value within all bounds or raises a ModelError, and gives some of both."""
    outcomes = {"kept": 0, "rejected": 0}
    rejections: list[str] = []

    for text in bad_answers(step.answer, seed=11, count=COUNT):
        try:
            made = step.run(lambda *_, text=text, **__: Reply({"role": "assistant", "content": text}))
        except ModelError as error:
            rejections.append(str(error))
            outcomes["rejected"] += 1
        else:
            step.check(made)
            outcomes["kept"] += 1

    assert outcomes["rejected"] >= len(PROSE)
    assert outcomes["kept"] >= 10
    assert max(map(len, rejections)) <= 300, "an error carries no text of the model"
    assert not any("evil" in each or "forged" in each for each in rejections)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step_asks_twice_more_when_answers_are_unusable(step: Step) -> None:
    """A step that gets nothing usable asks three times in all, tells of each rejection, and gives up."""
    chat = HostileChat(seed=3, count=3)

    with pytest.raises(AnswerRejected):
        step.run(chat)

    assert chat.said == {step.name: 3}


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step_asks_for_a_bounded_answer(step: Step) -> None:
    """A step says how long its answer may be: a model that rambles costs the time of that, not of a time-out."""
    bounds: list[int] = []

    with pytest.raises(AnswerRejected):
        step.run(lambda *_, max_tokens, **__: bounds.append(max_tokens) or Reply({"content": "{}"}))

    assert len(bounds) == 3
    assert all(200 < each < 4_000 for each in bounds)


def filled(schema: dict[str, Any], part: Any, text: str) -> Any:
    """Return a value of a type whose texts are all *text*."""
    if "$ref" in part:
        return filled(schema, schema["$defs"][part["$ref"].rpartition("/")[2]], text)
    if "anyOf" in part:
        return filled(schema, part["anyOf"][0], text)
    if "enum" in part:
        return part["enum"][0]
    if part["type"] == "object":
        return {name: filled(schema, each, text) for name, each in part["properties"].items()}
    return [filled(schema, part["items"], text)] if part["type"] == "array" else {"string": text}.get(part["type"], 1)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
def test_step_when_the_model_repeats_the_prompt(step: Step) -> None:
    """No placeholder of a step's prompt lands: as it is, in part, in capitals, or with more around it."""
    seen: list[str] = []
    with pytest.raises(AnswerRejected):
        step.run(lambda messages, **_: seen.append(str(messages[0]["content"])) or Reply({"content": "{}"}))
    schema = step.answer.model_json_schema()
    placeholders = [each for each in re.findall('"([^"]*)"', seen[0]) if " " in each]

    for placeholder in placeholders:
        long = len(placeholder.split()) > 3
        head = " ".join(placeholder.split()[:4])
        more = (f"Oslo: {placeholder}", f"{placeholder}, and Oslo", f"Oslo, {head} of Anna") if long else ()
        parts = [each.strip() for each in placeholder.split(",") if " " in each.strip()]
        for text in (placeholder, placeholder.upper(), f"*{placeholder}*.", *more, *parts):
            given = Reply({"content": json.dumps(filled(schema, schema, text))})
            with suppress(AnswerRejected):
                made = str(step.run(lambda *_, given=given, **__: given))
                assert text.casefold().strip("*.") not in made.casefold()
    assert placeholders


def test_page_when_one_text_repeats_the_prompt(says: Callable[[object], ChatModel]) -> None:
    """The other texts of an answer are kept; five words of the prompt that the user wrote are the user's."""
    words = "keep the index of a conversation"
    entries = tuple((n, {"role": "user", "content": f"How do I {words}? {LONG}"}) for n in (1, 2))
    page = PageRecord("alice", 1, 1, entries)
    answer = {
        "title": f"How to {words}",
        "lines": [{"entry": 1, "line": "what that message says or does"}, {"entry": 2, "line": "A flight moves"}],
        "keywords": ["index", "at most 8 words or names"],
        "events": [{"what": "one sentence"}],
    }

    made = describe(says(answer), page)

    assert made.title.startswith(f"How to {words}")
    assert made.lines[0] == extract([message for _, message in page.entries]).lines[0]
    assert made.lines[1].startswith("A flight moves")
    assert (made.keywords, made.events) == (("index",), ())


def test_bad_answers_are_the_same_for_a_seed_and_distinct() -> None:
    """The answers of a seed are always the same ones, none twice; another seed gives others."""
    one = list(bad_answers(PageAnswer, seed=1, count=100))

    again, other = list(bad_answers(PageAnswer, seed=1, count=100)), list(bad_answers(PageAnswer, seed=2, count=100))

    assert one == again
    assert len(set(one)) == 100
    assert len(set(one) & set(other)) < 40
