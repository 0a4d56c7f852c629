"""Undo: the newest interaction is taken back. Its pages are marked, and nothing is deleted.

    #11 "Book Oslo", "Booked."    #12 "And a hotel.", "Which one?"    ──▶    #11 active    #12 undone

Its messages stay in the store, and the numbers of its pages are not used again. This module decides what changes; the
writer commits it. It knows nothing of how a change is committed.
"""

from dataclasses import replace
from operator import itemgetter
from typing import NamedTuple

from ..chapters.contents import ContentsPage
from ..errors import PageNotFound
from ..messages import Message
from ..storage import Storage
from ..storage.protocol import PageRow, PageState, Transition
from ..window.window import Window
from .reader import GONE, Reader


class Undo(NamedTuple):
    """What changes when the newest interaction is taken back."""

    transition: Transition
    pages: frozenset[int]
    """the pages that leave the window and the Contents Page"""
    contents: ContentsPage
    """the Contents Page without them"""
    messages: list[Message]
    """the messages that were taken back, in order"""


def undone(storage: Storage, window: Window, reader: Reader) -> Undo:
    """Return what changes when the newest interaction of *window* is taken back; PageNotFound if there is none.

    O(pages behind it + its messages).
    """
    record = window.record
    rows = _newest_interaction(storage, window)
    entries = [entry for page in reader.all_entries(rows, record.head).values() for entry in page]
    pages = frozenset(row.index for row in rows)
    marked = tuple(
        row._replace(state=PageState.UNDONE, end=record.head if row.end is None else row.end) for row in rows
    )
    state = replace(window.state, undone=window.state.undone + len(pages)).without(pages).posting(pages)
    after = window.changed(state)._replace(open_page=None)
    return Undo(
        Transition(record.head, after, pages=marked),
        pages,
        window.contents.without(pages, state.nonce, window.weigh),
        [message for _, message in sorted(((entry.seq, message) for entry, message in entries), key=itemgetter(0))],
    )


def _newest_interaction(storage: Storage, window: Window) -> list[PageRow]:
    """Return the pages of the newest interaction that was not undone or erased, by index. O(pages behind it)."""
    record = window.record
    for index in range(record.next_page - 1, 0, -1):
        for row in storage.pages(record.id, first=index, last=index):
            if row.state in GONE:
                continue
            origin = row.continues or row.index
            others = storage.pages(record.id, first=origin)
            return [each for each in others if origin in (each.index, each.continues) and each.state not in GONE]
    raise PageNotFound("newest", (1, record.next_page - 1) if record.next_page > 1 else None)
