"""The outbox: pages whose state changed and that are to be sent to the memory again, as runs of indexes.

    undone #4, #5, #6, erased #9    ──▶    ((4, 6), (9, 9))

It is stored with the context, in the transaction that changed the pages, so that no state change is lost between the
two. It is bounded: where there are too many runs, the two nearest to each other become one. That is safe: the memory
gets a page as it is now, and getting it twice changes nothing. This module knows nothing of memories.
"""

from collections.abc import Iterable

Runs = tuple[tuple[int, int], ...]
"""runs of page indexes, both ends inclusive, by index, with gaps between them"""

MOST_RUNS = 64


def posted(runs: Runs, indexes: Iterable[int]) -> Runs:
    """Return *runs* with *indexes* in them. O(both)."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted([*runs, *((index, index) for index in indexes)]):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    while len(joined) > MOST_RUNS:
        gap = min(range(1, len(joined)), key=lambda at: joined[at][0] - joined[at - 1][1])
        joined[gap - 1 : gap + 1] = [(joined[gap - 1][0], joined[gap][1])]
    return tuple(joined)


def delivered(runs: Runs, index: int) -> Runs:
    """Return *runs* without *index*. O(runs)."""
    left = []
    for first, last in runs:
        if not first <= index <= last:
            left.append((first, last))
            continue
        left += [(a, b) for a, b in ((first, index - 1), (index + 1, last)) if a <= b]
    return tuple(left)


def indexes(runs: Runs) -> Iterable[int]:
    """Yield the indexes in *runs*, in order."""
    for first, last in runs:
        yield from range(first, last + 1)
