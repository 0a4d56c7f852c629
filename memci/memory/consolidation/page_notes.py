"""Page notes: a model describes each page once, and the note is stored with the page as its evidence.

A note is erased with its page.
"""

from ...text.language.keywords import keywords
from ...text.summarize import titled
from ..backend import PageRecord
from ..repository.passages import NOTE
from ..tiers.topics import page_text
from .annotation import annotate
from .event_detection import keep_late_events
from .step import Step, StepRun


def extract_title(page: PageRecord) -> tuple[str, tuple[str, ...]]:
    """Return a title and keywords, extracted from *page* by rule. O(characters)."""
    title = titled([[message for _, message in page.entries]])[0].text if page.entries else ""
    return title, keywords([page_text(page)])


def describe_page(run: StepRun) -> int:
    """Have a model describe a page; without one, the extracted title stays. O(its messages)."""
    owner, subject = run.owner, run.subject
    pages = run.session.read_pages([subject])
    if run.chat is None or not owner.pages.all_there([subject]) or not pages or not pages[0][1].entries:
        return 0
    from .prompts.pages import describe

    note = describe(run.chat, pages[0][1], zone=run.session.rules.tzinfo)
    written = [note.title, *note.lines, *note.keywords, *(event.what for event in note.events)]
    gained = annotate(written, dict(pages))
    with run.write(lambda: owner.pages.all_there([subject])):
        owner.items.drop([key for key, _ in owner.items.notes([subject]).values()])
        owner.items.put(note, pages=[subject])
        owner.pages.retitle(subject, note.title, note.keywords)
        owner.annotate(NOTE, gained)
        keep_late_events(run, subject, pages[0][1], note.events)
    return 1


NOTES = Step("page", describe_page)
