"""Standing instructions: what the user said that is to hold from then on, as the last message of the Contents Page.

    <memci:standing 1f9a03c2>
    Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:
    #3 Never book before 11.
    #9 Always answer in French.
    </memci:standing 1f9a03c2>

Few words, and what is missed most once the page that held them has left the window. They are the user's words, shown
as data, never as the system's. This module knows nothing of how they are recognised.
"""

from collections.abc import Callable, Sequence

Said = tuple[tuple[int, str], ...]
"""(page index, sentence) of each, oldest first"""

HEADING = (
    "Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:"
)


def told(said: Said) -> str:
    """Return the lines that show *said*, without their frame."""
    return "\n".join([HEADING, *(f"#{index} {sentence}" for index, sentence in said)])


def chosen(said: Sequence[tuple[int, str]], budget: int, count: Callable[[str], int]) -> Said:
    """Return the newest of *said* that fit *budget* tokens, oldest first; one that is said again counts as new.

    One that does not fit ends it: an older one behind it could be what it took back. O(instructions).
    """
    newest: dict[str, tuple[int, str]] = {}
    for index, sentence in reversed(said):
        newest.setdefault(" ".join(sentence.casefold().split()), (index, sentence))
    kept: list[tuple[int, str]] = []
    for each in newest.values():
        if count(told((each, *kept))) > budget:
            break
        kept.insert(0, each)
    return tuple(kept)
