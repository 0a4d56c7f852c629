"""The notes of pages: a model describes each page once, and its note is found by the page.

    page #57 ──▶ describe_page ──▶ Note, whose evidence is #57 and what it took from #56      summaries(…) ──▶ #57

This module knows nothing of episodes.
"""

from collections.abc import Collection
from dataclasses import replace

from ...text.language.keywords import keywords
from ...text.summarize import Summary, extract
from ..backend import PageRecord
from ..owner import Conflict, Owner, Session
from ..repository.items import dumped, validated
from ..repository.pages import QUARANTINED
from ..tiers.facts import sources, vocabulary
from ..tiers.notes import Before, Note, Notes, Plain
from ..tiers.topics import page_text
from .step import StepRun

KIND = "note"
_FORERUNNERS = 8
"""pages that the text of a chain may come from; the text of a longer chain is made again from its last page"""


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


def describe_page(run: StepRun) -> int:
    """Let a model describe a page (its id). Without a model, what is extracted of it stands. O(its messages)."""
    owner, subject = run.owner, run.subject
    known = owner.pages.row(subject)
    pages = run.session.raw([subject])
    if run.chat is None or known is None or known.marks & QUARANTINED or not pages or not pages[0][1].entries:
        return 0
    from .prompts.pages import describe

    page, before = pages[0][1], _before(run)
    said = describe(run.chat, page, before, zone=run.session.rules.zone)
    after = None if before is None else before.id
    note = replace(said, page=subject, digest=known.digest.hex(), after=after, plain=plainly(page))
    texts = "\n".join((note.title, *note.lines, *note.keywords, note.chain, *(each.what for each in note.events)))
    read = [subject] if before is None else [subject, *before.sources]
    evidence = sources(texts, [subject], {id_: vocabulary(page_text(each)) for id_, each in run.session.raw(read)})
    with run.change():
        if not owner.pages.all_there(read):
            raise Conflict
        owner.items.drop([key for key, _ in notes_of(owner, [subject]).values()])
        owner.items.put(KIND, dumped(note), pages=evidence)
        owner.pages.retitle(subject, note.title, note.keywords)
    return 1


def _before(run: StepRun) -> Before | None:
    """Return the page before the one that is described, in its context; None if there is none."""
    owner = run.owner
    id_ = owner.pages.before(run.subject)
    if id_ is None:
        return None
    known = notes_of(owner, [id_]).get(id_)
    if known is None:
        title = "".join(plainly(each).title for _, each in run.session.raw([id_]))
    else:
        evidence = owner.items.evidence(known[0])
        if len(evidence) <= _FORERUNNERS:
            return Before(known[1].title, known[1].chain, id_, evidence)
        title = known[1].plain.title
    return Before(title, "", id_, [id_]) if title else None
