"""Forking: a new context that shares the messages so far of another one.

    alice    ● ● ● ● ● ● ●                  its entries stay where they are
    alice-2  └─shared─┘ ○ ○                 entries after the fork, rows of all pages, and the window are its own

Messages are copied only for another owner. Then each owner erases only their own messages, and the rows of each are
encrypted with their own key. What was found in the first owner's other contexts does not go along.
"""

from ..errors import WriteConflict
from ..storage import Storage
from ..storage.names import new, taken
from ..storage.protocol import Transition
from ..window import snapshot as snapshots
from ..window.window import Window


def store_fork(source: Storage, target: Storage, window: Window, id: str, owner: str | None) -> str:  # noqa: A002
    """Store the context *id*, which continues from *window*, in *target*, and return its id there.

    See `Context.fork`. O(pages), and O(messages) for another owner. *source* is the store from which the window was
    read, perhaps as of an earlier turn.
    """
    was, contents = window.record, window.contents
    owner = was.owner if owner is None else owner
    name, shared = new(target, id, owner), owner == was.owner
    state = (window.state if shared else window.state.handed_over())._replace(since=was.head, outbox=())
    record = was._replace(
        id=name,
        owner=owner,
        state=state.dumps(),
        revision=1,
        parent=was.id if shared else None,
        base=was.head if shared else 0,
    )
    entries = () if shared else tuple(source.entries(was.id, 0, was.head, as_appended=True))
    pages = tuple(window.rows.get(row.index, row) for row in source.pages(was.id, last=was.next_page - 1))
    awaited = (row for row in pages if row.index in window.state.pins and row.index not in window.rows)
    back = (row for page in awaited for span in page.spans(was.head) for row in source.entries(was.id, *span))
    # the views of pinned pages that the next compaction brings back
    views = (*window.views, *((row.seq, row.tokens, row.clip) for row in back))
    made = (snapshots.compaction_of(contents, record, window.rows.values(), views),)
    try:
        target.commit(Transition(0, record, entries, pages, views=views, compactions=made))
    except WriteConflict:
        raise taken(id) from None
    return name
