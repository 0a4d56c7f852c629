"""The outbox: the pages whose state changed, to be sent to the memory again, as runs of indexes.

    undone #4, #5, #6, erased #9    ──▶    ((4, 6), (9, 9))

It is stored with the context, in the transaction that changed the pages, so no change is lost between the two. It is
bounded: above `MOST_RUNS` the two nearest runs become one. That is safe, since the memory gets a page in its present
state, and getting it twice changes nothing.
"""

from collections.abc import Iterable

from ..rows import join_runs

Runs = tuple[tuple[int, int], ...]  # runs of page indexes, both ends inclusive, by index, with gaps between them

MOST_RUNS = 64  # about 1 kB of the context's record, which every change writes


def add_pages(runs: Runs, indexes: Iterable[int]) -> Runs:
    """Return *runs* with *indexes* in them. O(both)."""
    added = [(first, last + 1) for first, last in (*runs, *((index, index) for index in indexes))]
    joined = [(first, end - 1) for first, end in join_runs(added)]
    while len(joined) > MOST_RUNS:
        gap = min(range(1, len(joined)), key=lambda at: joined[at][0] - joined[at - 1][1])
        joined[gap - 1 : gap + 1] = [(joined[gap - 1][0], joined[gap][1])]
    return tuple(joined)


def remove_page(runs: Runs, index: int) -> Runs:
    """Return *runs* without *index*. O(runs)."""
    left = []
    for first, last in runs:
        if first <= index <= last:
            left += [(a, b) for a, b in ((first, index - 1), (index + 1, last)) if a <= b]
        else:
            left.append((first, last))
    return tuple(left)


def indexes(runs: Runs) -> Iterable[int]:
    """Yield the indexes in *runs*, in order."""
    for first, last in runs:
        yield from range(first, last + 1)
