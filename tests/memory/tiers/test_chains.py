"""Chains: who goes on from whom, and a summary that does not drift."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memci.memory.backend import PageRecord
from memci.memory.tiers.topics import (
    MOST_POINTS,
    POINT_COLUMNS,
    ChainSummary,
    PageFeatures,
    continues,
    cosine,
    page_text,
)
from memci.text.sanitize import width

NORTH = np.array([1.0, 0.0], dtype=np.float32)
NORTH_EAST = np.array([0.8, 0.6], dtype=np.float32)
EAST = np.array([0.0, 1.0], dtype=np.float32)
vectors = arrays.arrays(np.float32, 4, elements=st.floats(width=32))


@pytest.mark.parametrize(
    ("before", "after", "continuous"),
    [
        (PageFeatures("", vector=NORTH), PageFeatures("", vector=NORTH_EAST), True),
        (PageFeatures("", vector=NORTH), PageFeatures("", vector=EAST), False),
        (PageFeatures("", keywords=("violin", "oslo")), PageFeatures("", keywords=("Oslo", "violins")), True),
        (PageFeatures("", keywords=("violin",)), PageFeatures("", keywords=("dog",)), False),
        (PageFeatures("", keywords=("上海",)), PageFeatures("", keywords=("上海", "酒店")), True),
        (PageFeatures("", vector=NORTH, at=0.0), PageFeatures("", vector=NORTH, at=7 * 3600.0), False),
        (PageFeatures("", vector=NORTH), PageFeatures("", vector=NORTH, at=7 * 3600.0), True),
        (PageFeatures(""), PageFeatures(""), False),
    ],
)
def test_continuity_is_likeness_without_a_long_gap(before, after, continuous):
    """Alike by vectors or keywords, and not long after: continuous; pages of which nothing is known are not."""
    assert continues(before, after) is continuous


@given(vectors, vectors)
def test_cosine_of_any_vectors_is_bounded(some, other):
    """A cosine is between -1 and 1 and the same both ways, also of zero, huge and broken vectors."""
    assert -1 <= cosine(some, other) == cosine(other, some) <= 1


def test_cosine_of_a_zero_vector_or_another_model_is_0():
    """A zero vector matches nothing, nor does a vector of another dimension."""
    assert cosine(np.zeros(2, dtype=np.float32), NORTH) == 0
    assert cosine(np.ones(3, dtype=np.float32), NORTH) == 0
    assert cosine(None, NORTH) == 0


@given(st.lists(st.text(max_size=200), max_size=40))
def test_chain_summary_of_any_titles_is_bounded(titles):
    """P10: whatever the length of the chain, its summary is one bounded value that took one step for each page."""
    summary = ChainSummary()
    for title in titles:
        summary = summary.updated(title)

    assert summary.pages == len(titles)
    assert len(summary.points) <= MOST_POINTS
    assert width(str(summary)) <= MOST_POINTS * (POINT_COLUMNS + 3) + 30
    assert "\n" not in str(summary)


def test_chain_summary_tells_the_beginning_and_the_latest():
    """M17: each point is a page's own title, unchanged since: no summary of a summary."""
    summary = ChainSummary()
    for number in range(20):
        summary = summary.updated(f"step {number}")

    assert str(summary) == "step 0 · … (14 more) · step 15 · step 16 · step 17 · step 18 · step 19"


def test_chain_summary_of_the_same_title_says_it_once():
    """A page that says nothing new adds nothing but itself."""
    assert ChainSummary().updated("a").updated("a").updated(" ") == ChainSummary(3, ("a",))


def test_page_text_is_what_was_said():
    """M12: one text of a page; answers of tools and quotes of other pages are not what the page says."""
    page = PageRecord(
        "c",
        1,
        1,
        (
            (1, {"role": "user", "content": "Book it", "name": "Mel"}),
            (2, {"role": "assistant", "content": None, "tool_calls": []}),
            (3, {"role": "tool", "tool_call_id": "1", "content": "{...}"}),
            (4, {"role": "tool", "tool_call_id": "2", "content": "an old page"}),
            (5, {"role": "assistant", "content": "Booked."}),
        ),
        quotes=frozenset({4}),
    )

    assert page_text(page) == "Mel: Book it\nassistant: Booked."
    assert page_text(PageRecord("c", 1, 1, page.entries[2:4], quotes=page.quotes)) == "{...}"
