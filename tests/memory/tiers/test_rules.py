"""Rules: each is checked, each design is a preset, and the owner keeps them."""

import itertools
import math

import pytest
from tiers_kit import fill

from memci import EphemeralStorage
from memci.errors import InvalidSetting
from memci.memory import Rules, TieredMemory
from memci.memory.tiers.rules import PRESETS

NUMBERS = [name for name, each in Rules.model_fields.items() if type(each.default) in (int, float)]
WRONG = [
    *itertools.product(NUMBERS, ["x", None, [], math.nan, -2, math.inf, {}, b"1"]),
    *(("capacity", each) for each in (0, True, 1.5, 10**9)),
    *itertools.product(["preset", "order"], ["lru", 3, [], ""]),
    *itertools.product(["zone"], ["Mars/Olympus", "../etc", "", 3, None]),
    *(("dimensions", each) for each in ((), "humour", ("a", "A"), ("",), (3,), None, ("x" * 61,))),
    *(("prompts", each) for each in ({"x": "y"}, {"day": ""}, {"day": 3}, [], "day")),
    *(("threshold", each) for each in ("x", -2, math.nan, [])),
    *((name, 1) for name in ("tau", "alpha", "Capacity", "", "model_config")),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_a_wrong_value_is_an_error_that_names_it(name, value):
    """Nothing wrong is taken: the error names the setting and the value."""
    with pytest.raises(InvalidSetting) as raised:
        Rules(**{name: value})

    assert name.split(".")[0] in str(raised.value)
    assert len(str(raised.value)) < 300


def test_there_are_two_hundred_wrong_values():
    """The list above is as long as it should be."""
    assert len(WRONG) >= 200


def test_presets_are_the_values_of_the_designs():
    """Each preset sets what its document says, and a value that is given wins."""
    memoryos, layers, events = (Rules(preset=name) for name in PRESETS)

    assert (memoryos.capacity, memoryos.episodes, memoryos.facts, memoryos.found_pages) == (10, 2000, 100, 7)
    assert (memoryos.threshold, memoryos.keyword_weight, memoryos.promoted, memoryos.tau_seconds) == (
        0.6,
        1.0,
        5.0,
        1e7,
    )
    assert (memoryos.order, memoryos.candidates, memoryos.found_facts, memoryos.fact_score) == ("lfu", 5, 5, 0.1)
    assert len(memoryos.dimensions) == 51
    assert {"openness", "need for order", "animal concern", "practicality"} < {*memoryos.dimensions}
    assert (layers.capacity, layers.batch, layers.accesses) == (200, 50, 10)
    assert (events.event_interval, events.event_importance, events.strategy_interval) == (5, 0.5, 10)
    assert (events.strategy_messages, events.conversations) == (20, 5)
    assert Rules(preset="memoryos", capacity=3).capacity == 3


def test_the_owner_keeps_the_rules():
    """Who opens the memory without rules has the stored ones; given ones replace them, also for those who have it."""
    storage = EphemeralStorage()
    first = TieredMemory(storage, owner="o", rules=Rules(capacity=2, batch=1, prompts={"day": "Sum up."}))
    fill(first, 1)
    second = TieredMemory(storage, owner="o")

    assert second.rules == first.rules
    assert second.rules.capacity == 2

    TieredMemory(storage, owner="o", rules=Rules(capacity=9, dimensions=["calm"]))

    assert (first.rules.capacity, second.rules.dimensions) == (9, ("calm",))
    fill(first, 3, start=2)
    assert len(first.session.owner.pages.queue()) == 4, "the new capacity holds at the next step"
    assert TieredMemory(EphemeralStorage(), owner="o").rules == Rules()


def test_rules_of_a_read_only_memory_are_not_stored():
    """Whoever only reads changes nothing."""
    storage = EphemeralStorage()
    fill(TieredMemory(storage, owner="o"), 1)
    TieredMemory(storage, owner="o", rules=Rules(capacity=2), read_only=True)

    assert TieredMemory(storage, owner="o").rules == Rules()


def test_rules_that_are_no_rules_are_an_error():
    """A dict is no set of rules."""
    with pytest.raises(InvalidSetting, match="rules"):
        TieredMemory(EphemeralStorage(), owner="o", rules={"capacity": 3})
