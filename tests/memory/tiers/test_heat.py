"""Heat: two of them, computed from what is stored, and never stale."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.heat import Warmth, coldest, heat
from memci.memory.tiers.rules import Rules

times = st.floats(min_value=0, max_value=4e9)
counts = st.integers(min_value=0, max_value=10_000)


def test_heat_is_the_weighted_sum_of_the_paper():
    """With the paper's weights, 2 visits and 3 pages of an episode visited just now make 6."""
    assert heat(2, 3, 100.0, 100.0) == 6.0
    assert heat(2, 3, 100.0, 100.0, Rules(visit_weight=2.0, length_weight=0.0, recency_weight=0.5)) == 4.5


def test_recency_after_one_time_constant_is_a_third():
    """P12: recency decays with the time that passed, to 1/e after one time constant, which is the paper's."""
    assert heat(0, 0, 0.0, 1e7) == pytest.approx(1 / math.e)
    assert heat(0, 0, 0.0, 60.0, Rules(tau_seconds=60)) == pytest.approx(1 / math.e)


@given(times, times)
def test_recency_of_any_times_is_between_0_and_1(last, now):
    """P12: also a visit in the future never counts for more than one just now."""
    assert 0 <= heat(0, 0, last, now) <= 1


@given(counts, counts, times, times, times)
def test_heat_never_rises_by_waiting(visits, length, last, now, later):
    """Heat falls, or stays, while nothing happens."""
    now, later = sorted((now, later))

    assert heat(visits, length, last, later) <= heat(visits, length, last, now)


def test_analysis_leaves_the_lifetime_heat():
    """R28: an episode that was analysed starts again from 0 for promotion, and stays as warm as it was for eviction."""
    warm = Warmth(visits=9, length=5, last_visit=10.0)

    after = warm.analysed(warm)

    assert after.since_analysis(10.0) == 0
    assert after.lifetime(10.0) == warm.lifetime(10.0) == 15


def test_visits_during_an_analysis_count_for_the_next_one():
    """Only what was sent is analysed: a page that joined meanwhile still counts."""
    sent = Warmth(visits=3, length=4, last_visit=1.0)
    now = sent.grown(2, 2.0)

    assert now.analysed(sent).since_analysis(2.0) == 2 + 2 + 1


def test_an_older_analysis_takes_nothing_back():
    """Two analyses that end in the wrong order leave the later state."""
    first = Warmth(visits=1, length=1)
    second = Warmth(visits=5, length=5)

    assert second.analysed(second).analysed(first) == second.analysed(second)


def test_every_hot_episode_is_seen_when_the_hottest_is_analysed():
    """P06: an episode at 50 that is fully analysed does not starve one at 6 that is not."""
    starving = Warmth(visits=1, length=5)
    full = Warmth(visits=40, length=10, analysed_visits=40, analysed_length=10)

    hot = [
        name for name, one in (("full", full), ("starving", starving)) if one.since_analysis(0.0) >= Rules().promoted
    ]

    assert hot == ["starving"]


def test_a_visit_in_the_past_keeps_the_last_visit():
    """Clocks go back; the last visit does not."""
    assert Warmth(last_visit=10.0).visited(5.0).last_visit == 10.0
    assert Warmth(last_visit=10.0).grown(1, 5.0).last_visit == 10.0


def test_eviction_never_takes_an_episode_that_just_changed():
    """P05: the newest episode is the coldest as it enters, and stays."""
    old = {key: Warmth(visits=key, length=3, access_count=key) for key in (1, 2, 3)}
    episodes = {**old, 4: Warmth(length=1)}

    assert coldest(episodes, Rules(episodes=3), now=0.0, changed={4}) == [1]
    assert coldest(episodes, Rules(episodes=3, order="lfu"), now=0.0, changed={4}) == [1]


def test_eviction_orders_by_lifetime_heat_or_by_use():
    """P09: lowest heat by default; the least often accessed on request."""
    episodes = {1: Warmth(visits=9, length=9), 2: Warmth(visits=1, length=1, access_count=5)}

    assert coldest(episodes, Rules(episodes=1), now=0.0) == [2]
    assert coldest(episodes, Rules(episodes=1, order="lfu"), now=0.0) == [1]


@given(
    st.dictionaries(st.integers(0, 50), st.builds(Warmth, visits=counts, length=counts, last_visit=times), max_size=20),
    st.integers(1, 20),
    st.sets(st.integers(0, 50)),
)
def test_eviction_takes_exactly_what_is_too_many(episodes, capacity, changed):
    """As many go as are too many, unless those left all changed just now; nobody who stays and may go is colder."""
    gone = coldest(episodes, Rules(episodes=capacity), now=1e9, changed=changed)

    free = [key for key in episodes if key not in changed]
    assert len(gone) == min(max(0, len(episodes) - capacity), len(free))
    assert not set(gone) & changed
    warmest = max((episodes[key].lifetime(1e9) for key in gone), default=0)
    assert all(episodes[key].lifetime(1e9) >= warmest for key in free if key not in gone)
