"""Chains: who goes on from whom, and a summary that does not drift."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from memci.memory.backend import PageRecord
from memci.memory.tiers.topics import (
    ENOUGH,
    MOST_POINTS,
    MOST_WORDS,
    POINT_COLUMNS,
    Chain,
    PageFeatures,
    begins_with_greeting,
    cosine,
    names_of,
    page_text,
    words_of,
)
from memci.text.sanitize import width

NORTH = np.array([1.0, 0.0], dtype=np.float32)
HOUR = 3600.0
FLIGHT = tuple(f"flight{number}" for number in range(ENOUGH))
DOG = tuple(f"dog{number}" for number in range(ENOUGH))
LONG = [tuple(f"{subject}{number}" for number in range(60)) for subject in ("flight", "dog")]
vectors = arrays.arrays(np.float32, 4, elements=st.floats(width=32))


def page(*words, at=None, greets=False):
    return PageFeatures("", at=at, words=words, greets=greets)


@pytest.mark.parametrize(
    ("before", "ahead", "goes_on"),
    [
        (page(*FLIGHT), [page(*DOG)], False),
        (page(*FLIGHT), [page(*DOG, FLIGHT[0])], True),
        (page(*FLIGHT), [page(*DOG[:3]), page(*DOG[3:])], False),
        (page(*FLIGHT), [page(*DOG[:3]), page(*DOG[3:], FLIGHT[1])], True),
        (page("flight"), [page("dog")], True),
        (page(*FLIGHT), [page("thanks")], True),
        (page(*FLIGHT, at=0.0), [page(*FLIGHT, at=7 * HOUR)], False),
        (page(*FLIGHT, at=0.0), [page(*FLIGHT, at=5 * HOUR)], True),
        (page(*FLIGHT), [page(*FLIGHT, greets=True)], False),
        (page(*FLIGHT, at=0.0), [page(*DOG[:3], at=1.0), page(*DOG[3:], at=9 * HOUR)], True),
        (page(*FLIGHT), [page(*DOG[:3]), page(*DOG[3:], greets=True)], True),
        (page(*LONG[0]), [page(*LONG[1], *LONG[0][:2])], False),
        (page(*LONG[0]), [page(*LONG[1], *LONG[0][:6])], True),
    ],
)
def test_a_chain_goes_on_unless_the_talk_pauses_or_turns(before, ahead, goes_on):
    """A gap ends it, a greeting, and a dozen words on each side without a common one, or long ones with hardly any."""
    assert Chain().updated(before).goes_on(ahead, 6 * HOUR) is goes_on


def test_a_chain_is_compared_by_all_its_last_pages():
    """Short pages together have enough words."""
    chain = Chain()
    for word in FLIGHT:
        chain = chain.updated(page(word))

    assert not chain.goes_on([page(*DOG)], HOUR)


def record(*said, **names):
    return PageRecord(
        "c", 1, 1, tuple((n, {"role": role, "content": text, **names}) for n, (role, text) in enumerate(said))
    )


def test_names_and_labels_are_no_content():
    """What a page is about does not depend on who speaks: names and roles are in no text, keyword or word of it."""
    said = record(("user", "Hey Caroline! My dog Rex is ill."), ("assistant", "Poor Rex."), name="Caroline")
    words = words_of(said, names_of([said]))

    assert "rex" in words
    assert "ill" in words
    assert not {"caroline", "user", "assistant"} & {*words}
    assert begins_with_greeting(said)


@pytest.mark.parametrize(
    "text", ["你好，我想问", "Bonjour, je", "Hallo zusammen", "hola, ¿qué", "Привет!", "こんにちは"]
)
def test_greetings_of_other_languages_begin_a_talk(text):
    """The tables of each language have greetings."""
    assert begins_with_greeting(record(("user", text)))


def test_words_of_chinese_are_pairs_of_characters():
    """A script without blanks has no words to compare."""
    one, two = (words_of(record(("user", text))) for text in ("我的猫不吃东西", "那只猫不吃药"))

    assert {"不吃"} <= set(one) & set(two)


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
def test_overview_of_any_titles_is_bounded(titles):
    """P10: whatever the length of the chain, its overview is one bounded value that took one step for each page."""
    chain = Chain()
    for title in titles:
        chain = chain.updated(PageFeatures("", words=tuple(title))).noted(title)

    assert len(chain.points) <= MOST_POINTS
    assert len(chain.words) <= MOST_WORDS
    assert width(str(chain)) <= MOST_POINTS * (POINT_COLUMNS + 3) + 30
    assert "\n" not in str(chain)


def test_overview_tells_the_beginning_and_the_latest():
    """M17: each point is a page's own title, unchanged since: no summary of a summary."""
    chain = Chain()
    for number in range(20):
        chain = chain.noted(f"step {number}")

    assert str(chain) == "step 0 · … (14 more) · step 15 · step 16 · step 17 · step 18 · step 19"


def test_overview_of_the_same_title_says_it_once():
    """A page that says nothing new adds nothing but itself."""
    assert Chain().noted("a").noted("a").noted(" ").points == ("a",)


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

    assert page_text(page) == "Book it\nBooked."
    assert page_text(PageRecord("c", 1, 1, page.entries[2:4], quotes=page.quotes)) == "{...}"
