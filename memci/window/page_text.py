"""What the messages of one page say, as a compaction needs it: computed when first needed, and kept with the page.

    page #7 closes  ──▶  PageText  ──▶  the material of its title           a line for each message
                                        instructions of the user            its words with digits, as numbers

Nothing here depends on other pages, on the window or on the clock, so it can be computed before it is needed.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import date
from zlib import crc32

from ..chapters.messagelist import MessageNode
from ..formats.provenance import clauses_of
from ..messages import Message, text_of, tool_calls
from ..text.language.instructions import Clause, names_near_day
from ..text.language.sentences import is_small_talk
from ..text.language.telling import telling_keys
from ..text.moments import full, moment
from ..text.summarize import lines, one_line
from ..text.summarize.extractive import TitleParts, read_page
from ..workers import cached_property

WORD = re.compile(r"[\w@.\-]{3,200}")  # what may be an id, a date or an amount
_ASCII_WORD = re.compile(r"[A-Za-z0-9_@.\-]{3,200}")  # the same words in an ASCII text, found faster
NAME_COLUMNS = 40  # of the name of who gave an instruction
SENTENCE_COLUMNS = 1200
"""of an instruction at most: a longer sentence is pasted text rather than a standing instruction"""

Line = tuple[str, set[str]]  # of a message, and the keys of its words


class PageText:
    """What *nodes* say, the messages of a page that gets no more of them. Each property is O(characters), once."""

    def __init__(self, nodes: Sequence[MessageNode]) -> None:
        self.nodes = tuple(nodes)
        self._told: TitleParts | None = None

    def read_page(self, columns: int) -> TitleParts:
        """Return the material of a title of *columns*. O(characters), once."""
        if self._told is None or self._told.columns != columns:
            messages, quotes = [node.message for node in self.nodes], [node.quotes for node in self.nodes]
            self._told = read_page(messages, quotes, columns)
        return self._told

    @cached_property
    def lines(self) -> Mapping[MessageNode, Line]:
        """The line of each message."""
        return extract_lines(self.nodes)

    @property
    def day(self) -> date | None:
        """The day of its first message that has a time, in the zone of that; None without one."""
        return next((moment(node.at).date() for node in self.nodes if node.at is not None), None)

    @cached_property
    def clauses(self) -> Sequence[Clause]:
        """What gives and takes back instructions, in the users' own words, each on one line behind a name.

        One that names a day by the day on which it was said ("until Friday") stands behind that day, too.
        """
        return [
            clause._replace(
                text=one_line(f"{_day(node, clause.text)}{_name(node.message)}{clause.text}", SENTENCE_COLUMNS)
            )
            for node in self.nodes
            for clause in clauses_of(node.message)
        ]

    @cached_property
    def said(self) -> Sequence[str]:
        """All that each message says: its text, and the arguments of its calls."""
        return [said(node.message) for node in self.nodes]

    @cached_property
    def marks(self) -> Sequence[int]:
        """A number for each word with digits, without duplicates."""
        return marks("\n".join(self.said))


def _day(node: MessageNode, said: str) -> str:
    return f"({full(moment(node.at)).partition(',')[0]}) " if node.at is not None and names_near_day(said) else ""


def _name(message: Message) -> str:
    name = message.get("name")
    return f"{one_line(name, NAME_COLUMNS)}: " if isinstance(name, str) and name.strip() else ""


def said(message: Message) -> str:
    """Return all that *message* says: its text, and the arguments of its calls."""
    calls = tool_calls(message)
    if not calls:
        return text_of(message)
    return "\n".join([text_of(message), *(call["function"]["arguments"] for call in calls if "function" in call)])


def marks(text: str) -> list[int]:
    """Return a number for each word of *text* that has a digit (ids, dates, amounts), without duplicates."""
    found = (_ASCII_WORD if text.isascii() else WORD).findall(text)
    words = [word for word in dict.fromkeys(found) if not word.isalpha()]
    return list(dict.fromkeys([crc32(word.encode()) for word in words if any(map(str.isdigit, word))]))


def extract_lines(nodes: Sequence[MessageNode]) -> dict[MessageNode, Line]:
    """Return the lines of *nodes*, which are shown together. O(characters)."""
    found = lines([node.message for node in nodes], [node.quotes for node in nodes])
    return {
        node: (line, set() if is_small_talk(line) else telling_keys(line))
        for node, line in zip(nodes, found, strict=True)
    }
