"""The Contents Page: the list of archived pages that the model sees, and the chapter that shows it.

    <memci:contents 1f9a03c2>                                       one message per block:
    #1–#17 (3 Mar–9 Apr 2026): flight to Oslo · refund R3K2         range lines: folded pages
    #18–#19 (8 May) return · change_flight OI5L9G → HAT110, $54     a line per page; #19 said thanks
    </memci:contents 1f9a03c2>
    <memci:contents 1f9a03c2>
    #20 baggage for two · add_bags OI5L9G, bags 2 → $70             the newest block:
      1 user: Add two bags for Mia, please.                         … and lines for entries
    </memci:contents 1f9a03c2>
    <memci:contents 1f9a03c2>
    #21 entries 2–31: pytest ×2, sed ×5 · src/app.py · TypeError    what left the open page, a line a stretch
    </memci:contents 1f9a03c2>

A line has the day on which its page began, if that is known and another one than that of the line before.

What the program told the model within the conversation stays in its role (`Told`), each a block of its own. It, the
user's instructions (`instructions`), and then what left pages that are still shown, are the last blocks. A compaction
replaces the page by a new one, made by `folding.Revision`. New pages are one new block behind the older ones. Older
blocks keep their bytes, so that a provider's cache keeps them; only the entries of the last one are dropped. Above the
ceiling, lines fold, oldest first. Folding changes the front, so the older blocks become one block then, which saves
frames.

The page is stored as JSON, a list of blocks, without what can be computed. A context that is opened again renders the
same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from typing import Any, NamedTuple

from ..messages import Enveloped, Message, Native, text_of
from ..rows import PageRow, join_runs
from ..text.moments import dated
from ..text.sanitize import frame
from .chapter import Chapter, Entry
from .instructions import Instructions, instructions_text
from .messagelist import MessageNode

_PROGRAM = ("system", "developer")  # roles of what the program says
_FORM = 8  # tokens by which a message may cost more in another form


@dataclass(frozen=True, slots=True)
class ListedPage:
    """One archived page on the Contents Page: its own line, and lines for some of its entries."""

    index: int
    line: str
    entries: tuple[Entry, ...]
    costs: tuple[int, int]  # tokens of the text with its entries, and without
    joined: tuple[int, ...] = ()  # pages without content of their own, which share the line
    day: date | None = None  # the day on which the page began; None: unknown

    @classmethod
    def of(
        cls,
        index: int,
        line: str,
        entries: Sequence[Entry],
        count: Callable[[str], int],
        joined: Sequence[int] = (),
        day: date | None = None,
    ) -> ListedPage:
        """Return the line of a page. Each of its parts ends in a newline and is counted separately."""
        made = cls(index, line, (), (0, 0), tuple(joined), day)
        head = count(made.told(day.replace(month=1 + day.month % 12, day=1) if day else None))
        return replace(made, costs=(head, head)).showing(entries, count)

    def showing(self, entries: Sequence[Entry], count: Callable[[str], int]) -> ListedPage:
        """Return the line with those *entries*."""
        cost = sum(count(_entry_line(entry)) for entry in entries)
        return replace(self, entries=tuple(entries), costs=(self.costs[1] + cost, self.costs[1]))

    @property
    def bare(self) -> ListedPage:
        """The line without its entries."""
        return replace(self, entries=(), costs=(self.costs[1], self.costs[1])) if self.entries else self

    def without(self, gone: frozenset[int]) -> ListedPage:
        """Return the line without the joined pages *gone*. Its `costs` stay, and may be slightly too high."""
        left = tuple(index for index in self.joined if index not in gone)
        return self if left == self.joined else replace(self, joined=left)

    @property
    def pages(self) -> tuple[int, ...]:
        """The pages of the line, in order."""
        return tuple(sorted((self.index, *self.joined)))

    @property
    def tokens(self) -> int:
        """The tokens of the line."""
        return self.costs[0]

    def told(self, before: date | None = None) -> str:
        """Return the line as the model sees it, with its newline, behind one of the day *before*."""
        days = dated(self.day, self.day, before) if self.day is not None else ""
        head = f"{runs(self.pages)} ({days}) {self.line}\n" if days else f"{runs(self.pages)} {self.line}\n"
        return head + "".join(map(_entry_line, self.entries))


@dataclass(frozen=True, slots=True)
class ListedRange:
    """Pages that have folded into one line."""

    pages: tuple[int, ...]
    terms: tuple[tuple[int, str], ...]  # (index, most important words of its line) of some pages
    days: tuple[tuple[int, date | None], ...] = ()
    """(index, day) of the pages with another day than the page before; it is None, unknown, before the first one"""

    def told(self, before: date | None = None) -> str:
        """Return the line as the model sees it, with its newline, behind one of the day *before*."""
        own = self.known_days().values()
        days = dated(min(own), max(own), before) if own else ""
        head = f"{runs(self.pages)} ({days})" if days else runs(self.pages)
        terms = " · ".join(term for _, term in self.terms)
        return f"{head}: {terms}\n" if terms else f"{head}\n"

    def without(self, gone: frozenset[int]) -> ListedRange:
        """Return the range without the pages *gone*."""
        if gone.isdisjoint(self.pages):
            return self
        left, known = [index for index in self.pages if index not in gone], self.known_days()
        terms = tuple((index, term) for index, term in self.terms if index not in gone)
        return ListedRange(tuple(left), terms, begun(left, known))

    def known_days(self) -> dict[int, date]:
        """Return the day of each page, as far as it is known. O(pages)."""
        starts, day, found = dict(self.days), None, dict[int, date]()
        for index in self.pages:
            day = starts.get(index, day)
            if day is not None:
                found[index] = day
        return found


def begun(pages: Iterable[int], known: Mapping[int, date | None]) -> tuple[tuple[int, date | None], ...]:
    """Return those of *pages* with another day than the one before, with it, by the *known* days. O(pages)."""
    found: list[tuple[int, date | None]] = [(0, None)]
    found += [(index, known.get(index)) for index in pages]
    return tuple(this for before, this in pairwise(found) if this[1] != before[1])


@dataclass(frozen=True, slots=True)
class ListedPart:
    """A stretch of a page that has left the window, while the page is still shown."""

    page: int
    first: int  # the ordinal of its first message
    last: int
    line: str  # what was done: "" if nothing is said of it

    @property
    def text(self) -> str:
        """The line as the model sees it, with its newline."""
        where = f"entries {self.first}–{self.last}" if self.last > self.first else f"entry {self.first}"
        return f"#{self.page} {where}: {self.line}\n" if self.line else f"#{self.page} {where}\n"


class Told(NamedTuple):
    """What the program told the model within the conversation, once it has left the window."""

    page: int
    role: str  # "system" or "developer"
    text: str
    format: str = ""  # the form in which it came, "" for that of Chat Completions
    blocks: str = ""  # its content as JSON, if only the provider can read some of it, such as an added tool

    @property
    def message(self) -> Message:
        """The message, as its form has it."""
        message = {"role": self.role, "content": self.text}
        item = {**message, "content": json.loads(self.blocks)} if self.blocks else message
        return Enveloped(message, Native(self.format, [item], hidden=len(self.blocks))) if self.format else message


def told_in(nodes: Iterable[tuple[int, MessageNode]]) -> list[Told]:
    """Return what the program told the model in *nodes*, each behind the index of its page. O(messages)."""
    found = []
    for page, node in nodes:
        if (role := node.message["role"]) in _PROGRAM and (said := text_of(node.message)):
            native = node.message.native if isinstance(node.message, Enveloped) else None
            blocks = json.dumps(native.items[0]["content"]) if native is not None and native.hidden else ""
            found.append(Told(page, role, said, native.format if native is not None else "", blocks))
    return found


@dataclass(frozen=True, slots=True)
class Block:
    """One message of the Contents Page."""

    message: Message
    tokens: int
    lines: tuple[ListedPage, ...] = ()
    ranges: tuple[ListedRange, ...] = ()
    instructions: Instructions = ()  # the user's instructions, which are a block of their own, behind all lines
    parts: tuple[ListedPart, ...] = ()
    """what left pages that are still shown, which is a block of its own, always the last one"""
    told: Told | None = None

    @classmethod
    def of_told(cls, told: Told, weigh: Callable[[Message], int]) -> Block:
        """Return the block that is the message *told*."""
        return cls(told.message, weigh(told.message), told=told)

    @classmethod
    def of_instructions(cls, instructions: Instructions, nonce: str, weigh: Callable[[Message], int]) -> Block:
        """Return the block that shows *instructions*."""
        message = {"role": "user", "content": frame("standing", nonce, instructions_text(instructions))}
        return cls(message, weigh(message), instructions=instructions)

    @classmethod
    def of_parts(cls, parts: Sequence[ListedPart], nonce: str, weigh: Callable[[Message], int]) -> Block:
        """Return the block that shows *parts*."""
        body = "".join(part.text for part in parts)
        message = {"role": "user", "content": frame("contents", nonce, body.removesuffix("\n"))}
        return cls(message, weigh(message), parts=tuple(parts))

    @classmethod
    def of(
        cls, lines: Sequence[ListedPage], ranges: Sequence[ListedRange], nonce: str, weigh: Callable[[Message], int]
    ) -> Block:
        """Return the block that shows *ranges*, then *lines*."""
        body, before = "", None
        for each in ranges:
            body, before = body + each.told(before), max(each.known_days().values(), default=before)
        for line in lines:
            body, before = body + line.told(before), line.day or before
        message = {"role": "user", "content": frame("contents", nonce, body.removesuffix("\n"))}
        return cls(message, weigh(message), tuple(lines), tuple(ranges))

    def to_json(self) -> dict[str, Any]:
        """Return the block as a JSON object."""
        return {
            "tokens": self.tokens,
            "lines": [
                [
                    line.index,
                    line.line,
                    line.joined,
                    line.costs,
                    [[entry.ordinal, entry.role, entry.summary] for entry in line.entries],
                ]
                for line in self.lines
            ],
            "ranges": [[each.pages, each.terms] for each in self.ranges],
            **({"said": self.instructions} if self.instructions else {}),
            **({"parts": [[each.page, each.first, each.last, each.line] for each in self.parts]} if self.parts else {}),
            **({"told": [*self.told[:4]]} if self.told else {}),
            **({"blocks": self.told.blocks} if self.told and self.told.blocks else {}),
            **({"days": days} if (days := self._days()) else {}),
        }

    def _days(self) -> list[list[Any]] | None:
        """Return the days of the lines, and those of the ranges, as JSON; None if none is known."""
        lines = [line.day and line.day.isoformat() for line in self.lines]
        ranges = [[(index, day and day.isoformat()) for index, day in each.days] for each in self.ranges]
        return [lines, ranges] if any(lines) or any(ranges) else None

    @classmethod
    def from_json(cls, block: dict[str, Any], nonce: str, weigh: Callable[[Message], int] | None) -> Block:
        """Return the block that `to_json` wrote. *weigh* counts it again; None uses the stored count."""
        weighed = weigh or (lambda _: block["tokens"])
        if said := block.get("said"):
            return cls.of_instructions(tuple((index, sentence) for index, sentence in said), nonce, weighed)
        if told := block.get("told"):
            return cls.of_told(Told(*told)._replace(blocks=block.get("blocks", "")), weighed)
        if parts := block.get("parts"):
            return cls.of_parts([ListedPart(*each) for each in parts], nonce, weighed)
        days, spans = block.get("days") or ([None] * len(block["lines"]), [[]] * len(block["ranges"]))
        lines = [
            ListedPage(
                index,
                line,
                tuple(Entry(index, ordinal, role, summary) for ordinal, role, summary in entries),
                (costs[0], costs[1]),
                tuple(joined),
                date.fromisoformat(day) if day else None,
            )
            for (index, line, joined, costs, entries), day in zip(block["lines"], days, strict=True)
        ]
        ranges = [
            ListedRange(
                tuple(pages),
                tuple(tuple(each) for each in titles),
                tuple((index, date.fromisoformat(day) if day else None) for index, day in span),
            )
            for (pages, titles), span in zip(block["ranges"], spans, strict=True)
        ]
        return cls.of(lines, ranges, nonce, weighed)


@dataclass(frozen=True, slots=True)
class ContentsPage:
    """The Contents Page: blocks, oldest first. A frozen value; each change is a new one.

    >>> from memci import Context, EphemeralStorage
    >>> context = Context.open(EphemeralStorage(), id="alice", window=8_000, nonce="1f9a03c2", clock=None)
    >>> for question in ("Book me a flight to Oslo.", "And a hotel.", "Thanks!"):
    ...     receipt = context.append_turn(question)
    >>> context.archive(keep=0)
    (1, 2)
    >>> print(context.render()[1]["content"])
    <memci:contents 1f9a03c2>
    #1 Book me a flight to Oslo.
    #2 And a hotel.
    </memci:contents 1f9a03c2>
    """

    blocks: tuple[Block, ...] = ()

    @property
    def tokens(self) -> int:
        """The tokens of the page in the window, with its frames."""
        return sum(block.tokens for block in self.blocks)

    @property
    def lines(self) -> dict[int, ListedPage]:
        """The lines of pages outside ranges, by index; joined pages share one."""
        return {index: line for block in self.blocks for line in block.lines for index in line.pages}

    @property
    def ranges(self) -> tuple[ListedRange, ...]:
        """The range lines, oldest first."""
        return tuple(each for block in self.blocks for each in block.ranges)

    @property
    def instructions(self) -> Instructions:
        """The instructions of the user, oldest first."""
        return next((block.instructions for block in self.blocks if block.instructions), ())

    @property
    def parts(self) -> tuple[ListedPart, ...]:
        """What left pages that are still shown, oldest first."""
        return self.blocks[-1].parts if self.blocks else ()

    @property
    def told(self) -> tuple[Told, ...]:
        """What the program told the model, oldest first."""
        return tuple(block.told for block in self.blocks if block.told)

    def told_tokens(self, nodes: Iterable[MessageNode]) -> int:
        """Return the tokens of what the program told the model, here and in *nodes*, each text once. O(messages)."""
        told = {block.told[2:]: block.tokens for block in self.blocks if block.told}
        for node in nodes:
            told |= {each[2:]: node.tokens + (len(each.blocks) // 4 or _FORM) for each in told_in([(0, node)])}
        return sum(told.values())

    @property
    def pages_only(self) -> ContentsPage:
        """The page with lines only: without instructions, and without parts of pages."""
        return ContentsPage(tuple(block for block in self.blocks if block.lines or block.ranges))

    @property
    def listed(self) -> list[int]:
        """The indexes of all listed pages, on lines and in ranges."""
        ranged = [index for each in self.ranges for index in each.pages]
        return ranged + [index for block in self.blocks for line in block.lines for index in line.pages]

    def bare(self, nonce: str, weigh: Callable[[Message], int]) -> ContentsPage:
        """Return the page without entries. Blocks without entries keep their bytes."""
        return ContentsPage(
            tuple(
                Block.of([line.bare for line in block.lines], block.ranges, nonce, weigh)
                if any(line.entries for line in block.lines)
                else block
                for block in self.blocks
            )
        )

    def joined(self, kept: int, nonce: str, weigh: Callable[[Message], int]) -> ContentsPage:
        """Return the page with all blocks behind the first *kept* ones as one, which saves frames. O(lines)."""
        rest = self.blocks[kept:]
        if len(rest) < 2:
            return self
        lines = [line for block in rest for line in block.lines]
        ranges = [each for block in rest for each in block.ranges]
        return ContentsPage((*self.blocks[:kept], Block.of(lines, ranges, nonce, weigh)))

    def without_instruction(self, gone: tuple[int, str], nonce: str, weigh: Callable[[Message], int]) -> ContentsPage:
        """Return the page without the instruction *gone*. Other blocks keep their bytes."""
        left = tuple(each for each in self.instructions if each != gone)
        again = (Block.of_instructions(left, nonce, weigh),) if left else ()
        return ContentsPage(
            tuple(each for block in self.blocks for each in (again if block.instructions else (block,)))
        )

    def without(self, gone: frozenset[int], nonce: str, weigh: Callable[[Message], int]) -> ContentsPage:
        """Return the page without the pages *gone* and their instructions. Other blocks keep their bytes."""
        kept: list[Block] = []
        for block in self.blocks:
            instructions = tuple(each for each in block.instructions if each[0] not in gone)
            parts = tuple(each for each in block.parts if each.page not in gone)
            lines = tuple(line.without(gone) for line in block.lines if line.index not in gone)
            left = [ListedRange(line.joined, ()) for line in block.lines if line.index in gone]
            ranges = tuple(each for each in (each.without(gone) for each in (*block.ranges, *left)) if each.pages)
            if (instructions, parts, lines, ranges) == (block.instructions, block.parts, block.lines, block.ranges):
                kept += () if block.told and block.told.page in gone else (block,)
            elif instructions:
                kept.append(Block.of_instructions(instructions, nonce, weigh))
            elif parts:
                kept.append(Block.of_parts(parts, nonce, weigh))
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
        """Return the page that `to_json` wrote. *weigh* counts its blocks again; None uses the stored counts."""
        return cls(tuple(Block.from_json(block, nonce, weigh) for block in blocks))


def check_order(blocks: Sequence[tuple[object, ...]]) -> None:
    """Raise a ValueError unless each of *blocks* (lines, told, instructions, parts) is of one kind, and in this order.

    The last two kinds have one block at most.
    """
    kinds = [[*map(bool, block)] for block in blocks]
    if any(sum(kind) != 1 for kind in kinds) or kinds != sorted(kinds, reverse=True):
        raise ValueError("contents: lines, what was told, instructions and parts of pages are no blocks in this order")
    if any(sum(kind[at] for kind in kinds) > 1 for at in (2, 3)):
        raise ValueError("contents: the user's instructions, or parts of pages, are not one block")


class ArchiveChapter(Chapter):
    """The listed pages of the archive: their rows, and the Contents Page as messages.

    It uses memory for listed pages only, not for all archived pages.

    >>> archive = ArchiveChapter()
    >>> archive.contents.listed, archive.view, archive.tokens
    ([], [], 0)
    """

    def __init__(self) -> None:
        super().__init__()
        self.contents = ContentsPage()
        self._rows: dict[int, PageRow] | Callable[[], dict[int, PageRow]] = {}

    @property
    def rows(self) -> dict[int, PageRow]:
        """The rows of the listed pages, by index. They are read when they are first needed."""
        if not isinstance(self._rows, dict):
            self._rows = self._rows()
        return self._rows

    @property
    def view(self) -> list[Message]:
        """The messages that list the archived pages. O(blocks)."""
        return [node.view for node in self.messages]

    def show(self, contents: ContentsPage, rows: dict[int, PageRow] | Callable[[], dict[int, PageRow]]) -> None:
        """Show *contents*, which lists the pages in *rows*, or in what that returns. O(blocks)."""
        for page in list(self):
            self.detach(page.index)
        for position, block in enumerate(contents.blocks):
            self.extend(self.open_page(position, position), MessageNode(block.message, block.tokens, seq=position))
        self.contents = contents
        self._rows = rows


def runs(indexes: Sequence[int]) -> str:
    """Return *indexes*, in order, as the model reads them: `#1–#3, #7`."""
    if len(indexes) == 1:
        return f"#{indexes[0]}"
    joined = join_runs([(index, index + 1) for index in indexes])
    return ", ".join([f"#{a}–#{b - 1}" if a < b - 1 else f"#{a}" for a, b in joined])


def _entry_line(entry: Entry) -> str:
    return f"  {entry.ordinal} {entry.role}: {entry.summary}\n"
