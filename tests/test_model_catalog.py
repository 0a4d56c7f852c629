"""What is known of a model by its name."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import CachePricing, Context, EphemeralStorage, Policy
from memci.model_catalog import facts_of, known_window, prices_source, pricing_of, reads_breakpoints


@pytest.mark.parametrize(
    ("model", "window"),
    [
        ("gpt-4o", 128_000),
        ("openai/gpt-4o-mini-2024-07-18", 128_000),
        ("ft:gpt-4o-mini:us::x", 128_000),
        ("gpt-4", 8_192),
        ("gpt-4-turbo-2024-04-09", 128_000),
        ("gpt-4.1-nano", 1_000_000),
        ("gpt-3.5-turbo", 16_385),
        ("gpt-35-turbo", 16_385),
        ("gpt-5-mini", 272_000),
        ("gpt-5.1-chat-latest", 128_000),
        ("gpt-5.4", 922_000),
        ("gpt-5.4-mini", 272_000),
        ("gpt-6-sol", 922_000),
        ("o3-mini", 200_000),
        ("o1-preview", 128_000),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", 200_000),
        ("claude-sonnet-4-20250514", 200_000),
        ("openrouter/anthropic/claude-opus-4.7", 1_000_000),
        ("claude-haiku-5-5", 1_000_000),
        ("claude-opus-9", 200_000),
        ("claude-2.0", 100_000),
        ("models/gemini-1.5-pro", 1_000_000),
        ("gemini-2.5-pro", 1_048_576),
    ],
)
def test_window_is_the_one_that_the_maker_publishes(model, window):
    """The name may carry a provider, a date or a region; where the input has a limit of its own, that one counts."""
    assert known_window(model) == window


@pytest.mark.parametrize(
    "model",
    [None, "", "llama-3.1-70b", "gpt-oss-120b", "gpt-9", "gpt-4o-realtime-preview", "gemini-2.5-flash-image", "my-gpt"],
)
def test_window_is_not_guessed(model):
    """A model of another maker, of another kind or of a later time has no window: the caller gives it."""
    assert known_window(model) is None


@pytest.mark.parametrize(
    ("model", "read", "write", "minimum", "lifetime", "steps"),
    [
        ("gpt-6-sol", 0.1, 1.25, 1_024, 1_800, ((272_000, 2.0),)),
        ("gpt-6.1-terra", 0.05, 1.25, 1_024, 1_800, ((272_000, 2.0),)),
        ("gpt-5", 0.1, 1.0, 1_024, 300, ()),
        ("gpt-4-turbo", 1.0, 1.0, 1_024, 300, ()),
        ("claude-opus-4-7", 0.1, 1.25, 4_096, 300, ()),
        ("claude-opus-4-8", 0.1, 1.25, 1_024, 300, ()),
        ("claude-opus-5", 0.1, 1.25, 512, 300, ()),
        ("claude-opus-5-5", 0.05, 1.25, 512, 300, ()),
        ("us.anthropic.claude-fable-5-1", 0.025, 1.25, 1_024, 300, ()),
        ("claude-haiku-5-5", 0.1, 1.25, 1_024, 300, ((100_000, 5.0),)),
        ("deepseek-v4-flash", 0.02, 1.0, 64, 3_600, ()),
        ("gpt-oss-120b", 0.1, 1.0, 1_024, 300, ()),
    ],
)
def test_prices_are_those_of_the_data_and_lifetimes_our_own(model, read, write, minimum, lifetime, steps):
    """A model without a price for reading from a cache has none, unless others run it."""
    pricing = pricing_of(model)

    assert (pricing.read, pricing.write, pricing.minimum, pricing.lifetime) == (read, write, minimum, lifetime)
    assert pricing.steps == steps
    assert pricing.input is not None


def test_a_long_request_costs_more_from_a_step_on():
    """The step is for requests above it, and is stored with the other prices of a policy."""
    store, pricing = EphemeralStorage(), CachePricing(input=1.0, steps=((1_000, 2.0), (2_000, 5.0)))
    Context.open(store, id="a", window=4_000, policy=Policy(pricing=pricing)).append_turn("Hello")

    assert [pricing.factor(total) for total in (1_000, 1_001, 2_001)] == [1.0, 2.0, 5.0]
    assert Context.open(store, id="a")._parts.window.settings.pricing == pricing


@pytest.mark.parametrize(
    ("model", "policy", "warned"), [("my-model", {}, True), ("my-model", {"pricing": CachePricing(read=0.3)}, False)]
)
def test_a_model_without_prices_is_named_by_the_report(model, policy, warned):
    """The report warns of prices that are a guess, and of none that were given."""
    context = Context.open(EphemeralStorage(), id="a", window=4_000, model=model, policy=Policy(**policy))

    assert any(prices_source() in warning for warning in context.report().warnings) is warned


def test_prices_are_loaded_only_where_a_model_is_named():
    """Neither the import nor a context whose window and prices were given loads the data."""
    code = (
        "import sys; from memci import CachePricing, Context, EphemeralStorage, Policy\n"
        "given = dict(window=4_000, policy=Policy(pricing=CachePricing()))\n"
        "context = Context.open(EphemeralStorage(), id='a', model='gpt-4o', **given)\n"
        "context.append_turn('Hello'); context.render(); print('genai_prices' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"]


def test_azure_has_another_name_for_an_old_model():
    """It is no model of the future, which would read breakpoints."""
    assert not reads_breakpoints("gpt-35-turbo")
    assert pricing_of("gpt-35-turbo") == pricing_of("gpt-3.5-turbo")


@given(st.text())
def test_any_name_has_facts(model):
    """Every name is counted by some rule, and never by less than the vocabulary itself counts."""
    facts = facts_of(model)

    assert facts.percent >= 100
    assert facts.exact <= (facts.percent == 100)
