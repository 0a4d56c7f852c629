"""Snapshots: the state of a window at a compaction, as JSON, so that it can be shown again later.

    {"contents": […],                           the Contents Page (`ContentsPage.to_json`)
     "settings": …, "state": …, "next_page": …, "open_page": …        the context's record, after it
     "unloaded": {rule: [index]},                pages that left the Contents Page with it
     "marks": …,                                 words of the pages that left with it, if the cache policy needs them
     "was": …,                                   the settings before, if it changed them
     "clips": [[seq, tokens, clip], …],          messages in it that were shown clipped
     "active": [[index, first, end, turn, cut, away], …]}        the pages that were in it

Appends after a compaction only extend the window. So the state at the close of any turn is the newest snapshot before
it, and the pages that were opened since.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import orjson

from ..chapters.contents import ContentsPage
from ..messages import Message
from ..rows import CompactionRow, ContextRecord, PageRow, PageState
from .state import alone


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a window at a compaction."""

    contents: ContentsPage
    record: ContextRecord
    active: tuple[PageRow, ...] = ()
    was: str | None = None  # the settings before the compaction, if it changed them
    unloaded: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """pages that left the Contents Page, by the rule"""
    clips: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """the tokens of messages that were shown clipped, and the limits, by seq"""


def compaction_of(
    contents: ContentsPage,
    record: ContextRecord,
    active: Iterable[PageRow],
    views: Iterable[tuple[int, int, int]],
    *,
    was: str | None = None,
    marks: str | None = None,
    unloaded: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> CompactionRow:
    """Return the compaction with the snapshot of a window that shows *contents*, and the pages *active* as *views*.

    *record*: the context's record after the compaction. *was*: the settings before it, if it changed them. *marks*: of
    the pages that left with it. *unloaded*: the pages that left the Contents Page, by the rule.
    Words of other contexts stay in the record alone. O(lines + pages).
    """
    fields: dict[str, object] = {
        "contents": contents.to_json(),
        "was": was,
        "settings": record.settings,
        "state": alone(record).state,
        "next_page": record.next_page,
        "open_page": record.open_page,
        "active": [[row.index, row.first, row.end, row.turn, row.cut, row.away] for row in active],
    }
    fields |= {"marks": marks} if marks is not None else {}
    fields |= {"unloaded": unloaded} if unloaded else {}
    clips = {seq: (seq, tokens, clip) for seq, tokens, clip in views if clip}
    fields |= {"clips": [*clips.values()]} if clips else {}
    return CompactionRow(record.revision, record.head, record.turn, orjson.dumps(fields).decode())


def loads(row: CompactionRow, record: ContextRecord) -> Snapshot:
    """Return the snapshot in *row*, which `compaction_of` made. Its Contents Page has frames without a nonce.

    *record*: the context's record now, for the fields that never change.
    """
    fields = orjson.loads(row.text)
    shown = ContentsPage.from_json(fields["contents"], nonce="", weigh=None)
    changing = {name: fields[name] for name in ("settings", "state", "next_page", "open_page")}
    then = record._replace(**changing, head=row.head, turn=row.turn)
    active = tuple(
        PageRow(index, first, end, opened, PageState.ACTIVE, cut and tuple(cut), away=away and tuple(away))
        for index, first, end, opened, cut, away in fields["active"]
    )
    clips = {seq: (tokens, clip) for seq, tokens, clip in fields.get("clips", ())}
    return Snapshot(shown, then, active, fields["was"], fields.get("unloaded", {}), clips)


def marks(text: str) -> str | None:
    """Return the marks in the snapshot *text*, if it has any."""
    found: str | None = orjson.loads(text).get("marks")
    return found


def contents(text: str, *, nonce: str = "", weigh: Callable[[Message], int] | None = None) -> ContentsPage:
    """Return the Contents Page of the snapshot *text*. *weigh* counts its blocks again; None: trust stored counts."""
    return ContentsPage.from_json(orjson.loads(text)["contents"], nonce=nonce, weigh=weigh)
