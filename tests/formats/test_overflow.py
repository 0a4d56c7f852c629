"""Overflow: what providers say of a request that is too long, and what is no such error.

`refusals.txt` has the tokens that were asked for, the most that may be, and the text; `other_errors.txt` texts alone.
"""

from pathlib import Path

import pytest

from memci import Context
from memci.formats.overflow import Overflow, overflow
from memci.storage.ephemeral import EphemeralStorage

REFUSALS, OTHERS = (
    (Path(__file__).parent / name).read_text("utf-8").splitlines() for name in ("refusals.txt", "other_errors.txt")
)


@pytest.mark.parametrize("line", REFUSALS)
def test_a_request_that_was_too_long_is_known_with_its_numbers(line):
    """The tokens of the request, and the most that it may have beside the answer."""
    *numbers, said = line.split(" ", 2)
    found = overflow(ValueError(said))
    assert found is not None
    assert found[:2] == tuple(None if each == "-" else int(each) for each in numbers)


@pytest.mark.parametrize("said", OTHERS)
def test_another_error_is_none(said):
    """Limits on many requests together, on the answer, on one value, and mistakes are other errors."""
    assert overflow(said) is None


def test_the_answer_is_counted_once():
    """A provider that says how much of its limit the answer takes means that of `reply`: it is not taken off twice."""
    said = "maximum context length is 128000 tokens. However, you requested 130000 tokens (66000 in the messages, 64000"
    assert overflow(f"{said} in the completion).") == Overflow(66000, 64000, 64000)
    with Context.open(EphemeralStorage(), "a", window=128_000, reply=64_000, model="gpt-4o") as context:
        context.append_turn("word " * 60_000)
        context.request()
        assert context.overflowed(f"{said} in the completion).")
        assert 1 < context.report().ratio < 1.2
