"""What a summarizer gives back.

    Summary(title="Refund of order A-7741", lines=("Please refund order A-7741", "refund(order=A-7741)", …))

The lines carry neither role nor number: the list that shows them adds those.

This module knows nothing of how the lines are made.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

TITLE_COLUMNS = 72
LINE_COLUMNS = 160


class Summary(NamedTuple):
    """A title of at most 72 columns, and a line of at most 160 for each message (a wide character is 2 columns)."""

    title: str
    lines: tuple[str, ...]
    """one per message, in the same order; none is empty"""


Summarizer = Callable[[Sequence[Mapping[str, object]]], Summary]
