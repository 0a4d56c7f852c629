"""How much a sentence matters: from 0 to 1, in every language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.events import LEAST
from memci.text.language.importance import importance


@pytest.mark.parametrize(
    "told",
    [
        "I got married last Saturday!",
        "I have booked flight HAT271 for May 20.",
        "We finally won the cup!",
        "My deadline is tomorrow, this is urgent!!",
        "我昨天结婚了！",
        "我昨天結婚了！",
        "先週引っ越しました。",
        "저는 어제 졸업했어요!",
    ],
)
def test_importance_of_turns_of_life_is_above_the_bound(told):
    """What changes somebody's life or business is worth keeping, in every language."""
    assert importance(told) > LEAST


@pytest.mark.parametrize(
    "told",
    [
        "Nice weather.",
        "Did I get married?",
        "I won't go there tomorrow!!",
        "Anna got married yesterday!",
        "hello",
        "I went to the store.",
        "你结婚了吗？",
        "今日はいい天気です",
    ],
)
def test_importance_of_small_talk_is_not(told):
    """Small talk and questions are not worth keeping."""
    assert importance(told) <= LEAST


def test_importance_is_the_sum_of_what_speaks_for_it():
    """A turn of life, told of oneself, with a date, weighs more than the same asked; else nothing matters."""
    assert importance("I got married last Saturday!") == 0.7
    assert importance("Had I got married?") == 0.2
    assert importance("Nice weather.") == 0


@given(st.text(max_size=200))
def test_importance_of_any_text_is_between_0_and_1(text):
    """Whatever is said, it matters between not at all and fully."""
    assert 0 <= importance(text) <= 1
