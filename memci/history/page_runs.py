"""Checks of the entries that pages hold: each page holds a run of entries, and each entry is on exactly one page."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ..rows import ContextRecord, PageRow, PageState, join_runs


def page_problem(row: PageRow, record: ContextRecord) -> str | None:
    """Return the problem of *row* as a page of the context of *record*, None if there is none. O(1)."""
    end = record.head if row.end is None else row.end
    bounds, away = [row.first, *(row.cut or ()), end, record.head], [row.first, *(row.away or ()), end]
    if not 1 <= row.index < record.next_page:
        return f"page #{row.index} was never opened: the next one is #{record.next_page}"
    if bounds != sorted(bounds) or len(bounds) % 2 == 0:
        return f"page #{row.index} does not hold a run of the {record.head:,} messages"
    if away != sorted(away) or len(away) % 2 or (row.away is not None and row.state is not PageState.ACTIVE):
        return f"page #{row.index} does not have the entries that are said to have left the window"
    if (row.end is None) != (row.index == record.open_page):
        return f"page #{row.index} is open, or the open page of the context, but not both"
    if row.continues is not None and row.continues >= row.index:
        return f"page #{row.index} can't continue #{row.continues}, which is not before it"
    return None


def page_problems(record: ContextRecord, rows: Sequence[PageRow]) -> Iterator[str]:
    """Yield the problems of *rows*: pages of the context of *record*, with the open one among them. O(rows)."""
    yield from filter(None, (page_problem(row, record) for row in rows))
    if record.open_page is not None and all(row.index != record.open_page for row in rows):
        yield f"page #{record.open_page} is open and is not there"
    reached = 0
    for first, end, index in sorted((*span, row.index) for row in rows for span in row.spans(record.head)):
        if first < reached:
            yield f"entry {first} is on page #{index} and on another one"
        reached = max(reached, end)


def gaps(record: ContextRecord, rows: Iterable[PageRow]) -> list[tuple[int, int]]:
    """Return the runs of entries of the context of *record* that are on none of the pages *rows*. O(rows)."""
    held = join_runs(span for row in rows for span in row.spans(record.head))
    pairs = pairwise([(0, 0), *held, (record.head, record.head)])
    return [(end, first) for (_, end), (first, _) in pairs if end < first]
