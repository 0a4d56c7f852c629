"""Snapshots: how a window stood at a compaction, as JSON, so that it can be seen again later.

    {"contents": […],                           the Contents Page (`ContentsPage.to_json`)
     "settings": …, "state": …, "next_page": …, "open_page": …        the context's record, after it
     "was": …,                                   the settings before, if it changed them
     "active": [[index, first, end, turn, cut, continues], …]}        the pages that stood verbatim

What is appended after a compaction only extends the window, so the state at the close of any turn is the newest
snapshot before it, and the pages that were opened since. A compaction of memci 0.1 is a bare list: the Contents Page
alone. This module knows nothing of storage, beyond the rows that are stored.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ..chapters.contents import ContentsPage
from ..messages import Message
from ..storage.protocol import ContextRecord, PageRow, PageState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How a window stood."""

    contents: ContentsPage
    record: ContextRecord | None
    """None for a compaction of memci 0.1, which did not keep it"""
    active: tuple[PageRow, ...] = ()
    was: str | None = None
    """the settings before it, if it changed them"""


def dumps(contents: ContentsPage, record: ContextRecord, active: Iterable[PageRow], *, was: str | None = None) -> str:
    """Return the snapshot of a window that shows *contents* and the pages *active*. O(lines + pages).

    Args:
        contents: The Contents Page.
        record: The context's record, after it.
        active: The pages that stood verbatim, after it.
        was: The settings before, if it changed them.
    """
    fields = {
        "contents": contents.to_json(),
        "was": was,
        "settings": record.settings,
        "state": record.state,
        "next_page": record.next_page,
        "open_page": record.open_page,
        "active": [[row.index, row.first, row.end, row.turn, row.cut, row.continues] for row in active],
    }
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def loads(
    text: str, record: ContextRecord, *, nonce: str, weigh: Callable[[Message], int] | None, head: int, turn: int
) -> Snapshot:
    """Return the snapshot that `dumps` wrote.

    Args:
        text: What it wrote.
        record: The context's record as it is now, for what never changes.
        nonce: In the frames of the Contents Page.
        weigh: Counts its blocks again; None trusts the stored counts.
        head: The next seq at that time.
        turn: The turn at that time.
    """
    fields = json.loads(text)
    if isinstance(fields, list):
        return Snapshot(ContentsPage.from_json(fields, nonce=nonce, weigh=weigh), None)
    then = record._replace(
        settings=fields["settings"],
        state=fields["state"],
        next_page=fields["next_page"],
        open_page=fields["open_page"],
        head=head,
        turn=turn,
    )
    active = tuple(
        PageRow(index, first, end, opened, PageState.ACTIVE, None if cut is None else (cut[0], cut[1]), continues)
        for index, first, end, opened, cut, continues in fields["active"]
    )
    return Snapshot(ContentsPage.from_json(fields["contents"], nonce=nonce, weigh=weigh), then, active, fields["was"])


def contents(text: str, *, nonce: str, weigh: Callable[[Message], int] | None) -> ContentsPage:
    """Return the Contents Page of the snapshot *text*."""
    fields = json.loads(text)
    return ContentsPage.from_json(fields if isinstance(fields, list) else fields["contents"], nonce=nonce, weigh=weigh)
