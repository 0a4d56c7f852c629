"""Reads whole pages: as nodes for the window, or as entries for an answer.

An entry has the same number in both: its place in its interaction, from 1.
"""

from collections.abc import Sequence

from ..chapters.chapter import Entry
from ..chapters.messagelist import MessageNode
from ..chapters.toolgroups import NO_CALLS, OpenCalls, late_result
from ..errors import PageNotFound
from ..messages import Message, tool_calls
from ..rows import EntryRow, PageRow, PageState
from ..text.moments import moment
from ..tools.recall_page import RecalledPage
from ..window.draft import StoredPage
from ..window.page_text import PageText
from ..window.window import Window
from .reader import Reader


def read_back(window: Window, reader: Reader, index: int) -> StoredPage:
    """Return page *index* with its messages as nodes, and count their tokens again."""
    row = reader.page(index, window.record)
    return as_nodes(window, reader, row, reader.entries(row, window.record.head), recount=True)


def as_nodes(
    window: Window, reader: Reader, row: PageRow, entries: Sequence[tuple[EntryRow, Message]], *, recount: bool
) -> StoredPage:
    """Return the page *row* and its *entries* as *window* shows, or would show, them. O(messages of the page).

    *recount*: count the tokens of each again, instead of trusting the store.
    """
    base = reader.base(row)
    nodes = []
    calls = NO_CALLS
    for entry, message in entries:
        place = row.index, entry.seq - base + 1
        spans = entry.spans if window.settings.notice else None
        view = window.shown(message, entry.clip, *place, spans)
        node = MessageNode(message, entry.tokens, seq=entry.seq, clip=entry.clip, spans=spans, view=view, at=entry.at)
        node.quotes = entry.quotes
        late = message["role"] == "tool" and calls.take(message["tool_call_id"]) is None
        if message["role"] != "tool":
            calls = OpenCalls(made) if (made := tool_calls(message)) else NO_CALLS
        if recount:
            node.tokens = window.weigh(late_result(view, window.state.nonce) if late else view)
        nodes.append(node)
    return StoredPage(row, base, PageText(nodes))


def page_text(window: Window, reader: Reader, index: int, entry: int | None) -> RecalledPage:
    """Return page *index*, which holds *entry*. O(messages of the page).

    Raises as `Context.recall_page`.
    """
    record = window.record
    row = window.row(index) or reader.page(index, record)
    if entry is not None:
        if type(entry) is not int:
            raise PageNotFound(index, (1, record.next_page - 1), entry=entry)
        row = reader.holding(row, entry, record)
    page = window.active.page(row.index) if row.state is PageState.ACTIVE else None
    if page is not None and row.away is None:
        entries = tuple((each, node.message) for each, node in zip(page.entries(), page, strict=True))
        times = {page.ordinal(node): moment(node.at) for node in page if node.at is not None}
    else:
        base = reader.base(row)
        read = [(stored.seq - base + 1, stored, message) for stored, message in reader.entries(row, record.head)]
        entries = tuple((Entry(row.index, ordinal, message["role"]), message) for ordinal, _, message in read)
        times = {ordinal: moment(stored.at) for ordinal, stored, _ in read if stored.at is not None}
    if entry is not None and all(each.ordinal != entry for each, _ in entries):
        raise PageNotFound(index, (1, record.next_page - 1), entry=entry)
    nodes = {page.ordinal(node): node for node in page} if page is not None else {}
    clipped = tuple(ordinal for ordinal, node in nodes.items() if not node.whole)
    return RecalledPage(row.index, row.turn, entries, frozenset(nodes), clipped, times)
