"""The unload rules: which archived pages leave the Contents Page at a compaction.

    NeverRecalled(m)    no recall within m turns after it was archived                        rule m of the original
    Stale(p)            recalled before, but not within the last p turns                      rule p of the original

A rule is a pure function of the rows of the listed pages and of the turn; you can write your own. The third rule of the
original paper, least recently used first, is in `folding.OverCeiling`. Nothing is lost: an unloaded page can be
recalled by its index, and the memory finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..rows import PageRow
from ..text.sanitize import one_line

if TYPE_CHECKING:
    from ..settings import Settings

_REASON_COLUMNS = 120  # of the reason of a rule: a line in the inspector

UnloadRule = Callable[[Iterable[PageRow], int], Collection[int]]
"""(rows of the listed pages, turn) -> indexes of those that leave the Contents Page"""


@dataclass(frozen=True, slots=True)
class NeverRecalled:
    """Unload pages that were not recalled within *turns* turns after they were archived."""

    turns: int

    def __str__(self) -> str:
        return f"NeverRecalled({self.turns}): no recall within {self.turns} turns after it left the window"

    def __call__(self, pages: Iterable[PageRow], turn: int) -> list[int]:
        """Return the indexes to unload in *turn*."""
        left = {page.index: page.archived_turn for page in pages if page.recall_count == 0}
        return [index for index, last in left.items() if last is not None and turn - last >= self.turns]


@dataclass(frozen=True, slots=True)
class Stale:
    """Unload pages that were recalled once, but not within the last *turns* turns."""

    turns: int

    def __str__(self) -> str:
        return f"Stale({self.turns}): not recalled within the last {self.turns} turns"

    def __call__(self, pages: Iterable[PageRow], turn: int) -> list[int]:
        """Return the indexes to unload in *turn*."""
        recalled = {page.index: page.last_recalled_turn for page in pages if page.recall_count > 0}
        return [index for index, last in recalled.items() if last is not None and turn - last >= self.turns]


def told(rule: UnloadRule) -> str:
    """Return the reason that *rule* gives: the name of a function, else its text."""
    return one_line(str(getattr(rule, "__name__", rule)), _REASON_COLUMNS)


def rules_of(settings: Settings) -> tuple[UnloadRule, ...]:
    """Return the rules of *settings*, in the order in which they are applied."""
    given = ((NeverRecalled, settings.never_recalled), (Stale, settings.stale))
    return tuple(rule(turns) for rule, turns in given if turns is not None)
