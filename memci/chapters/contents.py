"""The Contents Page: the list of archived pages that the model sees, as a value.

    <memci:contents 1f9a03c2>                       one message per block:
    #1–#17: Booking to Oslo · Refund of R3K2            range lines: folded pages
    </memci:contents 1f9a03c2>
    <memci:contents 1f9a03c2>
    #18 Change of the return flight                     a line per page: its title …
      1 user: Move my return to 12 May, please.         … and a line per entry
      4 assistant: It is HAT110 on 12 May, $54 more.
    #19 Baggage for two                                 older pages: title only
    </memci:contents 1f9a03c2>

The user's instructions are the last block (`instructions`). A compaction replaces the page by the next one, which
`folding.revised` makes. A new batch of pages is one new block behind the older ones, which keep their bytes, so that a
provider's cache keeps them too. Above the ceiling, lines fold, oldest first. Folding rewrites the front anyway, so the
older blocks become one block then, which saves their frames.

It is stored as JSON, a list of blocks, without what can be computed: a context that is opened again renders the same
bytes. This module knows nothing of where that JSON goes, of pages' messages, or of when a compaction happens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from ..messages import Message
from ..text.sanitize import framed
from .chapter import Entry
from .instructions import Instructions, instructions_text


class Level(IntEnum):
    """How much of a page its line shows."""

    FULL = 0
    """every entry"""
    BRIEF = 1
    """the user's entry and the last one of the assistant"""
    TITLE = 2
    """no entry"""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """One archived page on the Contents Page: its title, and a line for each entry that its level shows."""

    index: int
    title: str
    entries: tuple[Entry, ...]
    costs: tuple[int, int, int]
    """tokens of the text, for each level"""
    level: Level = Level.FULL

    @classmethod
    def of(cls, index: int, title: str, entries: Sequence[Entry], count: Callable[[str], int]) -> ListedPage:
        """Return the full line of a page. Its parts end in newlines, so each is counted by itself."""
        head = count(_text(index, title, ()))
        parts = {entry.ordinal: count(_entry_line(entry)) for entry in entries}
        brief = head + sum(parts[entry.ordinal] for entry in _brief(entries))
        return cls(index, title, tuple(entries), (head + sum(parts.values()), brief, head))

    def at(self, level: Level) -> ListedPage:
        """Return the line folded to *level*; a folded line is never unfolded."""
        if level <= self.level:
            return self
        return replace(self, level=level, entries=_brief(self.entries) if level is Level.BRIEF else ())

    @property
    def tokens(self) -> int:
        """What the line costs."""
        return self.costs[self.level]

    @property
    def text(self) -> str:
        """The line as the model sees it, ending in a newline."""
        return _text(self.index, self.title, self.entries)


