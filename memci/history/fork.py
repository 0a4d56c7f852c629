"""Forking: a new context that shares the messages so far of another one.

    alice    ● ● ● ● ● ● ●                  its entries stay where they are
    alice-2  └─shared─┘ ○ ○                 entries after the fork, rows of all pages, and the window are its own

No message is copied. This module knows nothing of how the window was made.
"""

from dataclasses import replace

from ..errors import WriteConflict
from ..storage import Storage
from ..storage.protocol import Transition
from ..window import snapshot as snapshots
from ..window.window import Window
from .loader import check_free, check_name, taken


def forked(source: Storage, target: Storage, window: Window, id: str, owner: str | None) -> None:  # noqa: A002
    """Store the context *id* in *target*, which continues from *window* (see `Context.fork`). O(pages).

    *source* has the pages: the store that the window was read from, perhaps as of an earlier turn.
    """
    check_free(target, id)
    if owner is not None:
        check_name("owner", owner)
    was, contents = window.record, window.contents
    state = replace(window.state, since=was.head, outbox=())
    record = was._replace(
        id=id, owner=owner or was.owner, state=state.dumps(), revision=1, parent=was.id, base=was.head
    )
    pages = tuple(window.rows.get(row.index, row) for row in source.pages(was.id, last=was.next_page - 1))
    awaited = (row for row in pages if row.index in window.state.pins and row.index not in window.rows)
    back = (row for page in awaited for span in page.spans(was.head) for row in source.entries(was.id, *span))
    views = (*window.views, *((row.seq, row.tokens, row.clip) for row in back))  # as they stand when they come back
    compaction = snapshots.dumps(contents, record, window.rows.values())
    try:
        target.commit(Transition(0, record, pages=pages, views=views, compaction=compaction))
    except WriteConflict:
        raise taken(id) from None
