"""Dates as terms: beside what was said, and in what is asked."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.language.dates import asked_dates, asks_time, date_terms, tells_time

MAY_8 = date(2023, 5, 8)


def test_date_terms_are_year_month_and_day():
    """A moment is found by its year, its month, its month of that year and its day."""
    assert date_terms(MAY_8) == ["@2023", "@may", "@2023-05", "@may-8"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("What did she do in May 2023?", {"@2023", "@may", "@2023-05"}),
        ("on 8 May, 2023", {"@2023", "@may", "@2023-05", "@may-8"}),
        ("on May 8th", {"@may", "@may-8"}),
        ("after 2023-05-08", {"@2023", "@may", "@2023-05", "@may-8"}),
        ("2023年5月8日做了什么", {"@2023", "@may", "@2023-05", "@may-8"}),
        ("2023년 5월 8일", {"@2023", "@may", "@2023-05", "@may-8"}),
        ("in Sept", {"@sep"}),
        ("It rained a lot before may", {"@may"}),
        ("They refrain may be", set()),
        ("xbefore may", set()),
        ("May I march to the beach?", set()),
        ("decide on a marching band", set()),
        ("13月", set()),
    ],
)
def test_asked_dates_are_those_that_a_question_names(text, named):
    """Dates in usual writings are understood; verbs that look like months are none."""
    assert set(asked_dates(text)) == named


@given(st.dates(date(1971, 1, 1), date(2099, 1, 1)))
def test_asked_dates_of_a_written_day_are_terms_of_that_day(day):
    """A day that is written out is asked for by terms that this day has."""
    named = asked_dates(f"What happened on {day:%B} {day.day}, {day.year}?")

    assert set(named) == set(date_terms(day))


@pytest.mark.parametrize(
    "text", ["We met last Friday.", "two years ago", "昨天我们去爬山", "어제 만났어요", "in 2019", "先週"]
)
def test_tells_time_where_a_text_says_when(text):
    """A text that says when something was tells a time."""
    assert tells_time(text)
    assert not tells_time("I love the lake.")


@pytest.mark.parametrize(
    "text", ["When did she go?", "What year was it?", "How long ago was that?", "她什么时候去的？", "いつですか"]
)
def test_asks_time_where_a_question_asks_when(text):
    """A question for a moment or a span asks for a time; one that has "when" inside doesn't."""
    assert asks_time(text)
    assert not asks_time("What does she do when it rains?")
