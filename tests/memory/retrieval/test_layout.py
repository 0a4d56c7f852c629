"""Where passages stand: who is beside whom, and what they lend each other."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from memci.memory.retrieval.layout import _NEAR, SPEAKER_FROM, Layout, Row


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), max_size=60), st.integers(1, 9))
def test_layout_in_any_portions_is_the_same(said, portion):
    """Whether rows come one by one or together, links and loans are the same, and mirror each other."""
    rows = [
        Row(context, number, number, 0, "user", "Ann", length % 60, length * 100.0)
        for number, (context, length) in enumerate(said)
    ]
    whole, parts = Layout(), Layout()
    whole.extend(rows)
    for start in range(0, len(rows), portion):
        parts.extend(rows[start : start + portion])

    for one, other in zip(whole.columns, parts.columns, strict=True):
        np.testing.assert_array_equal(one, other)
    at = whole.columns
    before, after = at.links[:2]
    for position in range(len(rows)):
        if after[position] >= 0:
            assert before[after[position]] == position
        if before[position] >= 0:
            assert at.context[before[position]] == at.context[position]


def test_layout_names_nobody_by_a_single_character():
    """A Chinese name is known by its pairs: one character of it is in many words. Who was hardly heard is nobody."""
    layout = Layout()
    layout.extend(Row(0, number, number, 0, "user", "王小明", 3, None) for number in range(SPEAKER_FROM))
    layout.extend([Row(0, SPEAKER_FROM, SPEAKER_FROM, 0, "user", "Monday", 3, None)])

    assert layout.people("小明") == [0]
    assert layout.people("明") == []
    assert layout.people("monday") == []


def test_layout_takes_no_report_of_a_tool_for_a_lecture():
    """What an assistant says after a tool's answer tells of it; what it says by itself, at length, is a lecture."""
    layout = Layout()
    roles = ["user", "assistant", "assistant", "tool", "assistant", "assistant"]
    entries = [0, 1, 1, 2, 3, 3]
    parts = [0, 0, 1, 0, 0, 1]

    layout.extend(
        Row(0, 0, entry, part, role, "", 60, None) for role, entry, part in zip(roles, entries, parts, strict=True)
    )

    assert layout.columns.lecture.tolist() == [0, 1, 1, 0, 0, 0]


def test_entries_of_two_pages_are_two_messages():
    """An ordinal counts within its page: two pages lend each other as neighbours do, taken in at once or one by one."""
    rows = [Row(0, page, 1, 0, "user", name, 9, None) for page, name in ((1, "Ann"), (2, "Ben"), (3, "Ann"))]
    once, bit_by_bit = Layout(), Layout()

    once.extend(rows)
    for row in rows:
        bit_by_bit.extend([row])

    assert once.columns.whole.tolist() == bit_by_bit.columns.whole.tolist() == [9, 9, 9]
    assert once.columns.lent.tolist() == bit_by_bit.columns.lent.tolist()
    assert once.columns.lent[0, 1] == np.float32(_NEAR[0])
