"""The three unload rules: which archived pages leave the Contents Page.

    NeverRecalled(m)    no recall within m turns of being archived                            the original's rule m
    Stale(p)            recalled once, but not within the last p turns                        the original's rule p
    OverCeiling(share)  the Contents Page is full: least recently recalled first              the original's LRU

A rule is a pure function of the rows of the listed pages and of the turn; any such function can be a rule of your own.
The first two are applied at a compaction. The third decides only among pages that have folded into range lines, when
those grow too long. Nothing is lost: an unloaded page is still recalled by its index, and the memory finds it. This
module knows nothing of how a Contents Page looks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..storage.protocol import PageRow

if TYPE_CHECKING:
    from ..settings import Settings

UnloadRule = Callable[[Iterable[PageRow], int], Collection[int]]
"""(rows of the listed pages, turn) -> indexes of those that leave the Contents Page"""


@dataclass(frozen=True, slots=True)
class NeverRecalled:
    """Unload pages that were not recalled within *turns* turns after they were archived."""

    turns: int

    def __call__(self, pages: Iterable[PageRow], turn: int) -> list[int]:
        """Return the indexes to unload in *turn*."""
        return [
            page.index
            for page in pages
            if page.recall_count == 0 and page.archived_turn is not None and turn - page.archived_turn >= self.turns
        ]


@dataclass(frozen=True, slots=True)
class Stale:
    """Unload pages that were recalled once, but not within the last *turns* turns."""

    turns: int

    def __call__(self, pages: Iterable[PageRow], turn: int) -> list[int]:
        """Return the indexes to unload in *turn*."""
        return [
            page.index
            for page in pages
            if page.recall_count > 0
            and page.last_recalled_turn is not None
            and turn - page.last_recalled_turn >= self.turns
        ]


def rules_of(settings: Settings) -> tuple[UnloadRule, ...]:
    """Return the rules that *settings* ask for, in the order in which they are applied."""
    rules: list[UnloadRule] = []
    if settings.never_recalled is not None:
        rules.append(NeverRecalled(settings.never_recalled))
    if settings.stale is not None:
        rules.append(Stale(settings.stale))
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class OverCeiling:
    """Keep the Contents Page within *tokens*: fold to `fold` of it, give range lines at most `ranges` of it."""

    tokens: int
    fold: float = 0.75
    ranges: float = 0.15

    @property
    def target(self) -> int:
        """Tokens to fold down to once the ceiling is passed."""
        return int(self.tokens * self.fold)

    @property
    def range_tokens(self) -> int:
        """Tokens that range lines may take."""
        return int(self.tokens * self.ranges)

    def order(self, pages: Iterable[PageRow]) -> list[int]:
        """Return the indexes of *pages*, least recently used first: the order in which they are unloaded."""
        return [page.index for page in sorted(pages, key=last_used)]


def last_used(page: PageRow) -> tuple[int, int]:
    """Return the key of least recent use: the turn of the last recall, else of archiving; ties by index."""
    turn = page.last_recalled_turn if page.last_recalled_turn is not None else page.archived_turn
    return (turn or 0, page.index)
