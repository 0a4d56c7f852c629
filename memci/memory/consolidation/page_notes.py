"""Notes: what a model says of a page, kept for the steps that use that page later.

    page #57 ──▶ Note(title, lines, keywords, goes on from #56?, events)      evidence: #57

A note belongs to a page as it was: a page with other entries is another page. What is extracted of the page without a
model is kept beside it, for when the note has to go while its page stays. This module knows nothing of episodes.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...text.language.keywords import keywords
from ...text.summarize import LINE_COLUMNS, TITLE_COLUMNS, Summary, extract, one_line
from ..backend import PageRecord
from ..owner import Conflict, Owner, Session
from ..repository.items import dumped, validated
from ..tiers.events import LifeEvent
from ..tiers.facts import sources, vocabulary
from ..tiers.topics import page_text
from .step import StepRun

KIND = "note"
_FORERUNNERS = 8
"""pages that the text of a chain may come from; the text of a longer chain is made again from its last page"""


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


def plainly(page: PageRecord) -> Plain:
    """Return what is extracted of *page*. O(characters)."""
    title = extract([message for _, message in page.entries]).title if page.entries else ""
    return Plain(title, keywords([page_text(page)]))


def notes_of(owner: Owner, pages: Collection[int]) -> dict[int, tuple[int, Note]]:
    """Return the notes of *pages* (their ids). O(pages)."""
    found = [(key, validated(Note, body)) for key, body in owner.items.derived(pages, KIND)]
    return {note.page: (key, note) for key, note in found if note.page in pages}


def unchanged(owner: Owner, notes: Notes) -> bool:
    """Return whether *notes* are still there: one that replaces another has an id of its own."""
    return owner.items.all_there([key for key, _ in notes.values()])


def summaries(session: Session, context: str, indexes: Collection[int]) -> dict[int, Summary]:
    """Return what notes say of pages of a context, by index. One query."""
    found = {}
    for index, id_, digest, body in session.owner.items.noted(context, indexes):
        note = validated(Note, body)
        if note.page == id_ and note.digest == digest.hex():
            found[index] = note.summary
    return found


class _Before(NamedTuple):
    """The page before another one."""

    id: int
    title: str
    chain: str
    sources: Sequence[int]
    """the pages that title and chain come from"""


def describe_page(run: StepRun, subject: int, body: str = "") -> int:  # noqa: ARG001 -- a step
    """Let a model describe a page (its id). Without a model, what is extracted of it stands. O(its messages)."""
    owner = run.owner
    digest = owner.pages.digest(subject)
    pages = [page for _, page in run.raw([subject])]
    if run.chat is None or digest is None or not pages or not pages[0].entries:
        return 0
    from .prompts.pages import Before, describe

    (page,), before = pages, _before(run, subject)
    offered = None if before is None else Before(before.title, before.chain)
    said = describe(run.chat, page, offered, zone=run.rules.zone)
    note = Note(
        page=subject,
        digest=digest.hex(),
        title=said.title,
        lines=said.summary.lines,
        keywords=said.keywords,
        continues=said.continues,
        after=None if before is None else before.id,
        chain=said.chain,
        events=said.events,
        plain=plainly(page),
    )
    texts = "\n".join((said.title, *note.lines, *said.keywords, said.chain, *(each.what for each in said.events)))
    read = [subject] if before is None else [subject, *before.sources]
    evidence = sources(texts, [subject], {id_: vocabulary(page_text(each)) for id_, each in run.raw(read)})
    with run.change():
        if not owner.pages.all_there(read):
            raise Conflict
        owner.items.drop([key for key, _ in notes_of(owner, [subject]).values()])
        owner.items.put(KIND, dumped(note), pages=evidence)
        owner.pages.retitle(subject, note.title, note.keywords)
    return 1


def _before(run: StepRun, page: int) -> _Before | None:
    """Return the page before *page* in its context, as a model is shown it; None if there is none."""
    owner = run.owner
    id_ = owner.pages.before(page)
    if id_ is None:
        return None
    known = notes_of(owner, [id_]).get(id_)
    if known is None:
        title = "".join(plainly(each).title for _, each in run.raw([id_]))
        return _Before(id_, title, "", [id_]) if title else None
    key, note = known
    evidence = owner.items.evidence(key)
    if len(evidence) > _FORERUNNERS:
        return _Before(id_, note.plain.title, "", [id_]) if note.plain.title else None
    return _Before(id_, note.title, note.chain, evidence)
