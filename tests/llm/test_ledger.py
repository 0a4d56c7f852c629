"""Ledgers and circuit breakers by themselves: the numbers behind the policy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.errors import CeilingReached, InvalidSetting
from memci.llm import Ledger, Spent
from memci.llm.circuit_breaker import CircuitBreaker
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


def test_open_time_doubles_up_to_ten_minutes(clock):
    """Each trial that fails doubles the time that the circuit stays open, up to ten minutes; an answer closes it."""
    breaker, lengths = CircuitBreaker(clock), []
    for _ in range(12):
        while not breaker.enter():
            lengths.append(breaker.seconds)
            clock.now += breaker.seconds
        breaker.failed()

    assert lengths == [30, 60, 120, 240, 480, 600, 600]
    clock.now += 600
    assert breaker.enter()
    assert not breaker.enter()
    breaker.answered()
    assert breaker.enter()
    assert breaker.seconds == 0.0


def test_trial_that_is_given_up_leaves_room_for_the_next(clock):
    """Who gives its trial up, says nothing of the server: the next one may try."""
    breaker = CircuitBreaker(clock)
    for _ in range(5):
        breaker.failed()
    clock.now += 30

    assert breaker.enter()
    breaker.abandoned()

    assert breaker.enter()


def test_late_failures_do_not_keep_the_circuit_open_longer(clock):
    """Calls that were under way when the circuit opened, and fail later, change nothing."""
    breaker = CircuitBreaker(clock)
    for _ in range(9):
        breaker.failed()

    assert breaker.seconds == 30.0


def test_answer_between_failures_resets_the_count(clock):
    """Five failures open the circuit only in a row."""
    breaker = CircuitBreaker(clock)
    for _ in range(4):
        breaker.failed()
    breaker.answered()
    for _ in range(4):
        breaker.failed()

    assert breaker.enter()
    assert breaker.seconds == 0.0
