"""The live picture: it fits every width, and its bar is true to the figures."""

import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from memci import Context, EphemeralStorage
from memci.cli.printer import Printer
from memci.cli.replay.live_picture import history, picture, watch
from memci.cli.replay.player import ReplayProgress
from memci.cli.tables import window_bar


def report_of(*, system=600, contents=900, active=4_000, opened=200, budget=7_000, window=8_000):
    """A report with these tokens."""
    tokens = {"system": system, "tools": 0, "contents": contents, "active": active, "open": opened, "framing": 3}
    pages = dict.fromkeys(("open", "active", "archived", "folded", "unloaded", "undone"), 123_456)
    with Context.open(EphemeralStorage(), id="a", window=8_000) as context:
        report = context.report()
    sizes = {"total": sum(tokens.values()), "budget": budget, "window": window}
    return replace(report, tokens=tokens, pages=pages, cached=0.9512, **sizes)


@pytest.mark.parametrize("width", [50, 80, 100, 120])
def test_picture_when_the_terminal_has_a_width(width):
    """No line of the picture is wider than the terminal, whatever is replayed."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    progress = ReplayProgress(1_234_567, 9_999_999, turn=1_000_000, messages=9_000_000, sizes=[7_000, 3_000] * 300)

    console.print(picture("memci replay 旅行".ljust(200, "x"), report_of(), progress, width=width))

    lines = console.file.getvalue().splitlines()
    assert max(console.measure(line).maximum for line in lines) <= width
    assert "turn 1,000,000 of 1,234,567" in lines[0]
    assert any("95.1%" in line for line in lines)


@given(
    parts=st.lists(st.integers(0, 3_000), min_size=4, max_size=4),
    width=st.integers(20, 200),
    reply=st.integers(1, 4_000),
)
def test_window_bar_when_the_parts_vary(parts, width, reply):
    """The bar is exactly as wide as asked for, and each part is as long as its share, within a column."""
    budget = sum(parts) + 100
    report = report_of(
        system=parts[0], contents=parts[1], active=parts[2], opened=parts[3], budget=budget, window=budget + reply
    )

    bar = window_bar(report, width).plain

    assert len(bar) == width
    for shade, tokens in zip("█▒▓░", (parts[0] + 3, *parts[1:]), strict=True):
        assert abs(bar.count(shade) - width * tokens / (budget + reply)) <= 1


def test_history_when_a_size_reaches_the_budget():
    """A full window reaches the top of both lines, an empty one neither."""
    upper, lower = history([7_000, 3_500, 0], 7_000, 80).plain.split("\n")

    assert upper == "█  "
    assert lower == "██ "


def test_watch_when_it_is_live():
    """On a terminal the picture is drawn while a replay runs, and is gone afterwards."""
    console = Console(file=io.StringIO(), width=80, force_terminal=True, _environ={"TERM": "xterm"})

    class Shown:
        def report(self):
            return report_of()

    watch(Printer(console, live=True), "memci demo", Shown(), [ReplayProgress(1, 2, turn=1, messages=1)])

    drawn = console.file.getvalue()
    assert "memci demo" in drawn
    assert drawn.endswith("\x1b[2K")
