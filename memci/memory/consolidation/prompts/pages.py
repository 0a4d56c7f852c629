"""A page as a model describes it: all that is wanted of a page, in one call.

    "Hi! I'd like to move OI5L9G to May 27, since my sister …"      title      "Moving flight OI5L9G to May 27"
    "Done: HAT1 on May 27, $157.50 refunded …"                      lines      one for each message
    before: "Flights to Oslo"                                       continues  True, chain "A trip to Oslo in May …"
                                                                    keywords, events

A message that fits on its line stands as it is, so no line is asked for it; of a longer one, every id and number of the
extractive line is kept. All is made of raw messages, save the chain's summary, which goes on from the one before. This
module knows nothing of jobs, or of where notes are stored.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

from ....llm import ChatModel
from ....messages import Message, call_name, text_of, tool_calls
from ....text.language.keywords import keywords
from ....text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, extract
from ...backend import PageRecord
from ...tiers.events import WHAT_COLUMNS, LifeEvent
from ...tiers.topics import page_text
from .page_text import RULES, Framed, framed
from .validation import WORD_COLUMNS, AnswerSchema, asked, invented, kept, moment, share, told, words

CHAIN_COLUMNS = 200
MOST_KEYWORDS = 10
MOST_EVENTS = 3


@dataclass(frozen=True, slots=True)
class Before:
    """The page before, as it is offered to a model."""

    title: str
    chain: str = ""
    """what its chain is about"""


@dataclass(frozen=True, slots=True)
class PageNote:
    """What a model says of a page, within all bounds."""

    title: str
    lines: tuple[tuple[int, str], ...]
    """(ordinal, line) of every entry"""
    keywords: tuple[str, ...]
    continues: bool | None
    """whether it goes on from the page before; None: none was offered, or the model did not say"""
    chain: str
    """what the chain is about with this page; "" if it does not continue, or nothing usable was said"""
    events: tuple[LifeEvent, ...]
    """what happened, whatever it matters"""

    @property
    def summary(self) -> Summary:
        """The title and the lines."""
        return Summary(self.title, tuple(line for _, line in self.lines))


class LineAnswer(AnswerSchema):
    """A line for an entry."""

    entry: int
    line: str


class EventAnswer(AnswerSchema):
    """Something that happened."""

    what: str
    who: str = ""
    when: str | None = None
    importance: float = 0.0


class PageAnswer(AnswerSchema):
    """What is asked of a page."""

    title: str
    lines: list[LineAnswer]
    keywords: list[str]
    continues: bool | None = None
    chain: str | None = None
    events: list[EventAnswer]


PROMPT = f"""\
You keep the index of a conversation. Describe this page of it. {RULES}
{{"title": "what it is about, at most 10 words",
"lines": [{{"entry": 3, "line": "what that message says or does, at most 20 words"}}],
"keywords": ["at most 8 words or names that it is about"],
"continues": true if it goes on about what "before" tells, false if it begins something else, null without "before",
"chain": "if it continues: what both are about, one sentence; else empty",
"events": [{{"what": "one sentence", "who": "a name, or user", "when": "YYYY-MM-DD or null", "importance": 0.7}}]}}
Write one line for each message that has an "entry" number, none for others. Copy names, ids, numbers, dates and paths \
as they stand. Events: only what happened or is planned and will matter in a month; at most 3, often none. \
Importance is from 0 to 1."""


def describe(chat: ChatModel, page: PageRecord, before: Before | None = None, *, zone: tzinfo = UTC) -> PageNote:
    """Return what *chat* says of *page*. One call.

    Args:
        chat: The model.
        page: With its raw messages.
        before: The page before it, if it has one in its context.
        zone: Of the dates.

    Raises:
        ModelError: If there is no usable answer.
    """
    exact = extract([message for _, message in page.entries], quotations(page))
    lines = dict(zip((ordinal for ordinal, _ in page.entries), exact.lines, strict=True))
    plain = {n for n, message in page.entries if not tool_calls(message) and text_of(message) == lines[n]}
    offered = None if before is None else {"before": {"title": before.title, "chain": before.chain}}
    shown = framed([page], before=offered, zone=zone, numbered=lambda ordinal: ordinal not in plain)

    def usable(answer: PageAnswer) -> None:
        if not told(answer.title, TITLE_COLUMNS):
            raise ValueError("the title says nothing")
        named = {each.entry for each in answer.lines if told(each.line, LINE_COLUMNS)}
        if shown.entries and not named & shown.entries:
            raise ValueError("no line is for an entry of the page")

    answer = asked(chat, PROMPT, shown.text, PageAnswer, step="page", check=usable)
    return _note(answer, page, shown, exact.title, lines, before, zone)


def quotations(page: PageRecord) -> list[tuple[int, int | None] | None]:
    """Return for each entry of *page* the page (and entry) that it quotes, as `extract` takes them."""
    calls = {call.get("id"): call for _, message in page.entries for call in tool_calls(message)}
    return [
        _recalled(calls.get(message.get("tool_call_id"))) if ordinal in page.quotes else None
        for ordinal, message in page.entries
    ]


def _note(
    answer: PageAnswer,
    page: PageRecord,
    shown: Framed,
    title: str,
    lines: dict[int, str],
    before: Before | None,
    zone: tzinfo,
) -> PageNote:
    said = shown.said
    written: dict[int, str] = {}
    for each in answer.lines:
        if each.entry in shown.entries:
            written.setdefault(each.entry, each.line)
    told_lines = tuple((n, kept(written.get(n), line, LINE_COLUMNS, said)) for n, line in lines.items())
    continues = answer.continues if before is not None else None
    chain = told(answer.chain, CHAIN_COLUMNS) if continues else ""
    return PageNote(
        title=kept(answer.title, title, TITLE_COLUMNS, said),
        lines=told_lines,
        keywords=words(answer.keywords, MOST_KEYWORDS, said) or keywords([page_text(page)], limit=MOST_KEYWORDS),
        continues=continues,
        chain="" if invented(chain, said) else chain,
        events=tuple(_events(answer.events, page, said, zone)),
    )


def _events(given: Sequence[EventAnswer], page: PageRecord, said: str, zone: tzinfo) -> list[LifeEvent]:
    found: dict[str, LifeEvent] = {}
    for each in given:
        what = told(each.what, WHAT_COLUMNS)
        if len(found) < MOST_EVENTS and what and not invented(what, said):
            who = told(each.who, WORD_COLUMNS) or "user"
            when = moment(each.when, page.at, zone)
            found.setdefault(what, LifeEvent(what, who, share(each.importance), page.context, page.index, when))
    return list(found.values())


def _recalled(call: Message | None) -> tuple[int, int | None] | None:
    """Return the page (and entry) that *call* asks for; None if it is no recall, or can't be read."""
    try:
        arguments = json.loads(call["function"]["arguments"]) if call and call_name(call) == "recall_page" else {}
        index, entry = arguments["index"], arguments.get("entry")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return (index, entry if type(entry) is int else None) if type(index) is int else None
