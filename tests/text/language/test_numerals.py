"""Numerals of Chinese and Japanese as figures."""

import pytest

from memci.text.language.numerals import figures
from memci.text.language.terms import query_terms, terms


@pytest.mark.parametrize(
    ("said", "figure"),
    [
        ("六千人", "6000"),
        ("6千人", "6000"),
        ("两万五千", "25000"),
        ("1.5万元", "15000"),
        ("三百零五", "305"),
        ("十二", "12"),
        ("二〇二四年", "2024"),
        ("〇〇七", "7"),
        ("九" * 5_000, "9" * 5_000),
        ("三亿二千万", "320000000"),
        ("二十一億", "2100000000"),
    ],
)
def test_numeral_is_its_figure(said, figure):
    assert list(figures(said)) == [figure]


def test_single_characters_tell_no_number():
    assert not list(figures("一起去，十分好，万一下雨，6000人一起"))


def test_numerals_of_both_kinds_meet():
    """A text with one is found by a question with the other."""
    for asked, said in (("6000人吗", "来了六千人。"), ("六千人吗", "来了6000人。")):
        assert {"6000"} <= set(query_terms(asked)) & set(terms(said))
