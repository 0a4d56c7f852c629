"""Events: what matters is kept, and days and conversations are told in short."""

from datetime import timedelta, timezone

from memci.memory.backend import PageRecord
from memci.memory.tiers.events import (
    KEY_EVENTS,
    MOST_USERS,
    DailySummary,
    LifeEvent,
    conversation,
    day_of,
)

MARRIED = "I got married last Saturday!"
NOON = 1_714_824_000.0


def event(number=1, weight=0.8):
    return LifeEvent(f"Mel got married {number}.", "Mel", weight, "c", number, NOON)


def page(*said, index=1, at=NOON, quotes=()):
    messages = [{"role": "user", "content": text} if isinstance(text, str) else text for text in said]
    return PageRecord("c", index, index, tuple(enumerate(messages, 1)), at=at, quotes=frozenset(quotes))


def test_day_is_that_of_the_zone():
    """E07: a day is a local one: late in the evening in one place is the next day in another."""
    evening = NOON + 10 * 3600

    assert day_of(evening) == "2024-05-04"
    assert day_of(evening, timezone(timedelta(hours=8))) == "2024-05-05"
    assert day_of(-1.0) == "1969-12-31"


def test_daily_summary_counts_what_it_is_told():
    """E07: a day knows its events, its exchanges, its messages, and its people."""
    pages = [page({"role": "user", "content": MARRIED, "name": "Mel"}, {"role": "assistant", "content": "Great!"})] * 2

    day = DailySummary("2024-05-04", "guide").updated(pages, [event(), event()]).updated([page("I am happy")], [])

    assert (day.conversations, day.messages, len(day.users)) == (3, 5, 2)
    assert day.users == ("Mel", "user")
    assert day.key_events == (event(),)
    assert day.summary == ""


def test_daily_summary_is_bounded():
    """However long the day, its summary stays small, and keeps what matters most."""
    day = DailySummary("2024-05-04")
    for number in range(3 * MOST_USERS):
        told = page({"role": "user", "content": MARRIED, "name": f"user {number}"})
        day = day.updated([told], [event(number, 0.6 + number / 1000)])

    assert [each.index for each in day.key_events] == list(range(3 * MOST_USERS - KEY_EVENTS, 3 * MOST_USERS))
    assert len(day.users) == MOST_USERS
    assert day.conversations == 3 * MOST_USERS


def test_conversation_summary_is_made_of_what_says_most():
    """E08: a conversation in short: when, and what about, without its small talk."""
    said = ("Hey!", MARRIED, "We are so happy about the wedding in Oslo.", "You too!")
    told = conversation([page(text, index=number) for number, text in enumerate(said)])

    assert told.date == "2024-05-04"
    assert "married" in told.summary
    assert "wedding" in told.summary
    assert "too" not in told.summary
    assert (told.key_topics, told.sentiment) == ((), None)


def test_conversation_summary_of_nothing_is_empty():
    """A conversation in which nothing was said is told by nothing."""
    told = conversation([])

    assert (told.date, told.summary, told.key_topics, told.sentiment) == ("", "", (), None)
