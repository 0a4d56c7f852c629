"""Undo and pop: take back the newest interaction, or the newest message. They are marked, and nothing is deleted.

    #11 "Book Oslo", "Booked."    #12 "And a hotel.", "Which one?"

    undo   ──▶   #11 closed       #12 undone
    pop    ──▶   #11 closed       #12 open: "And a hotel."      #13 undone, a part of #12: "Which one?"
    pop    ──▶   #11 open         #12 undone                    #13 undone

Messages that are taken back stay in the store, and the numbers of their pages are not used again. This module decides
what changes; the writer commits it.
"""

from collections.abc import Sequence
from contextlib import suppress

from ..chapters.contents import ContentsPage
from ..errors import InvalidSetting, PageNotFound
from ..messages import Message
from ..rows import ContextRecord, PageRow, PageState
from ..storage import Storage
from ..storage.codec import decode
from ..storage.protocol import Transition
from ..window.window import Window
from .reader import GONE, Reader


def plan_undo(
    storage: Storage, window: Window, reader: Reader
) -> tuple[Transition, frozenset[int], ContentsPage, list[Message]]:
    """Return the transition that takes back the newest interaction of *window*. PageNotFound if there is none.

    Also return the pages that leave the window, the Contents Page without them, and their messages, in order.
    O(pages behind it + its messages).
    """
    record = window.record
    rows = _newest_interaction(storage, record)
    entries = [entry for page in reader.all_entries(rows, record.head).values() for entry in page]
    pages = frozenset(row.index for row in rows)
    marked = tuple(
        row._replace(state=PageState.UNDONE, end=record.head if row.end is None else row.end, away=None) for row in rows
    )
    state = window.state._replace(undone=window.state.undone + len(pages)).without(pages).posting(pages)
    after = window.changed(state)._replace(open_page=None)
    contents = window.contents.without(pages, state.nonce, window.weigh)
    messages = [message for _, message in sorted(entries, key=lambda entry: entry[0].seq)]
    return Transition(record.head, after, pages=marked), pages, contents, messages


def plan_pop(storage: Storage, window: Window) -> tuple[Transition, Message]:
    """Return the transition that takes back the newest message of *window*, and the message. O(pages behind it).

    Its page is open then. If nothing is left of the page, the page before it is opened again, if it is in the window.
    PageNotFound if there is no message; InvalidSetting if it is archived, or if all messages before it on its page are.
    """
    record = window.record
    head, rows = record.head, _newest_interaction(storage, record)
    page = _with_newest(rows, head)
    seq = page.spans(head)[-1][1] - 1
    left = page._replace(end=None).without(seq, head)  # the messages behind it were taken back before
    shown = _may_be_open(page) and page.shown(head)[-1:] and page.shown(head)[-1][1] > seq
    if not shown or (left.spans(head) and not left.shown(head)):
        what = "each message before it is" if shown else "the newest message is"
        reason = f"{what} archived, on page #{page.index}: undo() takes its whole interaction back"
        raise InvalidSetting("pop", reason)
    [message] = [decode(entry.codec, entry.body) for entry in storage.entries(record.id, seq, seq + 1)]
    taken = PageRow(record.next_page, seq, seq + 1, page.turn, PageState.UNDONE, continues=page.index)
    opened: PageRow | None = left
    if not left.spans(head):
        taken = page._replace(state=PageState.UNDONE, end=head if page.end is None else page.end, away=None)
        opened = _opened_before(storage, record, page)
    pages = {row.index: row for row in (taken, opened) if row is not None}
    state = window.state._replace(undone=window.state.undone + 1).without([taken.index]).posting(pages)
    after = window.changed(state)._replace(open_page=None, next_page=max(record.next_page, taken.index + 1))
    if opened is not None:
        for row in storage.pages(record.id, first=opened.index + 1):
            if row.turn > opened.turn:  # its messages were all taken back, and turns never decrease with the indexes
                pages[row.index] = pages.get(row.index, row)._replace(turn=opened.turn)
        after = after._replace(open_page=opened.index, turn=opened.turn)
    return Transition(head, after, pages=tuple(pages.values())), message


def _opened_before(storage: Storage, record: ContextRecord, page: PageRow) -> PageRow | None:
    """Return the page before *page*, opened again. None if there is none, or if its end is not in the window."""
    with suppress(PageNotFound):
        before = _with_newest(_newest_interaction(storage, record, before=page.index), record.head)
        shown, spans = before.shown(record.head), before.spans(record.head)
        if _may_be_open(before) and shown and shown[-1][1] == spans[-1][1]:
            return before._replace(end=None).without(before.spans(record.head)[-1][1], record.head)
    return None


def _newest_interaction(storage: Storage, record: ContextRecord, before: int | None = None) -> list[PageRow]:
    """Return the pages of the newest interaction that was not undone or erased, by index. O(pages behind it).

    With *before*, only pages before that index are looked at. Raises PageNotFound if there is none.
    """
    for index in range((before or record.next_page) - 1, 0, -1):
        for row in storage.pages(record.id, first=index, last=index):
            if row.state in GONE:
                continue
            origin = row.continues or row.index
            others = storage.pages(record.id, first=origin)
            return [each for each in others if origin in (each.index, each.continues) and each.state not in GONE]
    raise PageNotFound("newest")


def _with_newest(rows: Sequence[PageRow], head: int) -> PageRow:
    """Return the page of *rows* that holds their newest message. O(pages)."""
    return max(rows, key=lambda row: row.spans(head)[-1:])


def _may_be_open(row: PageRow) -> bool:
    """Return whether messages may be appended to the page: it is in the window, and was not taken back from another."""
    return row.state is PageState.ACTIVE and row.continues is None
