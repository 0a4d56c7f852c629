"""The window over time: its contents at the close of each turn, in tokens, and its compactions.

turn       36      37      38 ▼    39
active  4,310   5,020   2,210   2,940        ▼ a compaction: pages left, and the Contents Page grew
contents  611     611     930     930

Between two compactions a window only grows: one window, loaded as of the last of these turns, has the sizes of all.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import groupby, zip_longest
from typing import Final, NamedTuple

from ...history.reader import GONE
from ...window.state import WindowState
from ...window.window import Window
from .inspected import InspectedContext

TURNS: Final = 160  # turns in one picture: columns stay wide enough to click


class WindowSize(NamedTuple):
    """The window at the close of one turn. All sizes are tokens, as `Context.report` of that turn has them."""

    turn: int
    head: int
    system: int  # with the segments, the tools and the framing
    contents: int
    active: int  # of the closed pages that stand in full
    open: int  # of the turn's own page
    compactions: int  # how many there were in the turn

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.contents + self.active + self.open


def window_sizes(context: InspectedContext, first: int, last: int) -> list[WindowSize]:
    """Return the window at the close of the turns from *first* to *last*.

    Left out are turns that were taken back, and those before an erasure or a fork, which are not known any more.
    O(messages in the window, for each compaction, and those of the turns).
    """
    start, stop = context.first_after(first - 1) if first else 1, context.first_after(last)
    since = WindowState.loads(context.record.state).since
    before = max(since, context.head_at(first - 1) if first else 0)
    heads = sorted(_compaction_heads(context, before, context.head_at(last)))
    rows = [row for row in context.storage.pages(context.id, first=start, last=stop) if row.continues is None]
    closes = [
        (row.turn, row.index, context.record.head if following is None else following.first)
        for row, following in zip_longest(rows, rows[1:])
        if row.index < stop and row.state not in GONE and (following is None or following.turn != row.turn)
    ]
    earlier = context.compaction_at(before)
    count = 0 if earlier is None else WindowState.loads(context.snapshot(earlier).record.state).compactions
    sizes = []
    known = (close for close in closes if close[2] >= since)
    for _, group in groupby(known, lambda close: bisect_right(heads, close[2])):
        between = [*group]
        window = context.window_at(between[-1][0])
        for turn, index, head in between:
            sizes.append(_size(window, turn, index, head, window.state.compactions - count))
            count = window.state.compactions
    return sizes


def _compaction_heads(context: InspectedContext, after: int, until: int) -> Iterator[int]:
    """Yield the heads of the compactions since *after* up to *until*, newest first, and of the newest one before."""
    for row in context.storage.compactions(context.id, head=until):
        yield row.head
        if row.head <= after:
            break


def _size(window: Window, turn: int, index: int, head: int, made: int) -> WindowSize:
    """Return the size of *window* when it had *head* messages, and page *index* was open. O(pages)."""
    active = window.active
    page = active.page(index)
    shown = sum(each.tokens for each in active if each.base < head)
    own = 0
    if page is not None:
        own = page.tokens
        group = page.tail.group if page.tail is not None else None
        if group is not None:  # a call that waited then had nothing in the place of its result
            late = group.head.tokens - group.head.dated - active.own_tokens(group.head)
            shown, own = shown - late, own - late
    return WindowSize(turn, head, window.fixed, window.contents.tokens, shown - own, own, made)
