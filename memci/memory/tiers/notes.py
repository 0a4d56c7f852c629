"""A note: what a model says of a page, kept for the steps that use that page later.

    page #57 ──▶ Note(title, lines, keywords, events)      evidence: #57

A note belongs to a page as it was: a page with other entries is another page. It is made of its page alone, and is
erased with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, one_line
from .events import LifeEvent


@dataclass(frozen=True, slots=True)
class Note:
    """What a model said of a page."""

    title: str
    lines: tuple[str, ...]
    """one per message of the page"""
    keywords: tuple[str, ...] = ()
    events: tuple[LifeEvent, ...] = ()

    @property
    def summary(self) -> Summary:
        """The lines that a contents page may show."""
        lines = tuple(one_line(line, LINE_COLUMNS) for line in self.lines)
        return Summary(one_line(self.title, TITLE_COLUMNS), lines)


Notes = Mapping[int, tuple[int, Note]]
"""notes by the ids of their pages, each with its own id"""
