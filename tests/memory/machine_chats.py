"""Contexts whose pages leave the window soon, and what their memory must have been told of them. It tests nothing."""

from memci import EphemeralStorage
from memci.rows import PageState
from tests.door import open_context

SMALL_WINDOW = {"window": 700, "reply": 100, "contents_tokens": 90, "never_recalled": 2, "nonce": "1f9a03c2"}


def count(text):
    return len(text.split())


def chat(storage=None, **given):
    """Open a context in which a few turns make a compaction, and a few more unload pages; page #1 stays, as the
    task."""
    given = {"id": "alice", "system": "Be brief.", "counter": count, **SMALL_WINDOW, **given}
    return open_context(EphemeralStorage() if storage is None else storage, **given)


def word(number):
    """Return a word that only turn *number* says."""
    return f"quokka{chr(97 + number // 26)}{chr(97 + number % 26)}k"


def turn(number, filler=40):
    """Return a question and its answer."""
    return (
        {"role": "user", "content": f"Question {number} about {word(number)} please. " + "and so on " * (filler // 3)},
        {"role": "assistant", "content": f"The answer is {number}. " + "so it is " * (filler // 3)},
    )


def talk(context, numbers, **given):
    for number in numbers:
        context.append_turn(*turn(number), **given)
    return context


def states(storage, context="alice"):
    return {row.index: row.state for row in storage.pages(context)}


def unloaded(storage, context="alice"):
    return [index for index, state in states(storage, context).items() if state is PageState.UNLOADED]


def owed(storage, context="alice"):
    """Return what a memory must know of *context* once it was told everything: index to (messages, is admitted)."""
    record = storage.load(context)[0]
    with chat(storage, id=context, read_only=True, window=None, nonce=None) as reader:
        return {
            row.index: (
                [message for _, message in _entries(storage, context, row, reader)],
                row.state in (PageState.ARCHIVED, PageState.UNLOADED),
            )
            for row in storage.pages(context)
            if row.state not in (PageState.UNDONE, PageState.ERASED) and row.index != record.open_page
        }


def _entries(storage, context, row, reader):
    from memci.storage.codec import ERASED, decode

    head = storage.load(context)[0].head
    for first, end in row.spans(head):
        for entry in storage.entries(context, first, end):
            if entry.codec != ERASED:
                yield entry.seq, decode(entry.codec, entry.body)


def heard_of(memory, context="alice"):
    """Return what a `Told` knows of *context*, in the form of `owed`."""
    return {
        index: ([message for _, message in page.entries], (name, index) in memory.admitted)
        for (name, index), page in memory.pages.items()
        if name == context
    }


def found(context, query, **given):
    return [(page.context, page.index) for page in context.search_memory(query, **given).pages]


def finds(context, number):
    """Tell whether *context* finds turn *number* by its word, in a piece that says it."""
    return any(
        word(number) in piece.text for page in context.search_memory(word(number)).pages for piece in page.pieces
    )
