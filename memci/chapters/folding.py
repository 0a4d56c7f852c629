"""Make a Contents Page smaller that has grown too large.

Lines become shorter, oldest first, until the page is at its target:

    with entries  ──▶  a line of its own  ──▶  a range line  ──▶  unloaded
    the newest         "#57 …"                 "#12–#43: …"       least recently recalled first

Entries take the room that is left, until the next compaction. Range lines may take a small share of the ceiling. Pages
that do not fit there are unloaded, the least recently used first (the third rule of the original paper). The preset
"original" folds nothing: there the third rule makes the room.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate

from ..messages import Message
from ..rows import PageRow
from ..text.language.scopes import FUNCTION, role_of
from ..text.sanitize import width
from ..text.summarize.gists import gists, read_text
from .chapter import Entry
from .contents import Block, ContentsPage, ListedPage, ListedRange, begun

RANGE_PAGES = 32  # Most pages of one range line: more terms do not fit on it.
RANGE_COLUMNS = 120  # Most columns of the terms of a range line: a line that is still read at a glance.
_TERM_COLUMNS = 28  # columns of one term: four of them fit on a line

_ADDED = re.compile(r" \((?:never )?recalled[^()]{0,60}\)$")


@dataclass(frozen=True, slots=True)
class OverCeiling:
    """The ceiling of the Contents Page: *tokens*, the share to `fold` down to, and the share for `ranges`.

    Folding below the ceiling leaves room for new pages, so that not every compaction rewrites the page.
    """

    tokens: int
    fold: float = 0.85
    ranges: float = 0.15

    @property
    def target(self) -> int:
        """Tokens to fold down to when the page exceeds the ceiling."""
        return int(self.tokens * self.fold)

    @property
    def range_tokens(self) -> int:
        """Tokens that range lines may take."""
        return int(self.tokens * self.ranges)

    def __str__(self) -> str:
        return f"OverCeiling({self.tokens}): no room on the Contents Page; the page used longest ago leaves first"

    def order(self, pages: Iterable[PageRow]) -> list[int]:
        """Return the indexes of *pages*, least recently used first: the order in which they are unloaded."""
        return [page.index for page in sorted(pages, key=last_used)]


def last_used(page: PageRow) -> tuple[int, int]:
    """Return the sort key of last use: the turn of the last recall, else of archiving; then the index."""
    turn = page.last_recalled_turn if page.last_recalled_turn is not None else page.archived_turn
    return (turn or 0, page.index)


@dataclass(frozen=True, slots=True)
class Revision:
    """What the next Contents Page is made of. Both ways return it, and the indexes of the pages that it unloads."""

    contents: ContentsPage  # the page before, without pages that rules have unloaded
    new: Sequence[ListedPage]  # lines of pages that were archived, or recalled and are listed again
    ceiling: OverCeiling  # the most that the next page may cost
    entries: Callable[[int, int], Sequence[Entry]]
    """returns the entries of a new page, given its index and about how many tokens they may take"""
    order: Callable[[Sequence[int]], Sequence[int]]  # sorts indexes by the order in which they are unloaded
    nonce: str  # the random word in the frames
    count: Callable[[str], int]  # tokens of a text
    weigh: Callable[[Message], int]  # tokens of a message

    def fold(self) -> tuple[ContentsPage, tuple[int, ...]]:
        """Make lines shorter, oldest first, until the page is at its target; the newest block has the new lines."""
        contents, new, ceiling, nonce, weigh = self.contents, self.new, self.ceiling, self.nonce, self.weigh
        frame = Block.of((), (), nonce, weigh).tokens
        added = sum(line.tokens for line in new) + frame if new else 0
        older_page = contents.bare(nonce, weigh) if new else contents

        fresh = frozenset(line.index for line in new)

        def detailed(page: ContentsPage) -> ContentsPage:
            """Return *page* with entries of its new lines, newest first, as the ceiling allows."""
            if not fresh or not page.blocks:
                return page
            block = page.blocks[-1]
            lines, room = list(block.lines), ceiling.tokens - page.tokens
            for position in range(len(lines) - 1, -1, -1):
                line = lines[position]
                longer = line.showing(self.entries(line.index, room), self.count) if line.index in fresh else line
                room -= longer.tokens - line.tokens
                if room < 0:
                    break
                lines[position] = longer
            grown = ContentsPage((*page.blocks[:-1], Block.of(lines, block.ranges, nonce, weigh)))
            return grown if grown.tokens <= ceiling.tokens else page

        if older_page.tokens + added <= ceiling.tokens:
            grown = ContentsPage((*older_page.blocks, Block.of(new, (), nonce, weigh))) if new else contents
            if grown.tokens <= ceiling.tokens:
                return detailed(grown), ()
        lines = [*(line.bare for block in contents.blocks for line in block.lines), *new]
        ranges = list(contents.ranges)
        unloaded: list[int] = []
        target = ceiling.target
        while True:
            room = target - 2 * frame
            lines, folded = _split_lines(lines, room - ceiling.range_tokens)
            ranges, gone = _fit_ranges(
                [*ranges[:-1], *_join(ranges[-1:], folded)], min(ceiling.range_tokens, room), self.order, self.count
            )
            unloaded += gone
            older, newest = [x for x in lines if x.index not in fresh], [x for x in lines if x.index in fresh]
            blocks = [Block.of(older, ranges, nonce, weigh)] if older or ranges else []
            if newest:
                blocks.append(Block.of(newest, (), nonce, weigh))
            page = ContentsPage(tuple(blocks))
            if page.tokens <= max(0, ceiling.tokens):  # what is shown besides may have taken all of the room
                return detailed(page), tuple(unloaded)
            # The counter is not additive: aim lower, at last at nothing.
            target -= page.tokens - ceiling.tokens

    def keep_entries(self) -> tuple[ContentsPage, tuple[int, ...]]:
        """Keep the entries of all lines, as the original design has it, and fold none.

        The first pages of `order` are unloaded until the others fit: as few as possible. Of a page that is too large by
        itself, the first entries are listed. O(lines · log lines).
        """
        new, ceiling, nonce, weigh = self.new, self.ceiling, self.nonce, self.weigh
        room = ceiling.tokens - Block.of((), (), nonce, weigh).tokens
        lines = []
        for line in new:
            found = list(self.entries(line.index, room))
            costs = accumulate(line.showing([entry], self.count).tokens - line.tokens for entry in found)
            lines.append(line.showing(found[: bisect_right(list(costs), room - line.tokens)], self.count))
        victims = self.order([*self.contents.listed, *(line.index for line in lines)])

        def left(unloaded: int) -> ContentsPage:
            gone = frozenset(victims[:unloaded])
            kept = [line for line in lines if line.index not in gone]
            blocks = self.contents.without(gone, nonce, weigh).blocks
            return ContentsPage((*blocks, Block.of(kept, (), nonce, weigh)) if kept else blocks)

        fewest = bisect_left(range(len(victims)), x=True, key=lambda unloaded: left(unloaded).tokens <= ceiling.tokens)
        return left(fewest), tuple(victims[:fewest])


def _split_lines(lines: Sequence[ListedPage], room: int) -> tuple[list[ListedPage], list[ListedPage]]:
    """Return the lines that stay, and the oldest lines, which fold since all together cost more than *room*."""
    cost = sum(line.tokens for line in lines)
    for position, line in enumerate(lines):
        if cost <= room:
            return list(lines[position:]), list(lines[:position])
        cost -= line.tokens
    return [], list(lines)


def _join(last: Sequence[ListedRange], lines: Sequence[ListedPage]) -> list[ListedRange]:
    """Return ranges of *last* (the newest range, if there is one) and *lines*, of bounded size."""
    pages = [index for each in last for index in each.pages] + [index for line in lines for index in line.pages]
    said = {index: term for each in last for index, term in each.terms}
    said |= {line.index: _ADDED.sub("", line.line) for line in lines}
    found = gists([[read_text(text)] for text in said.values()], [_TERM_COLUMNS] * len(said))
    pairs = zip(said, found, strict=True)  # a negator alone tells nothing here
    strongest = {index: gist for index, gist in pairs if (term := gist.spans[0]) and role_of(term.lower()) <= FUNCTION}
    known = {index: day for each in last for index, day in each.known_days().items()}
    known |= {index: line.day for line in lines if line.day is not None for index in line.pages}
    ranges = []
    for start in range(0, len(pages), RANGE_PAGES):
        part = sorted(pages[start : start + RANGE_PAGES])
        terms: dict[str, int] = {}
        room = RANGE_COLUMNS
        for index in sorted(strongest.keys() & set(part), key=lambda index: (-strongest[index].weight, index)):
            term = _quote(strongest[index].spans[0], said[index])
            if term not in terms and width(term) <= room:
                terms[term] = index
                room -= width(term) + 3
        said_of = tuple(sorted((index, term) for term, index in terms.items()))
        ranges.append(ListedRange(tuple(part), said_of, begun(part, known)))
    return ranges


def _quote(term: str, line: str) -> str:
    """Return *term* with quotation marks around those of its parts that stand between them in *line*."""
    parts = [(each, line.partition(each)[0] if each else "") for each in term.split(", ")]  # an argument may be empty
    return ", ".join([f"“{each}”" if before.count("“") > before.count("”") else each for each, before in parts])


def _fit_ranges(
    ranges: Sequence[ListedRange],
    room: int,
    order: Callable[[Sequence[int]], Sequence[int]],
    count: Callable[[str], int],
) -> tuple[list[ListedRange], list[int]]:
    """Return the ranges that fit in *room*, and the pages that are unloaded for it: as few as possible, in *order*.

    The last range loses its terms before it loses its pages. O(ranges · log pages).
    """
    cost = cache(count)

    def left(unloaded: int) -> list[ListedRange]:
        gone = frozenset(victims[:unloaded])
        return [each for each in (each.without(gone) for each in ranges) if each.pages]

    def fit(kept: Sequence[ListedRange]) -> bool:
        return sum(cost(each.told()) for each in kept) <= room or (
            len(kept) == 1 and cost(replace(kept[0], terms=()).told()) <= room
        )

    victims = order([index for each in ranges for index in each.pages])
    fewest = bisect_left(range(len(victims)), x=True, key=lambda unloaded: fit(left(unloaded)))
    kept = left(fewest)
    while kept and kept[-1].terms and sum(cost(each.told()) for each in kept) > room:
        kept[-1] = replace(kept[-1], terms=kept[-1].terms[:-1])
    return kept, list(victims[:fewest])
