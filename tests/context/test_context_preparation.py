"""The next compaction, prepared while nobody uses the context: it is shown and stored as if it were not prepared."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from memci import CachePricing, EphemeralStorage, Policy
from memci.errors import BudgetExceeded, InvalidSetting, PageNotFound
from memci.memory import NullMemory
from tests import strategies

from .kit import again, opened, turn

SMALL = {"window": 1_200, "reply": 100, "memory": NullMemory()}
LARGE = {**SMALL, "window": 2_400}
"""in which a compaction comes after several turns only"""
START = datetime(2026, 3, 1, tzinfo=UTC)
REFUSED = (BudgetExceeded, PageNotFound, InvalidSetting)
"""what both of two contexts may refuse"""

numbers = st.integers(1, 40)


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    """No worker does the steps beside a test."""
    monkeypatch.setattr("memci.workers.worker.submit", lambda busy: None)


acts = st.one_of(
    st.tuples(st.just("turn"), strategies.turns(giant=False)),
    *[st.tuples(st.just("words"), st.integers(1, 120))] * 4,
    st.tuples(st.sampled_from(["recall_page", "pin", "unpin", "pause"]), numbers),
    st.tuples(st.sampled_from(["undo", "pop", "archive", "open", "price"]), st.none()),
)
lives = st.lists(st.tuples(acts, st.integers(0, 4)), min_size=30, max_size=80)


def idle(context, steps=100):
    """Let the worker's steps for the next compaction run, so many at most, and return how many there were."""
    return next((done for done in range(steps) if not context._parts.compactor.step()), steps)


class Life:
    """One context, and what happens to it; *prepares*, what is idle in between is used."""

    def __init__(self, *, prepares):
        self.prepares, self.events, self.now, self.store = prepares, [], START, EphemeralStorage()
        self.policy = Policy(preset="economy", archive_share=None, contents_tokens=60, pricing=CachePricing(minimum=64))
        self.context = opened(self.store, **self.given, **SMALL)
        self.answers = 0

    @property
    def given(self):
        return {"policy": self.policy, "clock": lambda: self.now, "on_event": self.events.append}

    def live(self, act, steps):
        """Do *act* after *steps* in idle time, and return what is shown then."""
        kind, value = act
        if self.prepares:
            idle(self.context, steps)
        with suppress(*REFUSED):
            self.happens(kind, value)
        try:
            return self.context.render(strict=False)
        except BudgetExceeded as error:
            return str(error)

    def happens(self, kind, value):
        context = self.context
        self.answers += 1
        if kind == "turn":
            context.append_turn(*value)
        elif kind == "words":
            context.append_turn(*turn(self.answers, value))
        elif kind == "pause":
            self.now += timedelta(minutes=value)
        elif kind == "price":
            self.policy = Policy(preset="balanced", contents_tokens=150)
            self.reopen()
        elif kind == "open":
            self.reopen()
        elif value is None:
            getattr(context, kind)()
        else:
            getattr(context, kind)(value)

    def reopen(self):
        self.context.close()
        self.context = again(self.store, **self.given, memory=NullMemory())


@settings(
    max_examples=8, phases=[Phase.generate], deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(lives)
def test_a_prepared_compaction_is_the_one_that_is_made(life):
    """Whatever happens in between, what is shown and stored is the same, byte for byte, whether idle time is used."""
    prepared, made = Life(prepares=True), Life(prepares=False)

    for act, steps in life:
        assert prepared.live(act, steps) == made.live(act, steps)

    assert prepared.events == made.events
    assert [*prepared.context.export()] == [*made.context.export()]


def test_most_compactions_find_what_was_prepared():
    """Of a conversation whose idle time is used, most compactions show a Contents Page that was prepared."""
    found = []
    with opened(**LARGE, on_event=lambda event: found.append(event.kind == "compaction")) as context:
        window = context._parts.window
        for number in range(300):
            idle(context)
            known, events = [each.contents for each in context._parts.compactor.prepared], len(found)
            context.append_turn(*turn(number, 5 + number * 7 % 40))
            found[events:] = [any(window.contents is each for each in known)] if found[events:] else []

    assert len(found) > 10
    assert sum(found) > 0.8 * len(found), found


def test_what_was_prepared_in_a_turn_in_which_a_page_was_used_holds_in_that_turn_only():
    """In a later turn pages that leave are used later than that page, and others may be unloaded."""
    with opened(**LARGE) as context:
        window, number = context._parts.window, 0
        while not (idle(context) and window.listed):
            context.append_turn(*turn(number := number + 1, 30))
        assert all(each.settled for each in context._parts.compactor.prepared)
        context._parts.compactor.prepared.clear()
        context.recall_page(max(window.contents.lines))
        context._parts.compactor.submit()
        assert idle(context)
        assert not any(each.settled for each in context._parts.compactor.prepared)
        known = [each.contents for each in context._parts.compactor.prepared]
        while context._parts.compactor.prepared:
            context.append_turn(*turn(number := number + 1, 30))

        assert not any(window.contents is each for each in known)


def test_a_context_that_is_closed_or_far_from_a_compaction_prepares_nothing():
    """Idle time is used when a compaction is near, and no more once the context is closed."""
    context = opened(**SMALL)
    assert idle(context) == 0
    while not idle(context):
        context.append_turn(*turn(1, 30))
    context._parts.compactor.prepared.clear()

    context.close()
    context._parts.compactor.submit()

    assert idle(context) == 0
    assert not context._parts.compactor.prepared
