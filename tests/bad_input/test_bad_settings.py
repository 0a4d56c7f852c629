"""Settings that make no sense: each is named, and no context is made."""

import math
from typing import Any

import pytest

from memci import Context, EphemeralStorage
from memci.errors import BudgetExceeded, InvalidSetting
from memci.storage import Storage
from tests.door import open_context

WRONG_SETTINGS = {
    "id": [{"id": ""}, {"id": None}, {"id": 7}, {"id": b"x"}],
    "window": [
        {"window": 0},
        {"window": -5},
        {"window": 255},
        {"window": 10**9},
        {"window": "2000"},
        {"window": 2000.5},
        {"window": True},
        {"window": math.nan},
    ],
    "reply": [{"reply": -1}, {"reply": 2_000}, {"reply": 5_000}, {"reply": "10"}, {"reply": 1.5}],
    "preset": [{"preset": "fast"}, {"preset": 3}],
    "archive_share": [
        {"archive_share": -0.1},
        {"archive_share": 1.5},
        {"archive_share": "half"},
        {"archive_share": math.nan},
    ],
    "active_pages": [{"active_pages": 0}, {"active_pages": -1}, {"active_pages": 2.5}],
    "contents_tokens": [{"contents_tokens": -1}, {"contents_tokens": 10**9}, {"contents_tokens": "many"}],
    "never_recalled": [{"never_recalled": 0}, {"never_recalled": -3}, {"never_recalled": "x"}],
    "stale": [{"stale": 0}, {"stale": 1.5}],
    "notice": [{"notice": "yes"}, {"notice": 2}],
    "model": [{"model": 7}, {"model": b"gpt-4"}],
    "system": [{"system": 7}, {"system": ["x"]}, {"system": b"x"}],
    "counter": [{"counter": 7}, {"counter": "o200k"}],
    "owner": [{"owner": 7}, {"owner": b"x"}],
    "nonce": [{"nonce": "x"}, {"nonce": "</memci"}, {"nonce": 7}, {"nonce": "0000000g"}],
}


@pytest.mark.parametrize(
    ("name", "wrong"), [(name, wrong) for name, all_wrong in WRONG_SETTINGS.items() for wrong in all_wrong], ids=repr
)
def test_a_setting_that_makes_no_sense_is_named(storage: Storage, name: str, wrong: dict[str, Any]) -> None:
    """The error carries the name of the argument, and no context is made."""
    with pytest.raises(InvalidSetting) as caught:
        open_context(storage, **({"id": "x", "window": 2_000} | wrong))

    assert caught.value.name == name
    assert name in str(caught.value)
    assert list(storage.contexts()) == []


def test_a_new_context_needs_a_window(storage: Storage) -> None:
    """Nothing can be guessed: the error says what a window is."""
    with pytest.raises(InvalidSetting, match="context length in tokens") as caught:
        Context.open(storage, id="x")

    assert caught.value.name == "window"
    assert list(storage.contexts()) == []


@pytest.mark.parametrize(
    "store", [None, 7, b"agent.db", object(), EphemeralStorage, ["agent.db"]], ids=lambda store: str(type(store))
)
def test_a_store_is_a_path_or_a_store(store: Any) -> None:
    """Everything else is refused by name."""
    with pytest.raises(InvalidSetting) as caught:
        Context.open(store, id="x", window=2_000)

    assert caught.value.name == "store"


def test_a_system_prompt_that_is_larger_than_the_window_is_refused(storage: Storage) -> None:
    """The error lists what can't be reduced, and no context is made."""
    with pytest.raises(BudgetExceeded) as caught:
        Context.open(storage, id="x", window=2_000, system="word " * 3_000)

    assert caught.value.parts["system"] > 3_000
    assert sum(caught.value.parts.values()) > caught.value.budget == 1_750
    assert "system 3," in str(caught.value)
    assert list(storage.contexts()) == []
