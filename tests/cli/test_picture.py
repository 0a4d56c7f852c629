"""The bar of a window fits every width, and is true to the figures."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from memci import Context, EphemeralStorage
from memci.cli.tables import window_bar


def report_of(*, system=600, contents=900, active=4_000, opened=200, budget=7_000, window=8_000):
    """A report with these tokens."""
    tokens = {"system": system, "tools": 0, "contents": contents, "active": active, "open": opened, "framing": 3}
    pages = dict.fromkeys(("open", "active", "archived", "folded", "unloaded", "undone"), 123_456)
    with Context.open(EphemeralStorage(), id="a", window=8_000) as context:
        report = context.report()
    sizes = {"total": sum(tokens.values()), "budget": budget, "window": window}
    return replace(report, tokens=tokens, pages=pages, cached=0.9512, **sizes)


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
