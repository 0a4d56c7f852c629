"""Wrapping a text that arrives in pieces: lines break between words, as wide as the terminal.

    "The quick bro" "wn fox"    ──▶    The quick
                                       brown fox

A word is held back until its end has arrived. Between wide characters (Chinese, Japanese) a line may break anywhere but
before a closing mark. This module knows nothing of what is written.
"""

from collections.abc import Callable

from rich.cells import cell_len

_CLOSING = frozenset("。，、！？；：）」』】》〉…·ー々")
_TAB = "    "


class Wrapped:
    """Writes pieces to *write*, in lines of at most *width* columns."""

    def __init__(self, write: Callable[[str], None], width: Callable[[], int]) -> None:
        self._write, self._width = write, width
        self._word = ""
        self._blank = ""
        """blanks before the word, which are left out if the line breaks there"""
        self.column = 0
        """where the next character goes"""

    def feed(self, piece: str) -> None:
        """Take the next *piece*. O(characters)."""
        for each in piece:
            if each == "\n":
                self.flush()
                self._blank = ""
                self._put("\n", 0)
            elif each in " \t":
                self.flush()
                self._blank += " " if each == " " else _TAB
            elif cell_len(each) > 1 and each not in _CLOSING:
                self.flush()
                self._word = each
            else:
                if self._word and cell_len(self._word[0]) > 1 and each not in _CLOSING:
                    self.flush()
                self._word += each

    def flush(self) -> None:
        """Write the word that was held back."""
        if not self._word:
            return
        size, width = cell_len(self._word), self._width()
        if self.column + cell_len(self._blank) + size > width:
            if self.column:
                self._put("\n", 0)
            self._blank = ""
        self._put(self._blank + self._word, self.column + cell_len(self._blank) + size)
        if self.column > width:
            self.column %= width
        self._word = self._blank = ""

    def end(self) -> None:
        """Write what was held back, and end the line."""
        self.flush()
        self._blank = ""
        if self.column:
            self._put("\n", 0)

    def _put(self, text: str, column: int) -> None:
        self._write(text)
        self.column = column
