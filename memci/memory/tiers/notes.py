"""A note: a model's description of a page, which later steps use.

    page #57 ──▶ Note(title, lines, keywords, events)      evidence: #57

A note is made from its page alone, and is erased with it. A page that is replaced loses its note.
"""

from dataclasses import dataclass

from ...text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, one_line
from .events import LifeEvent


@dataclass(frozen=True, slots=True)
class Note:
    """A model's description of a page."""

    title: str
    lines: tuple[str, ...]  # a line for each message
    keywords: tuple[str, ...] = ()
    events: tuple[LifeEvent, ...] = ()

    @property
    def summary(self) -> Summary:
        """The title and lines for a contents page."""
        lines = tuple(one_line(line, LINE_COLUMNS) for line in self.lines)
        return Summary(one_line(self.title, TITLE_COLUMNS), lines)
