"""Undo and pop: take back the newest interaction, or the newest messages. They are marked, and nothing is deleted.

    #11 "Book Oslo", "Booked."    #12 "And a hotel.", "Which one?"

    undo   ──▶   #11 closed       #12 undone
    pop    ──▶   #11 closed       #12 open: "And a hotel."      #13 undone, a part of #12: "Which one?"
    pop    ──▶   #11 open         #12 undone                    #13 undone

Messages that are taken back stay in the store, and the numbers of their pages are not used again. This module decides
what changes; the writer commits it.
"""

from collections.abc import Iterable, Sequence
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


def plan_pop(storage: Storage, window: Window, count: int) -> tuple[Transition, list[Message]]:
    """Return the transition that takes back the newest *count* messages of *window*, and these, in order.

    O(pages behind them). The page before them is open then, if it is in the window. PageNotFound if there are fewer;
    InvalidSetting if one is archived, or if all messages before it on its page are.
    """
    record, head = window.record, window.record.head
    gone: list[PageRow] = []
    opened: PageRow | None = _with_newest(_newest_interaction(storage, record), head)
    while count:
        if opened is None:
            index = _with_newest(_newest_interaction(storage, record, before=gone[-1].index), head).index
            raise _archived("the newest message is", index)
        page, seqs, shown = opened, _seqs(opened.spans(head)), _seqs(opened.shown(head))
        if not _may_be_open(page) or shown[-1:] != seqs[-1:]:
            raise _archived("the newest message is", page.index)
        if shown[-count:] != seqs[-count:] or len(shown) == count < len(seqs):
            raise _archived("each message before it is", page.index)
        if (size := len(seqs)) > count:
            taken, opened, count = *_split(page, seqs[size - count :], record), 0
        else:
            taken = page._replace(state=PageState.UNDONE, end=head if page.end is None else page.end, away=None)
            opened, count = _opened_before(storage, record, page), count - size
        gone.append(taken)
    entries = [each for row in reversed(gone) for span in row.spans(head) for each in storage.entries(record.id, *span)]
    pages = {row.index: row for row in (*gone, opened) if row is not None}
    undone = window.state.undone + len(gone)
    state = window.state._replace(undone=undone).without([row.index for row in gone]).posting(pages)
    newest = max(record.next_page, *(row.index + 1 for row in gone))
    after = window.changed(state)._replace(open_page=None, next_page=newest)
    if opened is not None:
        for row in storage.pages(record.id, first=opened.index + 1):
            if row.turn > opened.turn:  # its messages were all taken back, and turns never decrease with the indexes
                pages[row.index] = pages.get(row.index, row)._replace(turn=opened.turn)
        after = after._replace(open_page=opened.index, turn=opened.turn)
    return Transition(head, after, pages=tuple(pages.values())), [decode(each.codec, each.body) for each in entries]


def _seqs(spans: Iterable[tuple[int, int]]) -> list[int]:
    return [seq for span in spans for seq in range(*span)]


def _split(page: PageRow, seqs: Sequence[int], record: ContextRecord) -> tuple[PageRow, PageRow]:
    """Return the row of the entries *seqs* of *page*, which are its last ones and are taken back, and its new row."""
    first, end = seqs[0], seqs[-1] + 1
    cut = tuple(bound for bound in page.cut or () if first < bound < end)  # what was taken back before
    taken = PageRow(record.next_page, first, end, page.turn, PageState.UNDONE, cut or None, continues=page.index)
    return taken, page._replace(end=None).without(first, record.head)


def _archived(what: str, page: int) -> InvalidSetting:
    reason = f"{what} archived, on page #{page}: undo() takes its whole interaction back"
    return InvalidSetting("pop", reason)


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
    last, size = (before or record.next_page) - 1, 4
    while last > 0:
        for row in reversed([*storage.pages(record.id, first=max(1, last - size + 1), last=last)]):
            if row.state not in GONE:
                origin = row.continues or row.index
                others = storage.pages(record.id, first=origin)
                return [each for each in others if origin in (each.index, each.continues) and each.state not in GONE]
        last, size = last - size, 2 * size
    raise PageNotFound("newest")


def _with_newest(rows: Sequence[PageRow], head: int) -> PageRow:
    """Return the page of *rows* that holds their newest message. O(pages)."""
    return max(rows, key=lambda row: row.spans(head)[-1:])


def _may_be_open(row: PageRow) -> bool:
    """Return whether messages may be appended to the page: it is in the window, and was not taken back from another."""
    return row.state is PageState.ACTIVE and row.continues is None
