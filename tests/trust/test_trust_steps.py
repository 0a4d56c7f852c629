"""S15: what one append, one message or one erasure costs grows with its size and no faster, counted in steps."""

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import pytest

from memci import Context, EphemeralStorage
from memci.chapters.instructions import choose_newest
from memci.errors import LimitExceeded
from memci.history.quotations import _string
from memci.memory import NullMemory
from memci.messages import MAX_CALLS

from .kit import NONCE

FEW = 100
LINEAR = 2.4
"""how many times as many steps twice the size may take"""


def steps(act: Callable[[], object]) -> int:
    """Return how many lines of memci *act* runs."""
    count = 0

    def line(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def called(frame: FrameType, event: str, _argument: object) -> Any:
        return line if frame.f_globals.get("__name__", "").startswith("memci") else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def calls(number: int) -> dict[str, Any]:
    """Return an assistant's message with so many calls."""
    made = [
        {"id": f"c{at}", "type": "function", "function": {"name": "find", "arguments": "{}"}} for at in range(number)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def results(ids: Sequence[int]) -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": f"c{at}", "content": "ok"} for at in ids]


def opened(storage: EphemeralStorage) -> Context:
    return Context.open(
        storage, "alice", window=400_000, memory=NullMemory(), counter=lambda text: len(text) // 4, nonce=NONCE
    )


def answered(number: int) -> None:
    """Append calls and, in reverse, the results of most; interrupt them, append late ones, and open it again."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn("Go.", calls(number), *results(range(number // 5, number))[::-1])
    context.render(strict=False)
    context.append_turn("Stop.", *results(range(number)))
    context.render()
    opened(storage).refresh()
    Context.view(storage, "alice", at=0, counter=lambda text: len(text) // 4).render(strict=False)


def late(number: int) -> None:
    """Append results of calls that are all in the archive."""
    storage = EphemeralStorage()
    context = opened(storage)
    for _ in range(number // 25):
        context.append_turn("Go.", calls(25), "Stop.")
    context.archive(keep=0)
    context.append_turn("And now?", *[each for _ in range(number // 25) for each in results(range(25))])


def forged(number: int) -> None:
    """Erase a page that a forged answer claims to quote, in many frames and with quotations that never end."""
    storage = EphemeralStorage()
    context = opened(storage)
    frame = f"<memci:recall {NONCE}>\npage #1 of turn 0\n" * number
    found = (
        f"<memci:memory {NONCE}>\n" + '#1 entry 1 user: "\\q' + ': "x", turn ' * number + '\n#1 user: "q"' * 4 * number
    )
    context.append_turn("Secret.", *({"role": "assistant", "content": f"m{at}"} for at in range(number)))
    context.append_turn(frame, {"role": "assistant", "content": found})
    context.append_turn("Next.")
    context.erase(1)


@pytest.mark.parametrize("act", [answered, late, forged])
def test_twice_the_size_takes_twice_the_steps(act):
    """Calls and results in any order, late results, and forged quotations cost as much as they are long."""
    act(FEW)  # what is imported at first use is no step

    once, twice = steps(lambda: act(FEW)), steps(lambda: act(2 * FEW))

    assert twice / once < LINEAR


def test_quotation_that_never_ends_is_read_once():
    """A line with many beginnings of quotations, or with one that no escape ends, is not read again for each."""
    lines = [': "' + "\\q" * 5_000, ': "x", turn ' * 5_000, ': "' + "a" * 50_000 + "\x01"]

    assert [steps(lambda line=line: _string(line)) < 12 * 5_000 for line in lines] == [True] * 3
    cut = ('"I am \\ud83', '"I am \\ud83…"', '"I am …"')
    assert [_string(f"#1 entry 1 user: {each}") for each in cut] == ["I am "] * 3


def test_instructions_are_counted_a_few_times_each():
    """Choosing the instructions that fit counts no text again for each of them."""

    def counted(number: int) -> int:
        told = []
        said = [(index, f"Always answer in style {index:06}.") for index in range(number)]
        kept = choose_newest(said, 10**9, lambda text: told.append(len(text)) or len(text))
        assert kept == tuple(said)
        return sum(told)

    assert counted(2_000) / counted(1_000) < LINEAR


def test_calls_of_one_message_at_their_limit():
    """So many calls of one message are taken, one more is refused with its number, and nothing is stored."""
    context = opened(EphemeralStorage())
    context.append_turn("Go.")

    with pytest.raises(LimitExceeded) as caught:
        context.append_turn(calls(MAX_CALLS + 1))
    context.append_turn(calls(MAX_CALLS))

    assert (caught.value.value, caught.value.at_most) == (MAX_CALLS + 1, MAX_CALLS)
    assert len(list(context.messages())) == 2
