"""Salvaging: copies all readable rows of a damaged store to a new one, and names those that are lost.

A context without a problem is copied exactly. In a damaged context, each readable message is copied exactly, on the
same page and with the same number. In the place of a lost message, the copy has "[erased]".
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from ..errors import CorruptRecord, MemciError
from ..rows import CALL, COMPACTION, ENTRY, OP, PAGE, CallRow, CompactionRow, ContextRecord, OpRow, PageRow, PageState
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.codec import ERASED, decode
from ..storage.witness import Slot, key_of
from ..tokens import counter_for, message_tokens
from ..window.state import WindowState
from .loader import OpenRequest, load_context, settings_of
from .page_runs import gaps
from .reader import holds
from .row_stream import Row, Unread, detach, readable_rows, rows_of, store_in_ram, tombstone, transition_of
from .verify import problems

_LOST: Final = {
    COMPACTION: "the Contents Page",
    OP: "digests of named appends",
    CALL: "what calls of the model cost",
}
"""what is lost with the rows of each table"""


class SalvagedContext(NamedTuple):
    """The result for one context."""

    id: str
    messages: int  # how many of its messages are in the target
    lost: tuple[str, ...]  # a sentence for each loss; () if the copy is exact
    saved: bool = True  # whether the target has the context


@checked
def salvage_contexts(source: Storage, target: Storage, witnessed: Collection[Slot] = ()) -> Iterator[SalvagedContext]:
    """Copy the readable rows of each context of *source* to the empty *target*, and yield the results. O(rows).

    *witnessed*: the slots of its witness. Commits that a context lacks by them are named, too, and so are contexts that
    are not there.
    """
    slots = {slot.key: slot for slot in witnessed}
    for each in _salvage_all(source, target):
        slot, revision = slots.pop(key_of(each.id), None), target.revision(each.id) if each.saved else 0
        if slot is not None and each.saved and revision < slot.revision:
            yield each._replace(lost=(*each.lost, f"its newest commits: {slot.sentence(each.id, revision)}"))
        else:
            yield each
    for slot in slots.values():
        yield SalvagedContext("", 0, (slot.sentence("", 0),), saved=False)


def _salvage_all(source: Storage, target: Storage) -> Iterator[SalvagedContext]:
    after: str | None = None
    while True:
        try:
            records = source.contexts(after=after, limit=1)
        except CorruptRecord as error:
            if not error.context:
                yield SalvagedContext("", 0, (f"contexts behind {after!r:.60}: {error}",), saved=False)
                return
            yield SalvagedContext(error.context, 0, (error.reason,), saved=False)
            after = error.context
            continue
        if not records:
            return
        yield from _salvage_after_parent(source, target, records[0])
        after = records[0].id


def _salvage_after_parent(source: Storage, target: Storage, record: ContextRecord) -> Iterator[SalvagedContext]:
    if target.revision(record.id):
        return
    if record.parent is not None:
        try:
            found = source.load(record.parent)
        except MemciError:
            found = None  # the loss is named when its own turn comes
        if found is not None:
            yield from _salvage_after_parent(source, target, found[0])
    alone = record.parent is not None and not target.revision(record.parent)
    damage = list(problems(source, record.id))
    if not damage and not alone:
        target.commit(transition_of(rows_of(source, record)))
        yield SalvagedContext(record.id, record.head, ())
        return
    rows, lost = _rebuild(source, detach(record) if alone else record)
    messages = record.head - sum(sentence.startswith("message ") for sentence in lost)
    wrong = _find_problems(rows)
    if wrong:
        rows = _unlist(rows)
        wrong = _find_problems(rows)
        lost.append("the Contents Page, digests of named appends, and what calls of the model cost")
    if wrong:
        yield SalvagedContext(record.id, 0, (*lost, *wrong), saved=False)
        return
    target.commit(transition_of(rows))
    yield SalvagedContext(record.id, messages, tuple(lost if len(lost) > 1 else (*damage, *lost)))


def _rebuild(source: Storage, record: ContextRecord) -> tuple[list[Row], list[str]]:
    """Return the rows of the context of *record*, with substitutes for lost rows, and sentences about the losses."""
    rows: list[Row] = []
    unread: list[Unread] = []
    pages: dict[int, PageRow] = {}
    compactions: list[CompactionRow] = []
    model = settings_of(record).model
    cost = message_tokens(decode(ERASED, b"user"), counter_for(model, None), model)  # of a tombstone
    for row in readable_rows(source, record):
        match row:
            case Unread():
                unread.append(row)
                if row.table is ENTRY and row.number >= record.base:
                    rows.append(tombstone(row.number, cost))
            case PageRow():
                pages[row.index] = row
            case CompactionRow():
                compactions.append(row)
            case _:
                rows.append(row)
    filled = _fill_pages(record, pages)
    lost = [_describe(each, filled, record.head) for each in unread if each.table is not COMPACTION or not compactions]
    if compactions or any(each.table is COMPACTION for each in unread):
        lost.append("earlier states of the window: the requests of earlier turns can't be shown again")
    if any(each.table is ENTRY for each in unread):  # they are counted as erased
        state = WindowState.loads(record.state).alone()
        state = state._replace(erasures=state.erasures + 1)
        rows = [row._replace(state=state.dumps()) if isinstance(row, ContextRecord) else row for row in rows]
    return [*rows, *filled, *compactions[:1]], lost


def _describe(unread: Unread, pages: Sequence[PageRow], head: int) -> str:
    """Return a sentence about the loss of *unread*, in a context with *pages*."""
    reason = unread.error.reason if isinstance(unread.error, CorruptRecord) else str(unread.error)
    if unread.table is PAGE:
        return f"page #{unread.number}, where it begins and ends: {reason}"
    if unread.table in _LOST:
        return f"{_LOST[unread.table]}: {reason}"
    page = next((page.index for page in pages if holds(page, unread.number, head)), 0)
    what = "message" if unread.table is ENTRY else "the clipping of message"
    return f"{what} {unread.number + 1} (page #{page}): {reason}"


def _fill_pages(record: ContextRecord, pages: dict[int, PageRow]) -> list[PageRow]:
    """Return a row for every page. A page whose row is lost gets the next run of messages that are on no page."""
    free = gaps(record, pages.values())
    rows = []
    turn = reached = 0
    for index in range(1, record.next_page):
        row, is_open = pages.get(index), index == record.open_page
        if row is None:
            later = min((page.first for page in pages.values() if page.index > index), default=record.head)
            span = next((each for each in free if each[1] <= later or is_open), None)
            first, end = span or (reached, reached)
            lost = PageState.ERASED if span is None else PageState.UNLOADED
            row = PageRow(index, first, None if is_open else end, turn, PageState.ACTIVE if is_open else lost)
            free = [each for each in free if each != span]
        turn = row.turn
        reached = max(reached, record.head if row.end is None else row.end)
        rows.append(row)
    return rows


def _unlist(rows: Sequence[Row]) -> list[Row]:
    """Return *rows* without a Contents Page. Pages that it listed are unloaded; the memory still finds them."""
    kept: list[Row] = []
    for row in rows:
        if isinstance(row, PageRow) and row.state is PageState.ARCHIVED:
            kept.append(row._replace(state=PageState.UNLOADED))
        elif not isinstance(row, CompactionRow | OpRow | CallRow):
            kept.append(row)
    return kept


def _find_problems(rows: Sequence[Row]) -> list[str]:
    """Return the problems of the context that *rows* make; [] if it opens and is whole."""
    try:
        scratch = store_in_ram(transition_of(rows))
        [record] = scratch.contexts()
        found = list(problems(scratch, record.id))
        load_context(scratch, OpenRequest(record.id, read_only=True))
    except (MemciError, ValueError, KeyError) as error:
        return [str(error)]
    return found
