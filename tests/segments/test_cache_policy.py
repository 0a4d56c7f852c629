"""The cache policy as a pure function: its levels, whatever the numbers, and the cases that the design names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import CachePricing
from memci.segments.cache_policy import CacheUse, cost, levels

SIZES = {"budget": 30_000, "fixed": 2_000, "ceiling": 1_200, "contents": 1_000}
KNOWN = CacheUse(grow=150.0, uses=40, far=2, gaps=5)


def of(preset="economy", *, use=KNOWN, share=None, pricing=None, **sizes):
    """Return the levels, as most tests ask for them."""
    return levels(preset, share, pricing or CachePricing(), use, **{**SIZES, **sizes})


@given(
    st.sampled_from(["economy", "balanced"]),
    st.none() | st.floats(0, 1),
    st.builds(
        CachePricing,
        read=st.floats(0, 2),
        write=st.floats(0, 4),
        minimum=st.integers(0, 50_000),
        granularity=st.integers(0, 1_024),
    ),
    st.builds(
        CacheUse,
        grow=st.floats(0, 1e6),
        uses=st.integers(0, 10**6),
        far=st.integers(0, 10**6),
        gaps=st.integers(0, 10**6),
    ),
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.integers(0, 10**4),
    st.integers(0, 10**4),
)
def test_levels_are_sizes_whatever_the_numbers(preset, share, pricing, use, budget, fixed, ceiling, contents):
    """No price and no count makes a level that is no size, or a compaction that could never end."""
    found = levels(preset, share, pricing, use, budget=budget, fixed=fixed, ceiling=ceiling, contents=contents)

    room = max(0, budget - fixed - found.contents)
    assert 0 <= found.contents <= max(ceiling, min(max(1.75 * ceiling, 4_800), (budget - fixed) / 4))
    assert 0 <= found.least <= max(found.warm, 0) <= max(room, 0)
    assert found.trigger <= budget
    assert found.warm <= room
    assert found.warm >= 0 or found.trigger == budget
    assert (found.cold is None) == (share is not None)
    assert found.cold is None or found.cold >= 0
    assert found.reason


def test_a_share_leaves_the_rest_of_the_room_and_knows_no_gap():
    """A fixed share is what it was before there were prices."""
    found = of("economy", share=0.25)

    assert (found.trigger, found.warm, found.cold) == (30_000, 20_100, None)


@pytest.mark.parametrize(
    ("preset", "trigger", "warm", "cold"), [("economy", 25_662, 2_410, 8_435), ("balanced", 30_000, 13_400, 13_400)]
)
def test_a_context_whose_needs_were_not_seen_is_kept_by_its_room(preset, trigger, warm, cold):
    """A chat shows no uses: it keeps a share of the room, and "economy" never fills a fifth of the rest."""
    found = of(preset, use=CacheUse())

    assert (found.trigger, found.warm, found.cold) == (trigger, warm, cold)


def test_an_agent_whose_needs_were_seen_has_a_trigger_and_a_floor_of_its_own():
    """The window is a limit, no target: what is not used is not carried."""
    found = of("economy")

    assert found.warm == 4_800
    assert found.trigger == 2_400 + 4_800 + 4_800  # √(2 · 1.15 · 5,200 · 150 / 0.1) is less than the floor
    assert of("economy", budget=200_000).trigger == found.trigger
    assert of("balanced").trigger == 2_400 - 400 + 1_200 + 6_000 + 6_000
    assert of("balanced", use=CacheUse()).trigger == 30_000


@pytest.mark.parametrize("use", [KNOWN, CacheUse(uses=1, gaps=1)])
def test_an_agent_with_gaps_keeps_most_of_a_small_window(use):
    """What a long task said at its beginning is needed at its end, and what was before it leaves at the gap."""
    small = {"budget": 8_000, "fixed": 2_000, "ceiling": 800}

    assert of("balanced", use=use, **small).warm == 4_420
    assert of("economy", use=use, **small).warm == (4_216 if use.gaps < 3 else 4_800)
    assert of("economy", use=use._replace(gaps=0, uses=40), **small).warm == 5_200 // 3
    assert of("economy", use=use).warm == 4_800
    assert of("balanced", use=use).warm == (6_000 if use.gaps == 5 else 13_400)


@pytest.mark.parametrize(("preset", "kept"), [("economy", 0), ("balanced", 4_020)])
def test_nothing_from_before_a_gap_is_kept_where_nothing_was_needed_across_gaps(preset, kept):
    """At most 7 % of the uses may be far; else three quarters of the floor stay, and in balanced half of the room."""
    assert of(preset).cold == kept
    assert of(preset, use=KNOWN._replace(far=3)).cold == of(preset, use=KNOWN._replace(gaps=2)).cold > kept
    needing = of(preset, use=KNOWN._replace(gaps=2))
    assert needing.cold == (needing.warm * 3 // 4 if preset == "economy" else needing.warm)


def test_an_economy_that_needs_nothing_from_before_a_gap_lists_a_third():
    """The lines of what is not needed are read in each request, so fewer stay; what may be needed keeps its ceiling."""
    assert of("economy").contents == 400
    assert of("balanced").contents == of("economy", share=0.5).contents == 1_200
    for use in (KNOWN._replace(far=5), KNOWN._replace(gaps=2)):
        assert of("economy", use=use).contents == 1_200


def test_an_economy_lists_more_where_it_is_not_known_what_is_needed():
    """A page that is listed can be recalled, and a line costs little: up to 13 % of the window."""
    for budget, contents in ((8_000, 1_200), (20_000, 2_600), (128_000, 4_800)):
        assert of("economy", use=CacheUse(), budget=budget).contents == contents
    assert of("economy", use=CacheUse(), chosen=True).contents == of("balanced", use=CacheUse()).contents == 1_200


def test_an_economy_keeps_the_users_words_of_a_chat_with_long_answers():
    """What such a chat needs was mostly said by the user: few answers stay, and few lines; brief talk stays whole."""
    chat = CacheUse(grow=1_200.0)
    found = of("economy", use=chat, budget=15_000)

    assert (found.contents, found.words, found.warm, found.cold) == (600, 6_750, 620, 620)
    assert found.trigger == 2_000 + 600 + 620 + int((2 * 11.5 * (600 + 620) * 1_200) ** 0.5)
    assert of("economy", use=chat, chosen=True).contents == 1_200
    for other in (of("economy", use=chat._replace(grow=200.0)), of("balanced", use=chat)):
        assert (other.words, other.trigger) == (0, of(other.reason.split(":")[0], use=CacheUse()).trigger)
    assert of("economy", use=chat._replace(uses=20)).words == 900, "an agent keeps those of its task"


def test_nothing_falls_below_what_a_provider_caches():
    """A prefix that is too short is never cached: the levels stay above it."""
    pricing = CachePricing(minimum=8_000)
    found = of("economy", pricing=pricing)

    assert found.least == found.cold == int(1.1 * 8_000) - 2_000 - 320
    assert found.warm == found.least
    assert found.trigger >= 1.1 * 8_000 + found.warm


@pytest.mark.parametrize(
    ("cached", "total", "wanted"), [(0, 500, 500), (900, 2_000, 2_500), (1_100, 2_000, 102.4 + 1.25 * 976)]
)
def test_cost_knows_the_least_prefix_and_its_steps(cached, total, wanted):
    """Below the minimum nothing is written or read; a cached prefix ends at a step."""
    assert cost(CachePricing(granularity=128), cached, total) == pytest.approx(wanted)


def test_an_economy_stays_below_a_step_of_the_price():
    """Above a step each token of the request costs more, so the room ends there; a higher budget is no reason."""
    steps = CachePricing(steps=((100_000, 5.0),))
    sizes = {"use": CacheUse(), "budget": 900_000, "ceiling": 1_200}

    assert of(pricing=steps, **sizes) == of(**{**sizes, "budget": 100_000})
    assert of("balanced", pricing=steps, **sizes).trigger == 900_000
    assert of(pricing=CachePricing(steps=((100_000, 1.0),)), **sizes) == of(**sizes)
