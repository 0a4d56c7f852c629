"""A session ends by a call or by a silence, never by closing; nobody need open its context again."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from machine_chats import chat, turn
from machine_kit import check, tiers

from memci import AsyncContext, EphemeralStorage
from memci.memory import TieredMemory
from memci.memory.inspect import counts
from memci.memory.tiers.rules import Rules

MAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
HOUR = timedelta(hours=1)


def item(number):
    """Return a turn whose number has a word to stand with in a title."""
    asked, answered = turn(number)
    return asked | {"content": asked["content"].replace("Question", "Item")}, answered


class Day:
    """A clock that is set by hand, the memory that goes by it, and contexts that are opened per request."""

    def __init__(self, rules=None):
        self.now = MAY
        self.storage = EphemeralStorage()
        self.memory = TieredMemory(self.storage, owner="anna", rules=rules, clock=lambda: self.now.timestamp())  # noqa: PLW0108 -- it is set later

    def request(self, number, name="alice", *, minutes=1):
        """Append turn *number* in a context that is opened for it, and close that."""
        self.now += timedelta(minutes=minutes)
        with chat(self.storage, id=name, owner="anna", memory=self.memory, window=20_000) as context:
            context.append_turn(*item(number), at=self.now)

    def wait(self, hours):
        self.now += hours * HOUR
        self.memory.maintain()
        check(self.memory)

    @property
    def summaries(self):
        return [each.summary for each in self.memory.session.tiers().profile.conversations]


@pytest.fixture
def day():
    return Day()


def test_fifty_requests_are_one_session(day):
    """A context per request ends no session; a silence does, once, although nobody opens the context again."""
    for number in range(1, 51):
        day.request(number)
    day.memory.maintain()
    before = day.summaries
    day.wait(5)
    assert day.summaries == before == []

    day.wait(2)
    (summary,) = day.summaries
    day.wait(24)

    assert "Item 1, quokka" in summary
    assert "Item 50, quokka" in summary
    assert day.summaries == [summary]
    assert day.memory.session.tiers().profile.turns == 50
    assert "observed" not in tiers(day.memory).values()


def test_session_of_two_turns_is_summarized_after_a_silence(day):
    """Five pages are not waited for, and each context has a session of its own."""
    for name in ("one", "two"):
        day.request(1, name)
        day.request(2, name)
    day.wait(7)

    assert len(day.summaries) == 2
    assert day.memory.session.tiers().profile.turns == 4


def test_ended_session_is_summarized_and_the_next_page_begins_another(day):
    """`end_session` waits for no silence, and takes in the open page; called again it changes nothing."""
    with chat(day.storage, owner="anna", memory=day.memory, window=20_000) as context:
        for number in (1, 2, 3):
            context.append_turn(*item(number), at=day.now)
        context.end_session()
        context.end_session()
        first = day.summaries
        known = set(tiers(day.memory).values())
        assert context.search_memory("question").pages == ()
        context.append_turn(*item(4), at=day.now)
        context.end_session()

    assert len(first) == 1
    assert "Item 3, quokka" in first[0]
    assert known == {"short"}
    assert day.summaries[:1] == first
    assert len(day.summaries) == 2
    assert "Item 3, quokka" not in day.summaries[1]


def test_session_that_goes_on_after_all_has_one_summary(day):
    """Played long after its time, a session seems over at each maintenance; it is summarized as one in the end."""
    day.request(1)
    for number in range(2, 20):
        with chat(day.storage, owner="anna", memory=day.memory, window=20_000) as context:
            context.append_turn(*item(number), at=MAY + timedelta(minutes=number))
        day.wait(24)
    (summary,) = day.summaries
    day.request(20)
    day.wait(7)

    assert "Item 19, quokka" in summary
    assert day.summaries[0] == summary
    assert len(day.summaries) == 2


def test_silence_is_a_setting():
    """After half an hour, if `Rules` say so."""
    day = Day(Rules(silence_seconds=1800.0))
    day.request(1)
    day.wait(1)

    assert len(day.summaries) == 1


def test_forty_conversations_that_are_closed_feed_the_tiers(day):
    """One owner with many conversations, none opened again, has a profile, episodes, days and facts."""
    for number in range(40):
        for part in range(3):
            said = ("I moved to Oslo.", "I just got married!", "Could you please help me? Thank you.")[number % 3]
            with chat(day.storage, id=f"talk {number}", owner="anna", memory=day.memory, window=9_000) as context:
                day.now += timedelta(minutes=1)
                context.append_turn(f"{said} {number}.{part}", {"role": "assistant", "content": "Fine."}, at=day.now)
        day.now += 12 * HOUR
    closed = counts(day.memory)
    day.wait(7)
    known = counts(day.memory)

    assert closed.mid > 100
    assert (known.pages, known.observed) == (120, 0)
    assert known.days >= 20
    assert min(known.episodes, known.user_facts) > 0
    assert "I moved to Oslo. (23 May 2026)" in day.memory.search("Oslo").profile.splitlines()
    assert len(day.summaries) == 5


def test_async_context_ends_a_session(day):
    """The same, awaited."""

    async def ended():
        async with AsyncContext.open(day.storage, "alice", owner="anna", memory=day.memory, window=9_000) as context:
            await context.append_turn(*item(1), at=day.now)
            await context.end_session()

    asyncio.run(ended())

    assert len(day.summaries) == 1
