"""Events, and short summaries of days and conversations.

    a model  ──▶  LifeEvent("Mel got married.", "Mel", 0.7, …, 2024-05-04)      above 0.5: kept
    5 pages  ──▶  DailySummary(2024-05-04, …, key events, 5 conversations, 10 messages, users, mood)
    the end  ──▶  ConversationSummary(date, summary, key topics, sentiment, notable moments)

Days are those of a given time zone. Only a model finds events: patterns for them made no answer better.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Literal

from ...messages import text_of
from ...text.language.terms import terms
from ...text.sanitize import JOINT
from ...text.summarize import titled
from ..backend import PageRecord

KEY_EVENTS = 8
MOST_USERS = 100
WHAT_COLUMNS = 240  # bounds that keep a day small: a few KB
SHOWN, TELLING = 4, 2
"""titles in the summary of a conversation at most, and different terms that such a title must have"""

Mood = Literal["positive", "negative", "mixed", "neutral"]


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """An event in the words of a model; *importance* is from 0 to 1, *when* in seconds since 1970 UTC."""

    what: str
    who: str  # a name, or "user"
    importance: float
    context: str
    index: int
    when: float | None = None


@dataclass(frozen=True, slots=True)
class DailySummary:
    """A day (2024-05-04) of one agent, with the summary of a model in one line ("": none yet)."""

    date: str
    agent: str = ""
    summary: str = ""
    key_events: tuple[LifeEvent, ...] = ()  # the most important events, in the order of their pages
    conversations: int = 0  # number of pages: a question and its answer
    messages: int = 0
    users: tuple[str, ...] = ()  # names of speakers, at most `MOST_USERS`
    felt: Mood | None = None  # the mood of the pages so far, by a model; None: unknown

    def updated(self, pages: Sequence[PageRecord], found: Sequence[LifeEvent]) -> "DailySummary":
        """Return the day with more *pages* and the events *found* in them. O(characters of pages)."""
        said = (each for page in pages for each in page.own if text_of(each).strip())
        spoken = [each for each in said if each.get("role") in {"user", "assistant"}]
        names = [str(message.get("name") or "user") for message in spoken if message["role"] == "user"]
        return replace(
            self.with_events(found),
            conversations=self.conversations + len(pages),
            messages=self.messages + len(spoken),
            users=tuple(dict.fromkeys((*self.users, *names)))[:MOST_USERS],
            felt=None,
        )

    def with_events(self, found: Sequence[LifeEvent]) -> "DailySummary":
        """Return the day with the events *found*, of which the most important ones stay."""
        told = list(dict.fromkeys((*self.key_events, *found)))
        best = sorted(told, key=lambda event: -event.importance)[:KEY_EVENTS]
        return replace(self, key_events=tuple(event for event in told if event in best))


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation that is over."""

    date: str  # its last day, such as 2024-05-04; "" if unknown
    summary: str = ""
    key_topics: tuple[str, ...] = ()
    sentiment: Mood | None = None  # by a model; None: unknown
    notable_moments: tuple[str, ...] = ()
    talk: int = 0  # ids of its first and of its last page
    last: int = 0


def conversation(pages: Sequence[PageRecord], zone: tzinfo = UTC) -> ConversationSummary:
    """Summarize a conversation by the titles with most different terms. O(characters)."""
    said = [[message for _, message in page.entries] for page in pages if page.entries]
    titles = dict.fromkeys(titled([each])[0].text for each in said)
    told = [(len(frozenset(terms(title))), title) for title in titles]
    # among equal titles, the first, then the latest
    ranks = sorted(range(len(told)), key=lambda place: (-told[place][0], place > 0, -place))
    shown = sorted(place for place in ranks[:SHOWN] if told[place][0] >= TELLING)
    times = [page.at for page in pages if page.at is not None]
    date = day_of(max(times), zone) if times else ""
    return ConversationSummary(date, JOINT.join(told[place][1] for place in shown))


def day_of(at: float, zone: tzinfo = UTC) -> str:
    """Return the day of a time in *zone*, such as 2024-05-04."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).astimezone(zone).date().isoformat()
