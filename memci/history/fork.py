"""Forking: a new context that shares the past of another one.

    alice    ● ● ● ● ● ● ●                  its entries stay where they are
    alice-2  └─shared─┘ ○ ○                 entries after the fork, rows of all pages, and the window are its own

This module knows nothing of how a window came about.
"""

from dataclasses import replace

from ..errors import InvalidSetting, WriteConflict
from ..storage import Storage
from ..storage.protocol import Transition
from ..window import snapshot as snapshots
from ..window.window import Window


def forked(source: Storage, target: Storage, window: Window, id: str, owner: str | None) -> None:  # noqa: A002
    """Store the context *id*, which goes on from *window*. O(pages).

    Args:
        source: Has the pages as the window knows them.
        target: Where the context of the window is, and the new one will be.
        window: What both share.
        id: The new context.
        owner: Whose memory it is; None: the same as before.

    Raises:
        InvalidSetting: If there is a context *id* already.
    """
    taken = InvalidSetting("id", f"there is a context {id!r:.60} already: take another name")
    if not isinstance(id, str) or not id:
        raise InvalidSetting("id", f"expected a name for the fork (a str that is not empty), got {id!r:.60}")
    if owner is not None and (not isinstance(owner, str) or not owner):
        raise InvalidSetting("owner", f"expected a name (a str that is not empty), got {owner!r:.60}")
    if target.load(id) is not None:
        raise taken
    was, contents = window.record, window.contents
    state = replace(window.state, since=was.head, outbox=())
    record = was._replace(
        id=id, owner=owner or was.owner, state=state.dumps(), revision=1, parent=was.id, base=was.head
    )
    pages = tuple(window.rows.get(row.index, row) for row in source.pages(was.id, last=was.next_page - 1))
    views = tuple((node.seq, window.active.own_tokens(node), node.clip) for node in window.active.messages)
    compaction = snapshots.dumps(contents, record, window.rows.values())
    try:
        target.commit(Transition(0, record, pages=pages, views=views, compaction=compaction))
    except WriteConflict:
        raise taken from None
