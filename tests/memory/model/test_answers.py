"""What of a model's words may be kept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.memory.consolidation.prompts.validation import (
    clean_keywords,
    clean_line,
    has_invented_id,
    keep_identifiers,
    parse_day,
)
from memci.text.sanitize import width
from memci.text.summarize import one_line
from tests.hostile_answers import SAYINGS

EXACT = "Refund OI5L9G, $157.50 of HAT136 · 2024-05-27 · /srv/papers/oslo.pdf · 3 bags"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " - None. ",
        "No prior history.",
        "There is no relevant information",
        "Not specified",
        "This is the beginning of the conversation.",
        "Sorry, I can't help with that.",
        "Error: timed out",
        "string",
        "没有相关信息",
        "特になし",
        "관련 정보가 없습니다",
        "…",
        None,
    ],
)
def test_words_that_say_nothing_are_nothing(text: str | None) -> None:
    """Empty words, excuses, errors and the model's "nothing" are told as nothing."""
    assert clean_line(text, 160) == ""


@pytest.mark.parametrize("text", ["No refund for the flight to Oslo", "Nothing tastes like home", "没有小孩", "42"])
def test_words_that_begin_like_nothing_are_kept(text: str) -> None:
    """A line that says something is told as it is, though it begins with a "no"."""
    assert clean_line(text, 160) == text


def test_long_words_make_room_for_ids() -> None:
    """Where the ids that a line lacks do not fit behind it, it is shortened, so that all of them stand."""
    line = keep_identifiers("The user asks for " + "quite a few things and " * 12, EXACT, 120, "")

    assert width(line) <= 120
    assert line.startswith("The user asks for quite")
    for piece in ("OI5L9G", "$157.50", "HAT136", "2024-05-27", "/srv/papers/oslo.pdf", "3 bags"):
        assert piece in line


def test_exact_line_stands_when_there_is_no_room() -> None:
    """Where the ids leave no room for words, the exact line stands."""
    assert keep_identifiers("The user asks for a refund", EXACT, 84, "") == EXACT


def test_number_may_be_told_with_other_words() -> None:
    """A number counts as told if it stands there by itself, not as a part of another one."""
    assert keep_identifiers("He has 3 bags", "He has 3 big bags", 80, "") == "He has 3 bags"
    assert keep_identifiers("3 of his dogs", "He has 3 dogs.", 80, "") == "3 of his dogs"
    assert keep_identifiers("Dogs since 2023", "He has 3 dogs.", 80, "") == "Dogs since 2023 · 3 dogs"


def test_id_is_invented_if_nobody_said_it() -> None:
    """An id that does not stand in what was shown was made up; words and short numbers are not looked at."""
    assert has_invented_id("Booking ZZ99XX", "booking oi5l9g")
    assert not has_invented_id("Booking OI5L9G of Anna, 3 bags", "booking oi5l9g")


def test_keywords_are_folded_and_bounded() -> None:
    """Keywords are told once each, in small letters, as many as may be."""
    assert clean_keywords(["Flights", "flight", "none", "Oslo", "ZZ99XX", "the", "机票", "more"], 3, "") == (
        "flights",
        "oslo",
        "机票",
    )


@pytest.mark.parametrize("at", [float("nan"), float("inf"), 1e18, -1e18])
def test_moment_of_a_page_without_a_real_time_is_none(at: float) -> None:
    """A page's time that is no moment gives an event none."""
    assert parse_day("2024-05-04", at) is None


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(st.sampled_from(SAYINGS), st.text(max_size=400)),
    st.one_of(st.sampled_from(SAYINGS), st.text(max_size=400)),
    st.integers(20, 160),
)
def test_kept_line_is_harmless_and_fits(text: str, exact: str, columns: int) -> None:
    """Whatever a model says, and whatever the exact line is, what is kept is one harmless line that fits."""
    exact = one_line(exact, columns)

    line = keep_identifiers(text, exact, columns, "")

    assert line == exact or clean_line(line, columns) == line
    assert width(line) <= columns
    assert one_line(line, columns) == line
