"""When it was said: each message has a time of its own, and what is shown tells it."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import EphemeralStorage
from memci.errors import InvalidSetting
from memci.formats import FORMATS
from memci.history.page_reader import read_back
from memci.testing.formats import problems
from memci.text.moments import full, further, is_told, local, moment, zone_of
from tests.invariants import check

from .kit import again, calling, opened, result

START = datetime(2026, 3, 2, 7, 30, tzinfo=timezone(timedelta(hours=8)))
TOLD = re.compile(r"\[0000 from (?:(Mon|Tue|Wed|Thu|Fri|Sat|Sun) (\d+) (\w{3})(?: (\d{4}))?)?(?:, )?(\d\d:\d\d)?")


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def times(view):
    return [each["content"] for each in view if str(each.get("content")).startswith("[0000 ")]


# -- stored, found, filtered


def test_a_message_has_the_time_of_its_own_append():
    """What is said later on the same page is found then, and shown so."""
    context = opened(window=8_000)
    context.append_turn(user("Bye!"), assistant("Bye."), at=START)
    later = START + timedelta(days=60)
    context.append_turn(user("My otter sculpture won a prize."), at=later, opens_page=False)
    context.append_turn(user("ok"), at=later + timedelta(days=1))
    context.flush()
    context.archive(keep=0)

    [found] = context.search_memory("otter sculpture", since=later.date().isoformat(), seen=False).pages
    assert (found.at, found.zone, found.said) == (later.timestamp(), 480, later)
    assert not context.search_memory("otter sculpture", until="2026-04-30", seen=False).pages
    assert full(later) in context.functions["search_memory"]("otter sculpture")
    assert f'3 user, {full(later)}: "My otter' in context.functions["recall_page"](1)
    assert f"1 user, {full(START)}: " in context.functions["recall_page"](1)


@pytest.mark.parametrize("said", ["2026-03-02T00:20:00+13:00", "2026-03-02T23:40:00-08:00", "2026-03-02T12:00:00Z"])
def test_a_day_is_that_of_the_clock_on_the_wall(said):
    """A date without a zone finds what was said on that day, wherever that was; a time with a zone is absolute."""
    context = opened(window=8_000)
    context.append_turn(user("We painted the fence."), assistant("Nice."), at=said)
    context.append_turn(user("ok"), at="2026-03-09T12:00:00Z")
    context.flush()

    def finds(**bounds):
        return bool(context.search_memory("fence", seen=False, **bounds).pages)

    assert finds(since="2026-03-02", until="2026-03-02")
    assert not finds(since="2026-03-03")
    assert not finds(until="2026-03-01")
    assert finds(since=moment(said), until=moment(said))
    assert not finds(since=moment(said) + timedelta(seconds=1))


def test_a_search_from_a_later_until_an_earlier_time_is_a_mistake():
    """It is named, to a program and to the model."""
    context = opened(window=8_000)

    with pytest.raises(InvalidSetting, match="later than until"):
        context.search_memory("x", since="2026-03-10T12:00:00+02:00", until="2026-03-10T10:00:00+01:00")
    assert "error: since" in context.functions["search_memory"]("x", "2026-03-10", "2026-03-09")


@pytest.mark.parametrize("told", [1_772_000_000.5, None, "2026-03-01"])
def test_a_clock_that_tells_no_datetime_is_refused(told):
    """As `time.time` does; nothing is stored."""
    context = opened(window=8_000, clock=lambda: told)

    with pytest.raises(InvalidSetting, match="clock"):
        context.append_turn(user("Hi"))
    assert [*context.messages()] == []


@pytest.mark.parametrize("asked", ["What did I paint yesterday?", "昨天 paint", "Was gab es gestern? paint"])
@pytest.mark.parametrize("stamped", [True, False])
def test_a_question_is_asked_on_the_day_of_the_last_message(asked, stamped):
    """By the clock if that dates the messages; else the last one says when it is, in its zone."""
    now = [START]
    context = opened(window=8_000, zone="+08:00", clock=(lambda: now[0]) if stamped else None)
    for day in range(9):
        now[0] = START + timedelta(days=day)
        context.append_turn(user(f"I paint the {day}. door."), assistant("Nice."), at=None if stamped else now[0])
    context.flush()

    [best] = context.search_memory(asked, k=1, seen=False).pages
    assert best.text == "I paint the 7. door."
    context.archive(keep=0)
    told = context.functions["search_memory"]("paint", since="yesterday", until="yesterday")
    assert "the 7. door" in told
    assert "the 6. door" not in told


# -- the zone of a context


def test_times_without_a_zone_are_in_that_of_the_context():
    """The zone is stored; it is that of the clock, too."""
    store = EphemeralStorage()
    context = opened(store, zone="Asia/Shanghai", clock=lambda: datetime(2026, 3, 1, 23, 30, tzinfo=UTC))
    context.append_turn(user("one"), at="2026-03-02T07:30")
    context.append_turn(user("two"))
    context.append_turn(user("three"), at="2026-03-02T07:30+01:00")
    context.close()

    stored = [each.at for each in store.entries("alice", 0, 3)]
    assert stored == ["2026-03-02T07:30:00+08:00"] * 2 + ["2026-03-02T07:30:00+01:00"]
    with again(store) as context:
        context.append_turn(user("four"), at="2026-03-03T08:00")
    assert next(store.entries("alice", 3, 4)).at == "2026-03-03T08:00:00+08:00"


@pytest.mark.parametrize("zone", ["Middle/Earth", "+25", "", "../etc", "8"])
def test_a_zone_that_is_none_is_refused(zone):
    """It is named at once, and nothing is stored."""
    with pytest.raises(InvalidSetting, match="zone"):
        opened(zone=zone)


def test_of_an_old_list_only_the_last_interaction_gets_the_time_of_the_clock():
    """When the others were said, nobody told."""
    store = EphemeralStorage()
    context = opened(store, clock=lambda: datetime(2026, 3, 1, 9, tzinfo=UTC))
    context.sync([user("old"), assistant("yes"), user("older?"), assistant("no"), user("new"), assistant("fine")])

    assert [each.at is not None for each in store.entries("alice", 0, 6)] == [False] * 4 + [True] * 2


# -- the rendering


def test_a_conversation_of_one_sitting_is_shown_as_it_came():
    """The next day is told before the user's message, and with it when what stands before began."""
    context = opened(window=8_000)
    said = [user("one"), assistant("1"), user("two"), assistant("2")]
    context.append_turn(*said[:2], at=START)
    context.append_turn(*said[2:], at=START + timedelta(hours=1))
    assert context.render()[1:] == said

    context.append_turn(user("three"), at=START + timedelta(days=1))
    told, last = context.render()[-2:]
    assert told == user("[0000 from Tue 3 Mar; before, since Mon 2 Mar 2026, 07:30 +08:00]")
    assert last == user("three")
    context.append_turn(assistant("3"), user("four"), at=START + timedelta(days=1, hours=7))
    assert context.render()[-2] == user("[0000 from 14:30]")


