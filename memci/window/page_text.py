"""What the messages of one page say, as a compaction needs it: made at first need, once, and kept with the page.

    page #7 closes  ──▶  PageText  ──▶  told: what its title is made of      lines: one for each message
                                        instructions of the user             marks: its words with digits

Nothing here depends on other pages, on the window or on the clock, so it can be made before a compaction needs it.
This module knows nothing of windows, of rows or of tokens.
"""

import re
from collections.abc import Mapping, Sequence
from zlib import crc32

from ..chapters.messagelist import MessageNode
from ..messages import Message, text_of, tool_calls
from ..text.language.instructions import instructions
from ..text.language.telling import telling_keys
from ..text.summarize import lines, one_line
from ..text.summarize.extractive import Told, told
from ..text.summarize.observations import observes

WORD = re.compile(r"[\w@.\-]{3,200}")
"""what may be an id, a date or an amount"""
_ASCII_WORD = re.compile(r"[A-Za-z0-9_@.\-]{3,200}")
"""the same in a text that is ASCII, sooner"""
SENTENCE_COLUMNS = 1200
"""of an instruction; longer ones are not recognised as such"""

_OTHERS_WORDS = re.compile(r"<memci:(\w+ \w+)>.*?</memci:\1>", re.DOTALL)
"""what has the user's role but quotes others: our own frames"""

Line = tuple[str, set[str]]
"""of a message, and the keys of its words"""


class PageText:
    """What is said by *nodes*, the messages of a page that gets no more of them."""

    def __init__(self, nodes: Sequence[MessageNode]) -> None:
        self.nodes = tuple(nodes)
        self._told: Told | None = None
        self._lines: Mapping[MessageNode, Line] | None = None
        self._instructions: Sequence[str] | None = None
        self._said: Sequence[str] | None = None
        self._marks: Sequence[int] | None = None

    def told(self, columns: int) -> Told:
        """Return what a title of *columns* is made of. O(characters), once."""
        if self._told is None or self._told.columns != columns:
            messages, quotes = [node.message for node in self.nodes], [node.quotes for node in self.nodes]
            self._told = told(messages, quotes, columns)
        return self._told

    @property
    def lines(self) -> Mapping[MessageNode, Line]:
        """The lines of its messages. O(characters), once."""
        if self._lines is None:
            self._lines = extracted_lines(self.nodes)
        return self._lines

    @property
    def instructions(self) -> Sequence[str]:
        """The instructions that users gave, in their own words, each on one line. O(characters), once."""
        if self._instructions is None:
            self._instructions = [
                one_line(sentence, SENTENCE_COLUMNS)
                for node in self.nodes
                if node.message["role"] == "user" and not observes(text := text_of(node.message))
                for sentence in instructions(_OTHERS_WORDS.sub(" ", text))
            ]
        return self._instructions

    @property
    def said(self) -> Sequence[str]:
        """All that each message says: its text, and the arguments of its calls. O(characters), once."""
        if self._said is None:
            self._said = [said(node.message) for node in self.nodes]
        return self._said

    @property
    def marks(self) -> Sequence[int]:
        """A number for each of its words with digits, none twice. O(characters), once."""
        if self._marks is None:
            self._marks = marks("\n".join(self.said))
        return self._marks


def said(message: Message) -> str:
    """Return all that *message* says: its text, and the arguments of its calls."""
    calls = tool_calls(message)
    if not calls:
        return text_of(message)
    return "\n".join([text_of(message), *(call["function"]["arguments"] for call in calls if "function" in call)])


def marks(text: str) -> list[int]:
    """Return a number for each word of *text* that has a digit, as ids, dates and amounts do, none twice."""
    found = (_ASCII_WORD if text.isascii() else WORD).findall(text)
    words = [word for word in dict.fromkeys(found) if not word.isalpha()]
    return list(dict.fromkeys([crc32(word.encode()) for word in words if any(map(str.isdigit, word))]))


def extracted_lines(nodes: Sequence[MessageNode]) -> dict[MessageNode, Line]:
    """Return the lines of *nodes*, which are shown together. O(characters)."""
    made = lines([node.message for node in nodes], [node.quotes for node in nodes])
    return {node: (line, telling_keys(line)) for node, line in zip(nodes, made, strict=True)}
