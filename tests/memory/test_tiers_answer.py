"""Tiers answer questions whose words nobody said: who the user is, what was said last, what belongs to a subject."""

from datetime import UTC, datetime

import pytest

from memci import Context, EphemeralStorage
from memci.memory import TieredMemory
from memci.tools.search_memory import answer

DAY = 86_400
MARCH = datetime(2025, 3, 3, 9, tzinfo=UTC).timestamp()
TALKS = {
    0: ["I live in Ghent.", "The tram was late again.", "I'm allergic to walnuts."],
    30: ["The boiler makes no hot water.", "He comes on Monday at nine.", "I bought tea, which may be too strong."],
    60: ["I moved to Antwerp.", "The market was closed.", "My sister Lotte plays the oboe."],
    90: ["I applied for the course in wound care.", "Flip has a bad tooth."],
}


@pytest.fixture
def context():
    """Four talks on different days; the last one is over."""
    made = Context.open(EphemeralStorage(), id="maya", window=4_000)
    for day, texts in TALKS.items():
        for minute, text in enumerate(texts):
            at = datetime.fromtimestamp(MARCH + day * DAY + 60 * minute, UTC)
            made.append_turn(text, {"role": "assistant", "content": "I see. Anything else?"}, at=at)
    made.end_session()
    made.memory.maintain(MARCH + 91 * DAY)
    return made


def said(context, query):
    return [page.text for page in context.search_memory(query, seen=False).pages if page.role == "user"]


def test_who_the_user_is_are_their_facts_the_present_ones_first(context):
    """Each is a line with its page and day, before the messages; what a later one replaces stands below it."""
    told = answer(
        {"query": "What do you know about me?"},
        lambda asked, k, **_: context.search_memory(asked.text, k=k, seen=False),
        context="maya",
        room=1_000,
        count=len,
        nonce="0",
    )

    assert [line for line in told.splitlines() if line.startswith("known of")] == [
        'known of the user, 2 May 2025 (#9): "My sister Lotte plays the oboe."',
        'known of the user, 2 May 2025 (#7): "I moved to Antwerp."',
        'known of the user, earlier, 3 Mar 2025 (#1): "I live in Ghent."',
        'known of the user, 3 Mar 2025 (#3): "I\'m allergic to walnuts."',
    ]
    assert told.splitlines()[2].startswith("known of the user")


def test_the_last_conversation_is_the_one_that_ended_last(context):
    """Its messages answer, not those that have the words of the question; a talk that goes on is not the last."""
    last = TALKS[90]
    assert set(said(context, "What did we talk about last time?")) == set(last)

    context.append_turn("What time did we talk about?", {"role": "assistant", "content": "None."})
    assert set(said(context, "上次我们聊了什么？")) == set(last)


def test_a_conversation_is_over_after_a_silence_whether_or_not_it_was_ended():
    """Nothing was maintained since: the last stretch of talk before the silence answers."""
    now = [MARCH]
    storage = EphemeralStorage()
    memory = TieredMemory(storage, owner="maya", clock=lambda: now[0])
    context = Context.open(storage, id="maya", window=4_000, memory=memory)
    for day, texts in TALKS.items():
        for minute, text in enumerate(texts):
            now[0] = MARCH + day * DAY + 60 * minute
            context.append_turn(text, at=datetime.fromtimestamp(now[0], UTC))

    assert set(said(context, "What did we talk about last time?")) == set(TALKS[60])
    now[0] += DAY
    context.append_turn("What did we talk about last time?", at=datetime.fromtimestamp(now[0], UTC))
    assert set(said(context, "What did we talk about last time?")) == set(TALKS[90])


def test_a_month_has_only_what_was_said_in_it(context):
    """A word that is also the name of a month does not count as one; what was said then comes first."""
    assert said(context, "What happened in May?") == TALKS[60]
