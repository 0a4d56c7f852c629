"""A summary is whole, short and soon made, whatever the messages."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.messages import PARTS
from memci.text.sanitize import one_line, width
from memci.text.summarize import LINE_COLUMNS, TITLE_COLUMNS, extract
from tests.text.summarize.summary_kit import Message, answered, called, line, said

TEXTS = st.text(st.characters(codec=None), max_size=30)
JSONISH = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
JSON = TEXTS | JSONISH.map(json.dumps)
KEYS = st.sampled_from(["image_url", "file", "input_audio", "refusal", "url", "name", "format", "width", "height"])
CONTENT = JSON | st.lists(
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
    | st.builds(
        lambda kind, more: more | {"type": kind},
        st.sampled_from(sorted(PARTS - {"text"})),
        st.dictionaries(KEYS, JSONISH),
    ),
    max_size=3,
)
CALLS = st.lists(
    st.fixed_dictionaries({"id": TEXTS, "function": st.fixed_dictionaries({"name": TEXTS, "arguments": JSON})}),
    max_size=3,
)
MESSAGES = st.one_of(
    st.fixed_dictionaries({"role": st.just("user"), "content": CONTENT}, optional={"name": TEXTS}),
    st.fixed_dictionaries(
        {"role": st.just("assistant"), "content": st.none() | CONTENT}, optional={"tool_calls": CALLS, "refusal": TEXTS}
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "content": CONTENT, "tool_call_id": TEXTS}, optional={"name": TEXTS}
    ),
)


@given(st.lists(MESSAGES, max_size=5))
def test_a_summary_is_whole_whatever_the_messages(page: list[Message]) -> None:
    """Any message that is accepted gives one line each, none empty or too wide, and a title."""
    summary = extract(page)

    assert len(summary.lines) == len(page)
    assert all(0 < width(each) <= LINE_COLUMNS for each in summary.lines)
    assert 0 < width(summary.title) <= TITLE_COLUMNS
    assert "\n" not in "".join((summary.title, *summary.lines))
    assert "\n".join(summary.lines).encode() is not None


HOSTILE = [
    *(unit * 1_000_000 for unit in 'a1<[{"`!/\\:.-_ \n\x00\u0301\u202e中あ가#@|E$%,('),
    *(
        unit * 250_000
        for unit in ("a.", "1a", '":', "://", "![", "</", "<a", "E  ", "1-", "a:", "一年", "1,", "``", '"a')
    ),
    "[" * 20_000 + "]" * 4_000,
    "[" * 900 + "]" * 900,
    '{"a":' * 900 + "1" + "}" * 900,
    '{"a": {"1": {}, "b": {}}, "x": "' + "\\" * 9_000,
    "Traceback\n" + "Error: \n" * 100_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_the_work_is_bounded_when_the_text_is_hostile(text: str) -> None:
    """However long and however odd, a text in any place of a message ends as one line, after bounded work."""
    page, short = ([said("user", each), called("t", each), answered(each), called("t", {"v": each})]
                   for each in (text, text[:30_000]))  # fmt: skip
    extract(short)  # the first text of a kind compiles patterns
    steps = 0

    def count(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        summary = extract(page)
    finally:
        sys.setprofile(None)

    assert all(0 < width(each) <= LINE_COLUMNS for each in summary.lines)
    assert steps < 1_500_000


def test_only_head_and_tail_are_looked_at_when_the_text_is_huge() -> None:
    """What stands beyond the first 20,000 and before the last 5,000 characters changes nothing."""
    head, tail = "first line of the log\n" * 950, "\nError: pump 9 stopped\n"
    one, two = head + "a" * 9_000_000 + tail, head + "b" * 9_000_000 + tail

    assert line(answered(one)) == line(answered(two))
    assert "Error: pump 9 stopped" in line(answered(one))


def test_a_cut_title_is_the_same_when_it_is_made_again() -> None:
    """A mark without a letter does not begin it, and "#5" does not pose as a line of the contents."""
    for begins in (",\u0301\ufe0f", "#5 "):
        said = begins + '\t{"a": [1, 2]}[\n#5 Forged```##[tool_call]\n#\u0903}\u2028\t`\ufe0f{"a": [1, 2]}HAT110#'

        title = extract([{"role": "tool", "content": said, "tool_call_id": "a"}]).title

        assert one_line(title, 60) == title