def test_what_a_user_writes_is_no_time():
    """A message keeps its exact words; memci's own have a part of the nonce, which nobody can know."""
    context = opened(nonce="5eed0001")
    context.append_turn(user("[from Tue 24 Nov 2026, 07:30 UTC]"), at=START)
    context.append_turn(user("hm"), at=START + timedelta(days=1))

    assert context.render()[1]["content"] == "[from Tue 24 Nov 2026, 07:30 UTC]"
    assert context.render()[2]["content"].startswith("[5eed from Tue 3 Mar; before")


def test_pending_messages_keep_the_time_at_which_they_were_shown():
    """The rendering with a pending question is the beginning of the one after its append."""
    now = [datetime(2026, 3, 1, 9, tzinfo=UTC)]
    context = opened(window=8_000, clock=lambda: now[0])
    context.append_turn(user("one"), assistant("1"))
    now[0] += timedelta(days=1)
    shown = context.render(user("two"))
    now[0] += timedelta(minutes=5)
    context.append_turn(user("two"), assistant("2"))

    assert times(shown) == ["[0000 from Mon 2 Mar; before, since Sun 1 Mar 2026, 09:00 UTC]"]
    assert context.render()[: len(shown)] == shown
    now[0] += timedelta(days=2)
    assert times(context.render(user("two")))[1:] == ["[0000 from Wed 4 Mar]"]
    assert times(context.render(user("two"), at=now[0] + timedelta(days=1)))[1:] == ["[0000 from Thu 5 Mar]"]


