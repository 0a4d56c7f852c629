"""Asks a model to summarize days and conversations in a sentence or two.

A model never changes counts, dates and key events.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Annotated

from ....llm import ChatModel
from ...backend import PageRecord
from ...tiers.events import WHAT_COLUMNS, ConversationSummary, DailySummary, Mood
from .page_text import Framed, frame_pages
from .validation import AnswerSchema, Lowered, ask_checked, clean_keywords, clean_statement

# limits of a summary, as the prompts ask for: two sentences, five topics, three moments
SUMMARY_COLUMNS = 320
MOST_TOPICS = 5
MOST_MOMENTS = 3


class DayAnswer(AnswerSchema):
    """The answer about a day."""

    summary: str
    mood: Annotated[Mood, Lowered]


class ConversationAnswer(AnswerSchema):
    """The answer about a conversation."""

    summary: str
    topics: list[str]
    sentiment: Annotated[Mood, Lowered]
    moments: list[str]


def ask_for_day(chat: ChatModel, summary: DailySummary, pages: Sequence[PageRecord]) -> DailySummary:
    """Return *summary* with a text and a mood that *chat* gives for the *pages* of that day. One call."""
    shown = frame_pages(pages)

    def read(answer: DayAnswer) -> DailySummary:
        return replace(summary, summary=_summary(answer.summary, shown), felt=answer.mood)

    return ask_checked(chat, shown.text, DayAnswer, read, step="day", most=300)


def ask_for_conversation(
    chat: ChatModel, summary: ConversationSummary, pages: Sequence[PageRecord], zone: tzinfo = UTC
) -> ConversationSummary:
    """Return *summary* with the texts that *chat* gives for the *pages* of the conversation. One call."""
    shown = frame_pages(pages, zone=zone)

    def read(answer: ConversationAnswer) -> ConversationSummary:
        moments = dict.fromkeys(clean_statement(each, WHAT_COLUMNS, shown.said) for each in answer.moments[:100])
        return replace(
            summary,
            summary=_summary(answer.summary, shown),
            key_topics=clean_keywords(answer.topics, MOST_TOPICS, shown.said),
            sentiment=answer.sentiment,
            notable_moments=tuple(filter(None, moments))[:MOST_MOMENTS],
        )

    return ask_checked(chat, shown.text, ConversationAnswer, read, step="conversation", most=600)


def _summary(text: str, shown: Framed) -> str:
    line = clean_statement(text, SUMMARY_COLUMNS, shown.said)
    if not line:
        raise ValueError("the summary says nothing, or has ids that are not in the texts")
    return line
