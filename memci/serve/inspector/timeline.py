"""The window over time: its contents at the close of each turn, in tokens, and its compactions.

turn       36      37      38 ▼    39
active  4,310   5,020   2,210   2,940        ▼ a compaction: pages left, and the Contents Page grew
contents  611     611     930     930
"""

from bisect import bisect_right
from collections.abc import Mapping
from itertools import zip_longest
from typing import Final, NamedTuple

from ...history.reader import GONE
from ...rows import CompactionRow, PageRow
from ...tokens import REQUEST_TOKENS
from ...window.state import WindowState
from .inspected import InspectedContext

TURNS: Final = 160  # turns in one picture: columns stay wide enough to click


class WindowSize(NamedTuple):
    """The window at the close of one turn. All sizes are tokens."""

    turn: int
    head: int
    system: int  # with the tools and the framing
    contents: int
    active: int  # of the closed pages that stand in full
    open: int  # of the turn's own page
    compactions: int  # how many there were in the turn

    @property
    def total(self) -> int:
        """All of it."""
        return self.system + self.contents + self.active + self.open


def window_sizes(context: InspectedContext, first: int, last: int) -> list[WindowSize]:
    """Return the window at the close of the turns from *first* to *last*. O(messages since the oldest page shown)."""
    window = context.window
    fixed = window.system.tokens + window.segments.tokens + window.own_tools + REQUEST_TOKENS
    start, stop = context.first_after(first - 1) if first else 1, context.first_after(last)
    before = context.head_at(first - 1) if first else 0
    compactions = _compactions(context, before, context.head_at(last))
    heads = [row.head for row in compactions]
    begin = context.snapshot(compactions[0]).record if compactions and compactions[0].head <= before else None
    oldest = 1 if begin is None else begin.next_page
    rows = list(context.storage.pages(context.id, first=min(oldest, start), last=stop))
    opened = [row for row in rows if row.continues is None and row.state not in GONE]
    costs = PageCosts(context)
    sizes = []
    for row, following in zip_longest(opened, opened[1:]):
        if row.index < start or row.index >= stop or (following is not None and following.turn == row.turn):
            continue
        head = context.record.head if following is None else following.first
        made = bisect_right(heads, head)
        shown = context.snapshot(compactions[made - 1]) if made else None
        since = 1 if shown is None or shown.record is None else shown.record.next_page
        active = {each.index: each for each in (shown.active if shown else ())}
        active |= {
            each.index: each._replace(cut=None, away=None) for each in opened if since <= each.index <= row.index
        }
        closes = sorted(each.first for index, each in active.items() if index <= row.index and each.continues is None)
        clips = shown.clips if shown else {}
        held = {index: costs.of(_with_end(each, closes), head, clips) for index, each in active.items()}
        own = held.pop(row.index, 0)
        count = made - bisect_right(heads, before)
        before = head
        contents = shown.contents.tokens if shown is not None else 0
        state = window.state if shown is None or shown.record is None else WindowState.loads(shown.record.state)
        sizes.append(WindowSize(row.turn, head, fixed + state.tools, contents, sum(held.values()), own, count))
    return sizes


def _compactions(context: InspectedContext, after: int, until: int) -> list[CompactionRow]:
    """Return the compactions up to *until*, oldest first: those since *after*, and the newest one before."""
    found: list[CompactionRow] = []
    for row in context.storage.compactions(context.id, head=until):
        found.append(row)
        if row.head <= after:
            break
    return found[::-1]


def _with_end(row: PageRow, firsts: list[int]) -> PageRow:
    """Return *row* with its end: if it was open then, the next of *firsts*, where pages begin."""
    following = bisect_right(firsts, row.first)
    return row._replace(end=firsts[following]) if row.end is None and following < len(firsts) else row


class PageCosts:
    """The tokens of pages, each read once."""

    def __init__(self, context: InspectedContext) -> None:
        self._context = context
        self._known: dict[tuple[PageRow, int], tuple[int, Mapping[int, int]]] = {}

    def of(self, row: PageRow, head: int, clips: Mapping[int, tuple[int, int]]) -> int:
        """Return what the page of *row* costs at *head*, in tokens, with its messages shown as *clips* says.

        O(its messages), once, and O(its messages that are clipped now).
        """
        end = head if row.end is None else min(head, row.end)
        if (row, end) not in self._known:
            ended = row._replace(end=end, cut=tuple(min(seq, end) for seq in row.cut or ()))
            shown = {seq for span in ended.shown(head) for seq in range(*span)}
            rows = [entry for entry in self._context.rows_of(ended, head) if entry.seq in shown]
            late = {entry.seq: self._whole(entry.seq) for entry in rows if entry.clip}
            self._known[row, end] = sum(entry.tokens for entry in rows if not entry.clip), late
        plain, clipped = self._known[row, end]
        return plain + sum(clips[seq][0] if seq in clips else tokens for seq, tokens in clipped.items())

    def _whole(self, seq: int) -> int:
        rows = self._context.storage.entries(self._context.id, seq, seq + 1, as_appended=True)
        return next(row.tokens for row in rows)
