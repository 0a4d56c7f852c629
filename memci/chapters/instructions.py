"""The user's instructions: wishes that hold until they are changed, as the last message of the Contents Page.

    <memci:standing 1f9a03c2>
    Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:
    #3 Never book before 11.
    #9 Always answer in French.
    </memci:standing 1f9a03c2>

They are few words, and the model misses them most once their page has left the window. They are the user's own words,
shown as data, never as the system's.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

Instructions = tuple[tuple[int, str], ...]
"""(page index, sentence) of each, oldest first"""

HEADING = (
    "Standing instructions of the user, in their own words, oldest first. Where two contradict, the later one holds:"
)


def instructions_text(instructions: Sequence[tuple[int, str]]) -> str:
    """Return the lines that show *instructions*, without their frame."""
    return "\n".join([HEADING, *(f"#{index} {sentence}" for index, sentence in instructions)])


def choose_newest(instructions: Sequence[tuple[int, str]], budget: int, count: Callable[[str], int]) -> Instructions:
    """Return the newest of *instructions* that fit *budget* tokens, oldest first; a repeated one counts as new.

    It stops at the first that does not fit: an older one could be what that one replaced. O(instructions), and of the
    text that is kept O(characters · log instructions).
    """
    newest: dict[str, tuple[int, str]] = {}
    for index, sentence in reversed(instructions):
        newest.setdefault(" ".join(sentence.casefold().split()), (index, sentence))
    latest = list(newest.values())

    def cost(most: int) -> int:
        return count(instructions_text(latest[:most][::-1]))

    many = 1
    while many < len(latest) and cost(many) <= budget:
        many *= 2
    few = bisect_right(range(min(many, len(latest)) + 1), budget, lo=1, key=cost) - 1
    return tuple(latest[:few][::-1])
