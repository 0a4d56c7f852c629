"""Ledgers, pauses and waits by themselves: the numbers behind the policy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.errors import CeilingReached, InvalidSetting
from memci.llm import Ledger, Spent
from memci.llm.circuit_breaker import Pause
from memci.llm.errors_of_servers import Failure, wait
from memci.memory import backend

SPENT = st.builds(Spent, *[st.integers(0, 1000)] * 6)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), SPENT)))
def test_total_is_the_sum_of_the_steps(spent):
    """Whatever is added in whatever order, each step has its own, and the total has all."""
    ledger = Ledger()
    for step, each in spent:
        ledger.add(step, each)

    assert ledger.total == sum((each for _, each in spent), Spent())
    for step in "abc":
        assert ledger.steps.get(step, Spent()) == sum((each for name, each in spent if name == step), Spent())


def test_spent_is_one_concept():
    """What a memory reports is what a ledger counts."""
    assert backend.Spent is Spent


def test_steps_are_a_copy():
    """What a ledger shows does not change when it goes on."""
    ledger = Ledger()
    before = ledger.steps

    ledger.add("a", Spent(calls=1))

    assert before == {}


@settings(deadline=None)
@given(st.integers(0, 100), st.lists(st.integers(1, 40), max_size=20))
def test_ceiling_is_passed_by_one_call_at_most(ceiling, costs):
    """Calls are admitted below the ceiling and refused from it on."""
    ledger, spent = Ledger(ceiling), 0
    for cost in costs:
        if spent >= ceiling:
            with pytest.raises(CeilingReached):
                ledger.admit("a")
            break
        ledger.admit("a")
        ledger.add("a", Spent(calls=1, prompt=cost))
        spent += cost

    assert spent < ceiling + 40 or ceiling == 0


@pytest.mark.parametrize(
    "given_settings", [{"ceiling": -1}, {"ceiling": 1.5}, {"ceiling": True}, {"period_seconds": 0}]
)
def test_settings_that_make_no_sense_are_named(given_settings):
    """A ceiling or a period that can't be is said at once."""
    with pytest.raises(InvalidSetting) as raised:
        Ledger(**given_settings)

    assert raised.value.name in given_settings


def test_pause_doubles_up_to_ten_minutes(clock):
    """Each trial that fails makes the pause twice as long, up to ten minutes; an answer ends it."""
    pause, lengths = Pause(clock), []
    for _ in range(12):
        while not pause.enter():
            lengths.append(pause.seconds)
            clock.now += pause.seconds
        pause.failed()

    assert lengths == [30, 60, 120, 240, 480, 600, 600]
    clock.now += 600
    assert pause.enter()
    assert not pause.enter()
    pause.answered()
    assert pause.enter()
    assert pause.seconds == 0.0


def test_trial_that_is_given_up_leaves_room_for_the_next(clock):
    """Who gives its trial up, says nothing of the server: the next one may try."""
    pause = Pause(clock)
    for _ in range(5):
        pause.failed()
    clock.now += 30

    assert pause.enter()
    pause.left()

    assert pause.enter()


def test_late_failures_do_not_prolong_a_pause(clock):
    """Calls that were under way when the pause began and fail during it change nothing."""
    pause = Pause(clock)
    for _ in range(9):
        pause.failed()

    assert pause.seconds == 30.0


def test_answer_between_failures_begins_the_count_anew(clock):
    """Five failures lead to a pause only in a row."""
    pause = Pause(clock)
    for _ in range(4):
        pause.failed()
    pause.answered()
    for _ in range(4):
        pause.failed()

    assert pause.enter()
    assert pause.seconds == 0.0


@settings(deadline=None)
@given(st.integers(1, 50), st.floats(0, 1), st.none() | st.floats(0, 1e5))
def test_wait_is_bounded_and_never_earlier_than_asked(tried, random, asked):
    """A wait is at most 8 seconds, or as long as the server asked and a little more; never shorter than that."""
    seconds = wait(tried, Failure("x", passing=True, retry_after=asked), random)

    assert (asked or 0) <= seconds <= (8 if asked is None else asked + 2)
