"""Keywords: by counting, the same in every language and on every machine."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.keywords import jaccard, keywords, stems_of
from memci.text.language.telling import telling_keys

texts = st.lists(
    st.text(alphabet="abcdeABC .,'我想订上海酒店東京駅はラーメン강아지를 12_@-\n", max_size=60), max_size=4
)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("We adopted a puppy from the Oslo Dog Shelter. The puppy chews shoes.", {"puppy", "oslo dog shelter"}),
        ("我想预订上海外国语学院的房间，上海外国语学院很远", {"上海外国语学院", "房间"}),
        ("帮我查一下北京到上海的高铁票，最好是下午的高铁", {"高铁", "北京", "上海"}),
        ("昨日、京都でラーメンを食べました。京都駅は広い。", {"京都", "京都駅", "ラーメン"}),
        ("서울에서 강아지를 키우고 있어요. 강아지 이름은 바둑이예요.", {"서울", "강아지", "이름"}),
        ("हिन्दी किताबें मुंबई में मिलती हैं।", {"हिन्दी", "किताबें", "मुंबई"}),
        ("என் ஆசிரியர் பெயர் முருகன்.", {"ஆசிரியர்", "முருகன்"}),
        ("ฉันย้ายไปอยู่เชียงใหม่", {"เชียง", "ใหม่"}),
        ("ကျွန်တော် မနက်ဖြန် သွားမည်။", {"မနက်", "ဖြန်"}),
        ("ខ្ញុំបានផ្លាស់ទៅរស់", {"ខ្ញុំ", "បានផ្លាស់"}),
        ("My reservation is OI5L9G, from Denver.", {"oi5l9g", "denver", "reservation"}),
    ],
)
def test_keywords_are_words_of_the_language(said, found):
    """Names, ids and what is said again come out as words, in writing with and without spaces."""
    assert found <= set(keywords([said]))


def test_telling_words_are_the_same_with_decomposed_accents():
    """A letter may have its accent as a character of its own."""
    said = "Où est la forêt préférée de Zoé ? Ela não gosta."

    assert telling_keys(unicodedata.normalize("NFD", said)) == telling_keys(said)


def test_keywords_of_a_word_in_two_forms_are_one():
    """Forms of one word count together and are shown in the form that is said most."""
    assert keywords(["painting painting paintings"]) == ("painting",)


def test_keywords_of_small_talk_are_few():
    """A greeting is about nothing."""
    assert keywords(["Hi! How are you?", "😀", ""]) == ()


def test_keywords_look_at_a_bounded_part():
    """A text of any length costs what its first 20,000 characters cost."""
    assert "zebra" not in keywords(["lion " * 5_000 + "zebra"])


@given(texts, st.integers(0, 12))
def test_keywords_are_bounded_and_folded(said, limit):
    """P11: keywords are case-folded, none twice, at most as many as asked for; and the same every time."""
    found = keywords(said, limit=limit)

    assert len(found) <= limit
    assert len(set(found)) == len(found)
    assert all(word == word.casefold() and stems_of(word) for word in found)
    assert found == keywords(said, limit=limit)


def test_jaccard_of_other_case_and_form_is_1():
    """P11: case and form are no difference."""
    assert jaccard(("Paint", "MEL"), ("painting", "mel")) == 1


def test_jaccard_of_nothing_is_0():
    """A page without keywords is like no other."""
    assert jaccard((), ()) == jaccard(("a",), ("violin",)) == jaccard((), ("violin",)) == 0


@given(texts, texts)
def test_jaccard_is_symmetric_and_bounded(some, others):
    """Jaccard is between 0 and 1 and the same both ways; 1 of anything with itself."""
    one, two = keywords(some), keywords(others)

    assert 0 <= jaccard(one, two) == jaccard(two, one) <= 1
    assert jaccard(one, one) == (1 if one else 0)