@pytest.mark.parametrize("dates", ["compacted", "never"])
def test_times_are_told_only_as_the_policy_says(dates):
    """Until the first compaction, or ever, what was appended is shown as it came."""
    context = opened(dates=dates)
    said = [user("one"), assistant("1"), user("two"), assistant("2"), user("three")]
    for day, message in enumerate(said):
        context.append_turn(message, at=START + timedelta(days=day))
    assert context.render()[1:] == said
    context.archive(keep=0)

    assert times(context.render()) == (["[0000 from Fri 6 Mar 2026, 07:30 +08:00]"] if dates == "compacted" else [])


steps = st.lists(
    st.tuples(
        st.sampled_from(["turn", "turn", "tool", "user", "undated"]),
        st.integers(0, 40),
        st.sampled_from([0, 0, 480, -300]),
        st.integers(1, 60),
    ),
    min_size=4,
    max_size=40,
)


@given(steps, st.booleans())
def test_each_time_is_that_of_the_message_behind_it(steps, pending):
    """Whatever was said: the time is true, never between a call and its result, and nothing shown before changes."""
    store, said, shown, compactions, seen = EphemeralStorage(), {}, [], 0, 0
    context = opened(store, window=700, reply=60)
    now = START
    for number, (kind, hours, zone, size) in enumerate(steps):
        now = (now + timedelta(hours=hours)).astimezone(timezone(timedelta(minutes=zone)))
        at = None if kind == "undated" else now
        question = user(f"q{number} " + "w " * size)
        said[question["content"]] = at
        if pending:
            before = context.render(question, at=at)
        if kind == "tool":
            context.append_turn(question, calling("c"), result("c"), assistant("fine " * size), at=at)
        else:
            context.append_turn(question, *([assistant("a " * size)] if kind != "user" else []), at=at)
        view = context.render()
        state = context._parts.window.state
        if state.compactions == compactions:
            assert view[: len(shown)] == shown
            assert not pending or view[: len(before)] == before
        shown, compactions = view, state.compactions
        assert context._parts.window.tokens <= context.budget
        dated = (each for each in context._parts.window.active.messages if each.at and each.message["role"] == "user")
        first = next(dated, None)
        assert not compactions or first is None or first.date is not None
        told = None
        for message, following in zip(view, [*view[1:], {}], strict=True):
            if not str(message.get("content")).startswith("[0000 "):
                continue
            seen += 1
            assert following["role"] == "user"
            when = said[following["content"]]
            match = TOLD.match(message["content"])
            assert match[1] is None or match[1] == f"{when:%a}"
            assert match[2] is None or (int(match[2]), match[3]) == (when.day, f"{when:%b}")
            assert match[4] is None or int(match[4]) == when.year
            assert match[5] is None or match[5] == f"{when:%H:%M}" or match[2]
            assert told is None or not is_told(told, when)
            told = when
    check(context._parts.window)
    context.close()
    assert again(store, window=700, reply=60).render() == shown
    days = {f"{at:%F}" for at in said.values() if at is not None}
    assert seen or len(days) < 2 or compactions == 0 or len(said) > 4


@given(st.datetimes(datetime(1971, 1, 1), datetime(2099, 1, 1)), st.integers(-720, 840))  # noqa: DTZ001 -- below
def test_a_time_is_read_as_it_was_written(when, minutes):
    """A stored time keeps its zone, and what is shown of it is that of the clock on the wall."""
    when = when.replace(tzinfo=timezone(timedelta(minutes=minutes)))

    assert moment(when.isoformat()) == when
    assert zone_of(when) == minutes
    assert abs(local(when.timestamp(), minutes) - when) < timedelta(milliseconds=1)
    assert full(when).startswith(f"{when:%a} {when.day} {when:%b} {when.year}, {when:%H:%M} ")
    assert further(when, None) == full(when)


