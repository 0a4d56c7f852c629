"""Episodes: what joins which, and what a merge makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.episodes import (
    LINE_COLUMNS,
    MOST_KEYWORDS,
    MOST_LINES,
    Episode,
    best_episode,
    join_episodes,
    open_episode,
    rebuild_episode,
    returning,
)
from memci.memory.tiers.rules import Rules
from memci.memory.tiers.topics import Chain, PageFeatures, Topic, profile_of

NORTH, EAST = np.eye(2, dtype=np.float32)
FLIGHT = Topic("Flight to Oslo", ("flight", "oslo"), "Flight to Oslo", (0, 1), NORTH)
SEAT = Topic("A seat", ("seat", "flight"), "A seat on that flight", (0,), np.array([0.6, 0.8], dtype=np.float32))
DOG = Topic("Dog", ("dog",), "My dog is ill", (0,), EAST)

vectors = st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3).map(
    lambda each: np.array(each, dtype=np.float32)
)
topics = st.builds(
    Topic,
    theme=st.text(max_size=20),
    keywords=st.lists(st.text(max_size=8), max_size=12).map(tuple),
    content=st.text(max_size=200),
    pages=st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True).map(tuple),
    vector=st.none() | vectors,
)
times = st.none() | st.floats(0, 4e9)


def opened(topic, *times, now=0.0):
    """Return an episode of a topic whose pages have these times, as far as they go."""
    known = dict(enumerate(times))
    return open_episode(topic, [PageFeatures("", at=known.get(n)) for n in range(len(topic.pages))], now)


def episodes(*topics):
    return {key: opened(topic) for key, topic in enumerate(topics, 1)}


@pytest.mark.parametrize(("other", "score"), [(SEAT, 0.6 + 1 / 3), (DOG, 0.0), (FLIGHT, 2.0)])
def test_score_is_cosine_and_jaccard(other, score):
    """M21: what is scored is the cosine of the vectors and the shared keywords, with equal weight."""
    known = episodes(FLIGHT, other)

    assert best_episode(2, known, Rules(threshold=score - 1e-6)) == 1
    assert best_episode(2, known, Rules(threshold=score + 1e-6)) is None


def test_score_without_vectors_is_the_keywords():
    """An episode that is not embedded yet is still known by its words."""
    known = episodes(replace(FLIGHT, vector=None), FLIGHT)

    assert best_episode(2, known, Rules(threshold=1.0)) == 1
    assert best_episode(2, known, Rules(threshold=1.01)) is None


def test_best_is_the_highest_score_at_or_above_the_threshold():
    """An episode joins the one that it belongs to most, the first of equal ones, or stays alone."""
    known = episodes(DOG, FLIGHT, FLIGHT, SEAT)

    assert best_episode(4, known, Rules(threshold=0.6)) == 2
    assert best_episode(4, known, Rules(threshold=0.95)) is None
    assert best_episode(4, {4: known[4]}, Rules(threshold=0.6)) is None
    assert best_episode(4, {1: known[1], 4: known[4]}, Rules(threshold=0.85)) is None


def chains(*talks):
    """Chains of pages, each with the words of a talk, and an episode of its own."""
    made = {key: Chain("c", episode=key) for key in range(1, len(talks) + 1)}
    for key, words in enumerate(talks, 1):
        for word in words.split("|"):
            made[key] = made[key].updated(PageFeatures("", words=tuple(word.split())))
    return made, {key: profile_of(chain) for key, chain in made.items()}


def test_a_chain_returns_to_the_one_episode_that_stands_out():
    """What was said of the dog comes back to it, and what is new, or like all the others, to none."""
    talks = ["dog vet bill house|dog pills", "flight oslo seat house", "guitar strings chord house", "bread dough oven"]
    again, profiles = chains(*talks, "dog vet pills|dog house")
    fresh, others = chains(*talks, "marathon knee shoes house")

    assert returning(5, again, profiles) == 1
    assert returning(5, fresh, others) is None
    assert returning(1, *chains("dog vet")) is None


def test_an_episode_takes_no_chain_that_is_unlike_one_of_its_own():
    """The least similar chain decides: so an episode does not grow into a lump."""
    talks = ["dog vet pills", "dog guitar strings", "flight oslo seat", "bread dough oven", "guitar strings chord song"]
    made, profiles = chains(*talks)
    lump = {**made, 2: replace(made[2], episode=1)}

    assert returning(5, made, profiles) == 2
    assert returning(5, lump, profiles) is None


def test_joined_episodes_have_both():
    """A merge adds pages, visits and times; the importance is the higher one."""
    one = replace(opened(FLIGHT, 1.0, now=5.0), importance=0.2)
    two = replace(opened(SEAT, 7.0, now=9.0), importance=0.9)

    both = join_episodes(one, two, 9.0)

    assert (both.warmth.length, both.warmth.visits, both.first, both.last) == (3, 2, 1.0, 7.0)
    assert both.summary == "Flight to Oslo\nA seat on that flight"
    assert both.importance == 0.9


def test_opened_is_as_warm_as_if_its_pages_had_come_alone():
    """A new episode is as long as its topic, and each page after the first one visited it."""
    episode = opened(FLIGHT, 1.0, 2.0, now=5.0)
    warmth = episode.warmth

    assert (episode.summary, episode.keywords) == ("Flight to Oslo", ("flight", "oslo"))
    assert (warmth.visits, warmth.length, warmth.last_visit, warmth.access_count) == (1, 2, 5.0, 0)
    assert (episode.first, episode.last) == (1.0, 2.0)


def test_merged_follows_what_joined():
    """P11: summary, keywords and vector of an episode are refreshed when pages join; it is longer, and visited."""
    before = opened(FLIGHT, 1.0, 2.0, now=5.0)

    after = join_episodes(before, opened(SEAT, 8.0, now=9.0), 9.0)

    assert after.summary == "Flight to Oslo\nA seat on that flight"
    assert after.keywords == ("flight", "seat", "oslo")
    assert after.embedding == pytest.approx(np.array([2.6, 0.8]) / np.hypot(2.6, 0.8))
    assert (after.warmth.visits, after.warmth.length, after.warmth.last_visit) == (2, 3, 9.0)
    assert (after.first, after.last) == (1.0, 8.0)


def test_rebuilt_has_nothing_of_the_pages_that_were_erased():
    """Title, keywords, vector and times are those of the pages that are left; the visits stay."""
    before = join_episodes(opened(FLIGHT, 1.0, 2.0), opened(DOG, 8.0), 9.0)

    after = rebuild_episode(before, [PageFeatures("", "My dog is ill", ("dog",), EAST, 8.0)])

    assert (after.summary, after.keywords, after.first, after.last) == ("My dog is ill", ("dog",), 8.0, 8.0)
    assert after.embedding == pytest.approx(EAST)
    assert (after.warmth.length, after.warmth.visits) == (1, before.warmth.visits)


def test_visited_counts_as_use():
    """What a search brings back is warmer, more used and newer."""
    after = opened(FLIGHT, now=5.0).visited(9.0)

    warmth = after.warmth
    assert (warmth.visits, warmth.access_count, warmth.last_visit) == (2, 1, 9.0)


def test_merged_forgets_the_line_that_says_least():
    """When a summary grows too long, it keeps its first line, its last one and those that are most about the topic."""
    episode = opened(FLIGHT)
    for number in range(MOST_LINES - 1):
        episode = join_episodes(episode, opened(replace(FLIGHT, content=f"oslo flight {number}")), 0.0)
    episode = join_episodes(episode, opened(replace(FLIGHT, content="nothing of the kind")), 0.0)

    episode = join_episodes(episode, opened(replace(FLIGHT, content="flight to oslo at last")), 0.0)

    lines = episode.summary.splitlines()
    assert lines[0] == "Flight to Oslo"
    assert lines[-1] == "flight to oslo at last"
    assert "nothing of the kind" not in lines


@given(topics, st.lists(st.tuples(topics, times, times, st.floats(0, 4e9)), max_size=12))
def test_merged_any_number_of_times_stays_bounded(first, joins):
    """However many pages join, the record stays small and its counts exact."""
    episode = opened(first)
    for topic, began, ended, now in joins:
        before = episode
        times_ = [at for at in (began, ended) if at is not None]
        episode = join_episodes(before, opened(topic, *times_, now=now), now)

        assert episode.warmth.length == before.warmth.length + len(topic.pages)
        assert episode.warmth.visits == before.warmth.visits + len(topic.pages)
        assert episode.warmth.last_visit >= before.warmth.last_visit
    assert len(episode.keywords) <= MOST_KEYWORDS
    lines = episode.summary.splitlines()
    assert len(lines) <= MOST_LINES
    assert all(len(line) <= LINE_COLUMNS * 9 for line in lines)
    assert isinstance(episode, Episode)
    assert episode.first is None or episode.first <= episode.last
