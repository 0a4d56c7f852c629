"""What is known of a model by its name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.model_catalog import facts_of, known_window


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o-mini-2024-07-18", 128_000),
        ("ft:gpt-4o-mini:us::x", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4.1-nano", 1_047_576),
        ("gpt-3.5-turbo", 16_385),
        ("gpt-5-mini", 272_000),
        ("gpt-5.1-chat-latest", 128_000),
        ("gpt-5.4", 922_000),
        ("gpt-5.4-mini", 272_000),
        ("o3-mini", 200_000),
        ("o1-preview", 128_000),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("openrouter/anthropic/claude-opus-4.7", 1_000_000),
        ("claude-2.0", 100_000),
        ("models/gemini-1.5-pro", 2_097_152),
        ("gemini-2.5-flash", 1_048_576),
    ],
)
def test_window_is_the_one_that_the_maker_publishes(model, window):
    """The name may carry a provider, a date or a region."""
    assert known_window(model) == window == facts_of(model).window


@pytest.mark.parametrize(
    "model",
    [None, "", "llama-3.1-70b", "gpt-oss-120b", "gpt-9", "gpt-4o-realtime-preview", "gemini-2.5-flash-image", "my-gpt"],
)
def test_window_is_not_guessed(model):
    """A model of another maker, of another kind or of a later time has no window: the caller gives it."""
    assert known_window(model) is None


@given(st.text())
def test_any_name_has_facts(model):
    """Every name is counted by some rule, and never by less than the vocabulary itself counts."""
    facts = facts_of(model)

    assert facts.percent >= 100
    assert facts.exact <= (facts.percent == 100)