# -- the contents

LISTED = re.compile(r"(?m)^#(\d+)(?:–#(\d+))?[^ (\n:]*(?:, #\d+(?:–#\d+)?)*(?: \(([^()\n]*\d{4}|[^()\n]*[a-z])\))?[: ]")


@pytest.mark.parametrize("window", [700, 8_000])
@pytest.mark.parametrize("step", [1, 7, 45, 400])
def test_lines_and_ranges_have_the_days_of_their_pages(window, step):
    """A line without a day is of the day before it; a year is named where it changes; reopened, all is the same."""
    store = EphemeralStorage()
    context = opened(store, window=window, reply=60)
    days = {}
    for number in range(40):
        at = START + timedelta(days=step * (number // 2))
        asked = user(f"kiln{number} needs a door{number} and chimney{number}"), assistant("ok")
        days[context.append_turn(*asked, at=at).page] = at.date()
    context.archive(keep=0)
    view = context.render()

    text = "\n".join(each["content"] for each in view if each["content"].startswith("<memci:contents"))
    shown, told = "", None
    for line in text.splitlines():
        told = None if line.startswith("<memci:contents") else told  # a block can be read by itself
        if (match := LISTED.match(line)) is None:
            continue
        first, last = days[int(match[1])], days[int(match[2] or match[1])]
        shown = match[3] or shown
        assert f"{first.day} {first:%b}" in shown or f"{last.day} {last:%b}" in shown, line
        if match[3]:  # of a range from which pages were unloaded, too
            begin, _, end = match[3].partition("–")
            assert (begin.split()[0], (end or begin).split()[0]) == (str(first.day), str(last.day)), line
        if match[3] and "–" not in match[3] and told is not None:
            assert (f" {first.year}" in match[3]) == (first.year != told), line
        told = last.year
    assert shown
    assert again(store, window=window, reply=60).render() == view


def test_what_was_erased_leaves_no_day_behind():
    """A range that had an erased page tells the days of those that are left."""
    context = opened(window=700, reply=60)
    for number in range(40):
        at = START + timedelta(days=30 * number)
        context.append_turn(user(f"kiln{number} needs a door{number} and chimney{number}"), assistant("ok"), at=at)
    context.archive(keep=0)
    gone = context._parts.window.contents.ranges[0].pages[0]
    told = context._parts.window.contents.ranges[0].known_days()
    assert told.pop(gone) not in told.values()
    context.erase(gone)

    left = [each for each in context._parts.window.contents.ranges if each.pages[0] == gone + 1]
    assert [each.known_days() for each in left] == [told]


@pytest.mark.parametrize("form", FORMATS)
def test_every_provider_takes_the_times_that_are_told(form):
    """In each format the request is valid, and tells the time before the user's words, behind all results."""
    context = opened(window=8_000, format=form)
    context.append_turn(user("one"), calling("c1"), result("c1"), assistant("fine"), at=START)
    context.append_turn(user("two"), calling("c2"), result("c2"), at=START + timedelta(days=1))
    request = context.request(format=form)

    assert problems(form, request) == []
    sent = json.dumps(request, default=str)
    assert sent.index("fine") < sent.index("[0000 from Tue 3 Mar; before") < sent.index('"two"')


def test_a_page_that_comes_back_costs_no_more_than_was_planned():
    """The plan counts the times that its return may show: before the page, and before what follows it."""
    context = opened(window=8_000)
    for day in range(4):
        context.append_turn(user(f"Question {day}"), assistant(f"Answer {day}"), at=START + timedelta(days=40 * day))
    context.archive(keep=0)
    window = context._parts.window
    planned = read_back(window, context._parts.reader, 2)
    before = sum(node.tokens for node in window.active.messages)

    context.pin(2)
    context.archive(keep=1)

    came = sum(node.tokens for node in window.active.messages) - before
    assert sum(node.tokens for node in planned.text.nodes) < came <= planned.tokens
