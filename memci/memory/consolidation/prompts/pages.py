"""Asks a model to describe a page: title, lines, keywords and events in one call.

    "Hi! I'd like to move OI5L9G to May 27, since my sister …"      title      "Moving flight OI5L9G to May 27"
    "Done: HAT1 on May 27, $157.50 refunded …"                      lines      one for each message
                                                                    keywords, events

A message that fits on its line is kept as it is, so the model need not write one. A model's line keeps every id and
number of the extracted line.
"""

import json
from collections.abc import Sequence
from datetime import UTC, tzinfo

from ....llm import ChatModel
from ....messages import Message, call_name, text_of, tool_calls
from ....text.language.keywords import keywords
from ....text.summarize import LINE_COLUMNS, TITLE_COLUMNS, extract
from ...backend import PageRecord
from ...tiers.events import WHAT_COLUMNS, LifeEvent
from ...tiers.notes import Note
from ...tiers.topics import page_text
from .page_text import frame_pages
from .validation import (
    WORD_COLUMNS,
    AnswerSchema,
    ask_checked,
    clean_keywords,
    clean_line,
    clean_statement,
    keep_identifiers,
    parse_day,
)

# limits of an answer: the prompt asks for at most eight keywords and three events
MOST_KEYWORDS = 10
MOST_EVENTS = 3


class LineAnswer(AnswerSchema):
    """A line for a message."""

    entry: int
    line: str


class EventAnswer(AnswerSchema):
    """An event."""

    what: str
    who: str = ""
    when: str | None = None
    importance: float = 0.0


class PageAnswer(AnswerSchema):
    """The answer about a page."""

    title: str
    lines: list[LineAnswer]
    keywords: list[str]
    events: list[EventAnswer]


def describe(chat: ChatModel, page: PageRecord, *, zone: tzinfo = UTC) -> Note:
    """Return a note of *page* by *chat*, checked and within its limits. One call."""
    exact = extract([message for _, message in page.entries], quoted_pages(page))
    lines = dict(zip((ordinal for ordinal, _ in page.entries), exact.lines, strict=True))
    numbered = {n for n, message in page.entries if tool_calls(message) or text_of(message) != lines[n]}
    shown = frame_pages([page], zone=zone, numbered=numbered)

    def read(answer: PageAnswer) -> Note:
        if not clean_line(answer.title, TITLE_COLUMNS):
            raise ValueError("the title says nothing")
        named = {each.entry for each in answer.lines if clean_line(each.line, LINE_COLUMNS)}
        if shown.entries and not named & shown.entries:
            raise ValueError("no line is for an entry of the page")
        written = {each.entry: each.line for each in reversed(answer.lines) if each.entry in shown.entries}
        return Note(
            keep_identifiers(answer.title, exact.title, TITLE_COLUMNS, shown.said),
            tuple(keep_identifiers(written.get(n), line, LINE_COLUMNS, shown.said) for n, line in lines.items()),
            clean_keywords(answer.keywords, MOST_KEYWORDS, shown.said)
            or keywords([page_text(page)], limit=MOST_KEYWORDS),
            tuple(_events(answer.events, page, shown.said, zone)),
        )

    return ask_checked(chat, shown.text, PageAnswer, read, step="page", most=600 + 100 * len(shown.entries))


def quoted_pages(page: PageRecord) -> list[tuple[int, int | None] | None]:
    """Return for each message of *page* the page (and entry) that it quotes, as `extract` takes them."""
    calls = {call.get("id"): call for _, message in page.entries for call in tool_calls(message)}
    return [
        _recalled_page(calls.get(message.get("tool_call_id"))) if ordinal in page.quotes else None
        for ordinal, message in page.entries
    ]


def _events(given: Sequence[EventAnswer], page: PageRecord, said: str, zone: tzinfo) -> list[LifeEvent]:
    found: dict[str, LifeEvent] = {}
    for each in given:
        what = clean_statement(each.what, WHAT_COLUMNS, said)
        if len(found) < MOST_EVENTS and what:
            who = clean_line(each.who, WORD_COLUMNS) or "user"
            when = parse_day(each.when, page.at, page.zone(zone))
            importance = min(1.0, max(0.0, each.importance))
            found.setdefault(what, LifeEvent(what, who, importance, page.context, page.index, when))
    return list(found.values())


def _recalled_page(call: Message | None) -> tuple[int, int | None] | None:
    """Return the page (and entry) that *call* recalls; None if it is no recall, or can't be read."""
    try:
        arguments = json.loads(call["function"]["arguments"]) if call and call_name(call) == "recall_page" else {}
        index, entry = arguments["index"], arguments.get("entry")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (index, entry if type(entry) is int else None) if type(index) is int else None
