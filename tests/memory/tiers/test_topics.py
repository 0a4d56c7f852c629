"""Topics: what pages of one thing are called."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.topics import PageFeatures, Topic, mean, name_topic, topic_of

words = st.lists(st.sampled_from(("dog", "vet", "flight", "oslo", "上海", "酒店")), max_size=3).map(tuple)
vectors = st.none() | st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3).map(
    lambda values: np.array(values, dtype=np.float32)
)
pages = st.builds(PageFeatures, text=st.text(max_size=20), title=st.text(max_size=20), keywords=words, vector=vectors)
batches = st.lists(pages, max_size=8)
themes = st.builds(Topic, theme=st.text(max_size=10), keywords=words, content=st.text(max_size=10), vector=vectors)

FLIGHT = [
    PageFeatures("", "Flight to Oslo", ("flight", "oslo")),
    PageFeatures("", "A seat on it", ("flight", "seat", "oslo")),
]
DOG = [
    PageFeatures("", "My dog is ill", ("dog", "ill")),
    PageFeatures("", "The bill of the vet", ("vet", "dog", "bill")),
]


@given(batches.filter(len), themes)
def test_topic_that_a_model_names_has_its_pages_and_says_something(batch, theme):
    """M20: whatever a model names, the topic has the pages of its group, and what is left out is said by them."""
    found = name_topic(batch, range(len(batch)), theme)

    plain = name_topic(batch, range(len(batch)), Topic(""))
    assert found.pages == tuple(range(len(batch)))
    assert found.content == (theme.content.strip() or plain.content)
    assert set(theme.keywords) <= set(found.keywords)


def test_topic_of_one_page_is_in_its_own_words():
    """A page is about one thing, in its own words."""
    only = topic_of([FLIGHT[0]], [0])

    assert (only.theme, only.keywords, only.content, only.pages) == (
        "Flight to Oslo",
        ("flight", "oslo"),
        only.theme,
        (0,),
    )


def test_topics_of_different_batches_have_different_content():
    """P15: there is no text that stands for every batch: the content is made of the batch itself."""
    assert topic_of(FLIGHT, range(2)).content != topic_of(DOG, range(2)).content
    assert name_topic(FLIGHT, range(2), Topic("")).content == topic_of(FLIGHT, range(2)).content


def test_mean_is_of_unit_length_and_of_one_model():
    """The mean of unit vectors is one; a vector of another dimension takes no part; opposites leave the last one."""
    north, east = np.eye(2, dtype=np.float32)

    assert mean([north, east]) == pytest.approx(np.array([0.5, 0.5]) ** 0.5)
    assert mean([np.ones(3, dtype=np.float32), north]) == pytest.approx(north)
    assert mean([north, -north]) == pytest.approx(-north)
    assert mean([None]) is None
