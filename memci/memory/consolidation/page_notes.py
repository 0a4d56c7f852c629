"""Notes: what a model said of a page, for whoever tells of that page afterwards.

    page #57 ──▶ Note(title, lines, keywords, goes on from #56?, events)      evidence: #57

A note is of a page as it was: with another text, the page is another one. What is extracted of the page without a
model stands beside it, for the case that a note has to go while its page stays. This module knows nothing of models.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import apsw

from ...text.language.keywords import keywords
from ...text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, extract, one_line
from ..backend import PageRecord
from ..repository.items import drop, dumped, put, validated
from ..repository.store import MemoryStore, fetched
from ..tiers.chains import page_text
from ..tiers.events import LifeEvent

KIND = "note"


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


def plainly(page: PageRecord) -> Plain:
    """Return what is extracted of *page*. O(characters)."""
    title = extract([message for _, message in page.entries]).title if page.entries else ""
    return Plain(title, keywords([page_text(page)]))


def keep(connection: apsw.Connection, owner: int, note: Note, pages: Collection[int]) -> int:
    """Store a note in place of an earlier one of its page, with *pages* as its evidence, and return its id."""
    known = [key for key, each in _notes(connection, [note.page]) if each.page == note.page]
    drop(connection, known)
    return put(connection, owner, KIND, dumped(note), pages=pages)


def notes_of(store: MemoryStore, pages: Collection[int]) -> dict[int, tuple[int, Note]]:
    """Return the notes of *pages* (their ids), each with its own id. O(pages)."""
    rows = store.read_rows(_OF_PAGES, json.dumps(list(pages)), KIND)
    return {note.page: (key, note) for key, body in rows if (note := validated(Note, body)).page in pages}


def still(connection: apsw.Connection, notes: Mapping[int, tuple[int, Note]]) -> bool:
    """Tell whether *notes* are there as they were read: none is stored in place of another one under its id."""
    ids = [key for key, _ in notes.values()]
    ((count,),) = fetched(
        connection, "SELECT count(*) FROM memory_item WHERE id IN (SELECT value FROM json_each(?))", json.dumps(ids)
    )
    return bool(count == len(ids))


def summaries(store: MemoryStore, owner: str, context: str, indexes: Collection[int]) -> dict[int, Summary]:
    """Return what notes say of pages of a context, by index. One query."""
    rows = store.read_rows(_OF_CONTEXT, owner, context, json.dumps(list(indexes)), KIND)
    found = {}
    for index, id_, digest, body in rows:
        note = validated(Note, body)
        if note.page == id_ and note.digest == digest.hex():
            found[index] = note.summary
    return found


def _notes(connection: apsw.Connection, pages: Sequence[int]) -> list[tuple[int, Note]]:
    rows = fetched(connection, _OF_PAGES, json.dumps(list(pages)), KIND)
    return [(key, validated(Note, body)) for key, body in rows]


_OF_PAGES = """
SELECT DISTINCT i.id, i.body FROM memory_evidence AS e JOIN memory_item AS i ON i.id = e.item
WHERE e.page IN (SELECT value FROM json_each(?)) AND i.kind = ? ORDER BY i.id"""
_OF_CONTEXT = """
SELECT g.page, g.id, g.digest, i.body FROM memory_owner AS o JOIN memory_context AS c ON c.owner = o.nr
JOIN memory_page AS g ON g.context = c.nr JOIN memory_evidence AS e ON e.page = g.id
JOIN memory_item AS i ON i.id = e.item
WHERE o.name = ? AND c.name = ? AND g.page IN (SELECT value FROM json_each(?)) AND i.kind = ?"""
