"""Events: what happened, when, to whom, and how much it matters; days and conversations in short.

    5 pages  ──▶  LifeEvent("I got married last Saturday!", 2024-05-04, "Mel", 0.7)      above 0.5: kept
                  LifeEvent("Nice weather.", …, 0.15)                                    not kept
             ──▶  DailySummary(2024-05-04, …, key events, 5 conversations, 10 messages, users, mood)
    the end  ──▶  ConversationSummary(date, summary, key topics, sentiment, notable moments)

Days are those of the zone that is given. (The design of the context layers has a model do this, while the conversation
waits.)

This module knows nothing of when it is called, or of where events are stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from ...messages import text_of
from ...text.language.importance import importance
from ...text.language.keywords import keywords
from ...text.language.moods import Mood, feelings, mood, mood_of
from ...text.language.sentences import sentences
from ...text.summarize import extract, one_line
from ...workers import yield_to_calls
from ..backend import PageRecord

INTERVAL = 5
"""pages after which events are extracted"""
LEAST = 0.5
"""an event that matters no more than this is not kept"""
PER_PAGE = 2
KEY_EVENTS = 8
MOST_USERS = 100
WHAT_COLUMNS = 240
_SCANNED = 10_000


@dataclass(frozen=True, slots=True)
class LifeEvent:
    """Something that happened, in the words of the message that says it."""

    what: str
    who: str
    """the name of who said it, or "user" or "assistant" """
    importance: float
    """from 0 to 1"""
    context: str
    index: int
    when: float | None = None
    """in seconds since 1970 UTC; None: not known"""


@dataclass(frozen=True, slots=True)
class DailySummary:
    """A day of one agent."""

    date: str
    """as 2024-05-04"""
    agent: str = ""
    summary: str = ""
    """what it was about, in one line"""
    key_events: tuple[LifeEvent, ...] = ()
    """what mattered most, in the order in which it was said"""
    conversations: int = 0
    """pages: a question and its answer"""
    messages: int = 0
    users: tuple[str, ...] = ()
    good: int = 0
    """words of a good mood, and of a bad one"""
    bad: int = 0
    felt: Mood | None = None
    """the mood as a model sees it, of the pages so far; None: it follows from words"""

    @property
    def unique_users(self) -> int:
        """How many people spoke; at most `MOST_USERS` are counted."""
        return len(self.users)

    @property
    def mood(self) -> Mood:
        """The mood of the whole day."""
        return self.felt or mood_of(self.good, self.bad)

    def updated(self, pages: Sequence[PageRecord], found: Sequence[LifeEvent]) -> "DailySummary":
        """Return it with *pages* of the same day and the events *found* in them. O(characters of pages)."""
        spoken = [(page, message) for page in pages for _, message in _own(page)]
        good, bad = feelings(text_of(message) for _, message in spoken if message.get("role") == "user")
        names = [str(message.get("name") or "user") for _, message in spoken if message.get("role") == "user"]
        told = list(dict.fromkeys((*self.key_events, *found)))
        best = sorted(told, key=lambda event: -event.importance)[:KEY_EVENTS]
        topics = keywords([self.summary, *(text_of(message) for _, message in spoken)], limit=8)
        return replace(
            self,
            summary=", ".join(topics),
            key_events=tuple(event for event in told if event in best),
            conversations=self.conversations + len(pages),
            messages=self.messages + len(spoken),
            users=tuple(dict.fromkeys((*self.users, *names)))[:MOST_USERS],
            good=self.good + good,
            bad=self.bad + bad,
            felt=None,
        )


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """A conversation, once it is over."""

    date: str
    """when it ended, as 2024-05-04; "" if not known"""
    summary: str
    key_topics: tuple[str, ...]
    sentiment: Mood
    notable_moments: tuple[str, ...]


def events(pages: Sequence[PageRecord], *, least: float = LEAST) -> list[LifeEvent]:
    """Return what matters more than *least* in *pages*, in order, at most two of each page. O(characters)."""
    found: list[LifeEvent] = []
    for page in pages:
        own: list[LifeEvent] = []
        for _, message in _own(page):
            yield_to_calls()
            who = str(message.get("name") or message["role"])
            for sentence in sentences(text_of(message)[:_SCANNED]):
                weight = importance(sentence)
                if weight > least:
                    when = None if page.at is None else page.at + 86_400 * _days_off(sentence)
                    what = one_line(sentence, WHAT_COLUMNS)
                    own.append(LifeEvent(what, who, weight, page.context, page.index, when))
        best = sorted(dict.fromkeys(own), key=lambda event: -event.importance)[:PER_PAGE]
        found += [event for event in dict.fromkeys(own) if event in best]
    return found


def conversation(pages: Sequence[PageRecord], zone: tzinfo = UTC) -> ConversationSummary:
    """Return a conversation in short, made of its own words. O(characters)."""
    texts = [text_of(message) for page in pages for _, message in _own(page)]
    spoken = [text_of(message) for page in pages for _, message in _own(page) if message.get("role") == "user"]
    titles = [extract([message for _, message in page.entries]).title for page in pages if page.entries]
    told = list(dict.fromkeys(titles))
    shown = told if len(told) <= 4 else [told[0], *told[-3:]]
    moments = sorted(events(pages), key=lambda event: -event.importance)[:3]
    times = [page.at for page in pages if page.at is not None]
    return ConversationSummary(
        date=day_of(max(times), zone) if times else "",
        summary=" · ".join(shown),
        key_topics=keywords(texts, limit=5),
        sentiment=mood(spoken),
        notable_moments=tuple(dict.fromkeys(event.what for event in moments)),
    )


def day_of(at: float, zone: tzinfo = UTC) -> str:
    """Return the day of a moment, as 2024-05-04, where *zone* is the time."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).astimezone(zone).date().isoformat()


def _own(page: PageRecord) -> list[tuple[int, dict[str, object]]]:
    return [
        (ordinal, message)
        for ordinal, message in page.entries
        if ordinal not in page.quotes and message.get("role") in {"user", "assistant"} and text_of(message).strip()
    ]


def _days_off(text: str) -> int:
    lowered = text.lower()
    return next((days for word, days in _OFFSETS.items() if word in lowered), 0)


_OFFSETS = {"day before yesterday": -2, "day after tomorrow": 2, "yesterday": -1, "last night": -1, "tomorrow": 1} | {
    "前天": -2, "昨天": -1, "昨晚": -1, "明天": 1, "后天": 2,
    "一昨日": -2, "昨日": -1, "明日": 1, "어제": -1, "내일": 1, "모레": 2,
}  # fmt: skip