@dataclass(frozen=True, slots=True)
class ListedRange:
    """Pages that have folded into one line."""

    pages: tuple[int, ...]
    titles: tuple[tuple[int, str], ...]
    """(index, title) of some of them"""

    @property
    def text(self) -> str:
        """The line as the model sees it, ending in a newline."""
        titles = " · ".join(title for _, title in self.titles)
        return f"{runs(self.pages)}: {titles}\n" if titles else f"{runs(self.pages)}\n"

    def without(self, gone: frozenset[int]) -> ListedRange:
        """Return the range without the pages *gone*."""
        if gone.isdisjoint(self.pages):
            return self
        return ListedRange(
            tuple(index for index in self.pages if index not in gone),
            tuple((index, title) for index, title in self.titles if index not in gone),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """One message of the Contents Page."""

    message: Message
    tokens: int
    lines: tuple[ListedPage, ...] = ()
    ranges: tuple[ListedRange, ...] = ()
    instructions: Instructions = ()
    """the user's instructions: a block of its own, always the last one"""

    @classmethod
    def of_instructions(cls, instructions: Instructions, nonce: str, weigh: Callable[[Message], int]) -> Block:
        """Return the block that shows *instructions*."""
        message = {"role": "user", "content": framed("standing", nonce, instructions_text(instructions))}
        return cls(message, weigh(message), instructions=instructions)

    @classmethod
    def of(
        cls, lines: Sequence[ListedPage], ranges: Sequence[ListedRange], nonce: str, weigh: Callable[[Message], int]
    ) -> Block:
        """Return the block that shows *ranges*, then *lines*."""
        body = "".join([*(each.text for each in ranges), *(line.text for line in lines)])
        message = {"role": "user", "content": framed("contents", nonce, body.removesuffix("\n"))}
        return cls(message, weigh(message), tuple(lines), tuple(ranges))

    def to_json(self) -> dict[str, Any]:
        """Return the block as a JSON object."""
        return {
            "tokens": self.tokens,
            "lines": [
                [
                    line.index,
                    line.title,
                    int(line.level),
                    line.costs,
                    [[entry.ordinal, entry.role, entry.summary] for entry in line.entries],
                ]
                for line in self.lines
            ],
            "ranges": [[each.pages, each.titles] for each in self.ranges],
            **({"said": self.instructions} if self.instructions else {}),
        }

    @classmethod
    def from_json(cls, block: dict[str, Any], nonce: str, weigh: Callable[[Message], int] | None) -> Block:
        """Return the block that `to_json` wrote; *weigh* counts it again, None trusts the stored count."""
        weighed = weigh or (lambda _: block["tokens"])
        if said := block.get("said"):
            return cls.of_instructions(tuple((index, sentence) for index, sentence in said), nonce, weighed)
        lines = [
            ListedPage(
                index,
                title,
                tuple(Entry(index, ordinal, role, summary) for ordinal, role, summary in entries),
                tuple(costs),
                Level(level),
            )
            for index, title, level, costs, entries in block["lines"]
        ]
        ranges = [ListedRange(tuple(pages), tuple(tuple(each) for each in titles)) for pages, titles in block["ranges"]]
        return cls.of(lines, ranges, nonce, weighed)


@dataclass(frozen=True, slots=True)
class ContentsPage:
    """The Contents Page: blocks, oldest first. A frozen value; each change is a new one.

    >>> from memci import Context, EphemeralStorage
    >>> context = Context.open(EphemeralStorage(), id="alice", window=8_000, nonce="1f9a03c2")
    >>> for question in ("Book me a flight to Oslo.", "And a hotel.", "Thanks!"):
    ...     receipt = context.append_turn(question)
    >>> context.archive(keep=0)
    (1, 2)
    >>> print(context.render()[1]["content"])
    <memci:contents 1f9a03c2>
    #1 Book me a flight to Oslo.
      1 user: Book me a flight to Oslo.
    #2 And a hotel.
      1 user: And a hotel.
    </memci:contents 1f9a03c2>
    """

    blocks: tuple[Block, ...] = ()

    @property
    def tokens(self) -> int:
        """What the page costs in the window, framing included."""
        return sum(block.tokens for block in self.blocks)

    @property
    def lines(self) -> dict[int, ListedPage]:
        """The lines of pages that have their own, by index."""
        return {line.index: line for block in self.blocks for line in block.lines}

    @property
    def ranges(self) -> tuple[ListedRange, ...]:
        """The range lines, oldest first."""
        return tuple(each for block in self.blocks for each in block.ranges)

    @property
    def instructions(self) -> Instructions:
        """The instructions of the user, oldest first."""
        return self.blocks[-1].instructions if self.blocks else ()

    @property
    def without_instructions(self) -> ContentsPage:
        """The page without the user's instructions."""
        return ContentsPage(self.blocks[:-1]) if self.instructions else self

    @property
    def listed(self) -> list[int]:
        """The indexes of all pages that are listed, on a line of their own or within a range."""
        ranged = [index for each in self.ranges for index in each.pages]
        return ranged + [line.index for block in self.blocks for line in block.lines]

    def without(self, gone: frozenset[int], nonce: str, weigh: Callable[[Message], int]) -> ContentsPage:
        """Return the page without the pages *gone* and their instructions. Blocks that had none keep their bytes."""
        kept = []
        for block in self.blocks:
            if block.instructions:
                instructions = tuple(each for each in block.instructions if each[0] not in gone)
                if instructions:
                    same = instructions == block.instructions
                    kept.append(block if same else Block.of_instructions(instructions, nonce, weigh))
                continue
            lines = tuple(line for line in block.lines if line.index not in gone)
            ranges = tuple(each for each in (each.without(gone) for each in block.ranges) if each.pages)
            if lines == block.lines and ranges == block.ranges:
                kept.append(block)
            elif lines or ranges:
                kept.append(Block.of(lines, ranges, nonce, weigh))
        return ContentsPage(tuple(kept))

    def to_json(self) -> list[dict[str, Any]]:
        """Return the page as it is stored: a JSON object for each block."""
        return [block.to_json() for block in self.blocks]

    @classmethod
    def from_json(
        cls, blocks: Sequence[dict[str, Any]], *, nonce: str, weigh: Callable[[Message], int] | None
    ) -> ContentsPage:
        """Return the page that `to_json` wrote; *weigh* counts its blocks again, None trusts the stored counts."""
        return cls(tuple(Block.from_json(block, nonce, weigh) for block in blocks))

    def _check(self, archived: Sequence[int]) -> None:
        listed = self.listed
        assert len(set(listed)) == len(listed), "no page is listed twice"
        assert sorted(listed) == sorted(archived), "every archived page is on exactly one line"
        assert all(block.lines or block.ranges or block.instructions for block in self.blocks), "no block is empty"
        assert not any(block.instructions for block in self.blocks[:-1]), "the instructions are the last block"
        assert not any(block.instructions and (block.lines or block.ranges) for block in self.blocks), (
            "and a block of their own"
        )


def runs(indexes: Sequence[int]) -> str:
    """Return *indexes*, in order, as the model reads them: `#1–#3, #7`."""
    parts: list[list[int]] = []
    for index in indexes:
        if parts and index == parts[-1][-1] + 1:
            parts[-1][1:] = [index]
        else:
            parts.append([index])
    return ", ".join("–".join(f"#{index}" for index in part) for part in parts)


def _brief(entries: Sequence[Entry]) -> tuple[Entry, ...]:
    assistant = [entry.ordinal for entry in entries if entry.role == "assistant"]
    keep = {entry.ordinal for entry in entries if entry.role == "user"}
    keep.update(assistant[-1:])
    return tuple(entry for entry in entries if entry.ordinal in keep)


def _text(index: int, title: str, entries: Sequence[Entry]) -> str:
    head = f"#{index} {title}\n"
    return head + "".join(_entry_line(entry) for entry in entries)


def _entry_line(entry: Entry) -> str:
    return f"  {entry.ordinal} {entry.role}: {entry.summary}\n"
