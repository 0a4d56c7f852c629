"""A note: what a model says of a page, kept for the steps that use that page later.

    page #57 ──▶ Note(title, lines, keywords, goes on from #56?, events)      evidence: #57

A note belongs to a page as it was: a page with other entries is another page. What is extracted of the page without a
model is kept beside it, for when the note has to go while its page stays. This module knows nothing of models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, one_line
from .events import LifeEvent


@dataclass(frozen=True, slots=True)
class Plain:
    """What is extracted of a page."""

    title: str = ""
    keywords: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Note:
    """What a model said of a page."""

    page: int
    """its id"""
    digest: str
    """of the page as it was sent, in hex digits"""
    title: str
    lines: tuple[str, ...]
    """one per message of the page"""
    keywords: tuple[str, ...] = ()
    continues: bool | None = None
    """whether it goes on from the page *after*; None: the model did not say"""
    after: int | None = None
    """the id of the page before it, that it was compared with"""
    chain: str = ""
    """what the pages that go on from one another are about, up to here; "" if nothing was said"""
    events: tuple[LifeEvent, ...] = ()
    plain: Plain = Plain()

    @property
    def summary(self) -> Summary:
        """The lines that a contents page may show."""
        lines = tuple(one_line(line, LINE_COLUMNS) for line in self.lines)
        return Summary(one_line(self.title, TITLE_COLUMNS), lines)


Notes = Mapping[int, tuple[int, Note]]
"""notes by the ids of their pages, each with its own id"""


class Before(NamedTuple):
    """The page before another one, as a model is shown it."""

    title: str
    chain: str = ""
    """what its chain is about"""
    id: int | None = None
    sources: Sequence[int] = ()
    """the pages (their ids) that title and chain come from"""
