"""The mood of what is said, by its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.moods import feelings, mood, mood_of


@pytest.mark.parametrize(
    ("said", "felt"),
    [
        ("so happy!", "positive"),
        ("I am not happy", "negative"),
        ("这个不好，我很失望", "negative"),
        ("太好了，谢谢", "positive"),
        ("太好了，謝謝", "positive"),
        ("嬉しい！", "positive"),
        ("楽しくない", "negative"),
        ("좋아요", "positive"),
        ("happy and sad", "mixed"),
        ("The list has four items.", "neutral"),
        ("", "neutral"),
    ],
)
def test_mood_is_that_of_the_words(said, felt):
    """Words say the mood; what is denied counts for the other side."""
    assert mood([said]) == felt


@given(st.lists(st.sampled_from(["happy", "not happy", "sad", "太好了", "不高兴", "last"]), max_size=8))
def test_mood_of_texts_is_that_of_their_feelings(texts):
    """Feelings of many texts add up, in any order, and say the mood."""
    good, bad = feelings(texts)

    assert (good, bad) == feelings(texts[::-1])
    assert good + bad == sum(text != "last" for text in texts)
    assert mood(texts) == mood_of(good, bad)
