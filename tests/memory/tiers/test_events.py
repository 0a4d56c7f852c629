"""Events: what matters is kept, and days and conversations are told in short."""

from datetime import timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from memci.memory.backend import PageRecord
from memci.memory.tiers.events import (
    INTERVAL,
    KEY_EVENTS,
    LEAST,
    MOST_USERS,
    PER_PAGE,
    WHAT_COLUMNS,
    DailySummary,
    conversation,
    day_of,
    events,
)
from memci.text.language.importance import importance
from memci.text.sanitize import width

MARRIED = "I got married last Saturday!"
NOON = 1_714_824_000.0
texts = st.text(alphabet="Igotmaried.!?我昨天结婚了。嬉しい어제 졸업했어\n", max_size=120)


def page(*said, index=1, at=NOON, quotes=()):
    messages = [{"role": "user", "content": text} if isinstance(text, str) else text for text in said]
    return PageRecord("c", index, index, tuple(enumerate(messages, 1)), at=at, quotes=frozenset(quotes))


def test_events_are_kept_only_above_the_bound(monkeypatch):
    """E02: an event with exactly the bound is not kept."""
    monkeypatch.setattr("memci.memory.tiers.events.LEAST", importance(MARRIED))

    assert events([page(MARRIED)]) == []


def test_events_say_what_when_who_and_where():
    """An event knows who told it, on which page, and the day it speaks of."""
    (event,) = events([page({"role": "user", "content": "I got married yesterday!", "name": "Mel"}, index=4)])

    assert (event.who, event.context, event.index) == ("Mel", "c", 4)
    assert event.when == NOON - 86_400


def test_events_of_quotes_tools_and_assistants_are_none():
    """What is quoted, printed by a tool, or written by an assistant did not happen."""
    tool = {"role": "tool", "tool_call_id": "1", "content": MARRIED}
    draft = {"role": "assistant", "content": MARRIED}

    assert events([page(MARRIED, quotes=[1]), page(tool), page(draft)]) == []


@given(st.lists(texts, max_size=INTERVAL))
def test_events_are_bounded(said):
    """A page yields at most two events, each in one short line, and each matters."""
    pages = [page(text, index=number) for number, text in enumerate(said)]

    found = events(pages)

    assert all(sum(event.index == one.index for event in found) <= PER_PAGE for one in pages)
    assert all(width(event.what) <= WHAT_COLUMNS and "\n" not in event.what for event in found)
    assert all(LEAST < event.importance <= 1 for event in found)


def test_day_is_that_of_the_zone():
    """E07: a day is a local one: late in the evening in one place is the next day in another."""
    evening = NOON + 10 * 3600

    assert day_of(evening) == "2024-05-04"
    assert day_of(evening, timezone(timedelta(hours=8))) == "2024-05-05"
    assert day_of(-1.0) == "1969-12-31"


def test_daily_summary_counts_what_it_is_told():
    """E07: a day knows its events, its exchanges, its messages, and its people."""
    pages = [page({"role": "user", "content": MARRIED, "name": "Mel"}, {"role": "assistant", "content": "Great!"})] * 2

    day = DailySummary("2024-05-04", "guide").updated(pages, events(pages)).updated([page("I am happy")], [])

    assert (day.conversations, day.messages, len(day.users)) == (3, 5, 2)
    assert day.users == ("Mel", "user")
    assert [event.what for event in day.key_events] == [MARRIED]
    assert day.summary == ""


def test_daily_summary_is_bounded():
    """However long the day, its summary stays small, and keeps what matters most."""
    day = DailySummary("2024-05-04")
    for number in range(3 * MOST_USERS):
        told = page(
            {"role": "user", "content": f"I got married to number {number} yesterday!", "name": f"user {number}"}
        )
        day = day.updated([told], events([told]))

    assert len(day.key_events) == KEY_EVENTS
    assert len(day.users) == MOST_USERS
    assert day.conversations == 3 * MOST_USERS


def test_conversation_summary_is_made_of_what_says_most():
    """E08: a conversation in short: when, what about without its small talk, and what is worth remembering."""
    said = ("Hey!", MARRIED, "We are so happy about the wedding in Oslo.", "You too!")
    told = conversation([page(text, index=number) for number, text in enumerate(said)])

    assert told.date == "2024-05-04"
    assert "married" in told.summary
    assert "wedding" in told.summary
    assert "too" not in told.summary
    assert (told.key_topics, told.sentiment) == ((), None)
    assert told.notable_moments == (MARRIED,)


def test_conversation_summary_of_nothing_is_empty():
    """A conversation in which nothing was said is told by nothing."""
    told = conversation([])

    assert (told.date, told.summary, told.key_topics, told.sentiment) == ("", "", (), None)
