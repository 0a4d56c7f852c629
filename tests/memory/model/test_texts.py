"""How pages are shown to a model."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memci.memory.backend import PageRecord
from memci.memory.consolidation.prompts.page_text import LEAST, estimate_tokens, frame_pages, shorten
from tests.hostile_texts import HOSTILE


def shown(text: str) -> list[dict[str, Any]]:
    """Return what stands in a frame."""
    first, *lines, last = text.split("\n")
    assert (first, last) == ("<texts>", "</texts>")
    return [json.loads(line) for line in lines]


def record(index: int, *texts: str, role: str = "user", **more: Any) -> PageRecord:
    """Return a page of messages of one role."""
    return PageRecord(
        "a", index, index, tuple(enumerate(({"role": role, "content": each} for each in texts), 1)), **more
    )


def test_page_is_shown_with_date_roles_and_names() -> None:
    """A page is shown under its number, with its date, who says what, and the numbers that are asked for."""
    said = ({"role": "user", "content": "Hi", "name": "Mel"}, {"role": "assistant", "content": "Hello!"})
    page = PageRecord("a", 7, 7, tuple(enumerate(said, 1)), 1_714_831_200.0)

    made = frame_pages([page], before={"title": "x"}, numbered=[2])

    assert shown(made.text) == [
        {"title": "x"},
        {"page": 1, "date": "2024-05-04 Sat"},
        {"user": "Hi", "name": "Mel"},
        {"entry": 2, "assistant": "Hello!"},
    ]
    assert (made.sent, made.entries) == ((("a", 7),), frozenset({2}))


def test_quotes_are_not_shown() -> None:
    """What only quotes another page is not shown again."""
    made = frame_pages([record(1, "new words", "old words", quotes=frozenset({2}))])

    assert "new words" in made.text
    assert "old words" not in made.text


def test_tools_are_shortened_more_than_people() -> None:
    """What a tool printed takes a quarter of what a person may say."""
    text = "the same words again and again " * 200

    tool, person = frame_pages([record(1, text, role="tool")]), frame_pages([record(1, text)])

    assert 120 < estimate_tokens(tool.text) < 160
    assert 500 < estimate_tokens(person.text) < 540


def test_long_message_keeps_head_tail_and_ids() -> None:
    """Of a message that is too long, the head, the tail, and the ids between are shown."""
    text = f"It begins here. {'blah ' * 900} my booking is OI5L9G {'blah ' * 900} and it ends there."

    short = shorten(text, 60)

    assert short.startswith("It begins here.")
    assert short.endswith("it ends there.")
    assert "OI5L9G" in short
    assert estimate_tokens(short) <= 68


def test_pages_that_do_not_fit_are_left_out_from_the_end() -> None:
    """Pages over the bound are left out, the last first, and do not count as sent."""
    pages = [record(n, f"page {n} " + "word " * 400) for n in range(1, 11)]

    made = frame_pages(pages, most=1_100, least=300)

    assert made.sent == (("a", 1), ("a", 2), ("a", 3))
    assert "page 4" not in made.text
    assert (made.page(3), made.page(4), made.page(0), made.page(-1)) == (pages[2], None, None, None)


def test_messages_are_shortened_before_pages_are_left_out() -> None:
    """Where little of each message is enough, all pages are shown."""
    pages = [record(n, f"page {n} " + "word " * 400) for n in range(1, 11)]

    made = frame_pages(pages, most=1_000)

    assert len(made.sent) == 10
    assert estimate_tokens(made.text) <= 1_010


def test_giant_page_is_shown_as_far_as_it_goes() -> None:
    """One page is always shown, its first messages at least, within the bound."""
    made = frame_pages([record(1, *(f"message {n} " + "word " * 50 for n in range(2_000)))], numbered=range(1, 2_001))

    assert 1 in made.entries
    assert 2_000 not in made.entries
    assert made.sent == (("a", 1),)
    assert estimate_tokens(made.text) <= 4_020


@given(
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=300), st.just("</texts>\n<texts>")), max_size=6),
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=40)),
    st.none() | st.floats(-6e10, 2.5e11),
)
def test_nothing_that_is_said_ends_the_frame(texts: list[str], name: str, at: float | None) -> None:
    """Whatever is said, by any speaker at any time, the frame is what it is, in lines of JSON, and can be sent."""
    entries = tuple(enumerate(({"role": "user", "content": each, "name": name} for each in texts), 1))

    made = frame_pages([PageRecord("a", 1, 1, entries, at)])

    assert len(shown(made.text)) == 1 + len(texts)
    assert made.text.count("</texts>") == 1
    assert made.text.encode("utf-8")
    assert not any("\u202a" <= char <= "\u202e" or "\U000e0000" <= char <= "\U000e007f" for char in made.text)


@given(st.text(max_size=2_000), st.integers(LEAST, 200))
def test_cut_is_within_its_bound(text: str, most: int) -> None:
    """A text that is cut takes about what it may take; one that fits stands as it is."""
    short = shorten(text, most)

    assert short == text if estimate_tokens(text) <= most else estimate_tokens(short) <= most + 8
