"""Salvaging: what can be read of a damaged store goes to a new one, and what is lost is named.

    for each in salvaged(damaged, SQLiteStorage("new.db")):
        each.lost                       "message 23 (page #12): its bytes are not those that were written"

A context without a problem is copied exactly. Of another one, each readable message is copied exactly, under the same
page and number; a message that is lost reads "[erased]" there. This module knows nothing of files.
"""

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import CorruptRecord, MemciError
from ..rows import ContextRecord, EntryRow, PageRow, PageState
from ..storage import EphemeralStorage, Storage
from ..storage.codec import ERASED, decode, digest
from ..storage.protocol import Transition
from ..tokens import counter_for, message_tokens
from .copying import whole
from .loader import OpenRequest, loaded, settings_of
from .verify import entries_or_errors, gaps, problems, rows_or_errors

_BESIDE = "digests of named appends, and what calls of the model cost"


class SalvagedContext(NamedTuple):
    """What became of a context."""

    id: str
    messages: int
    """how many of its messages are in the target"""
    lost: tuple[str, ...]
    """a sentence for everything that is not; () if it is there exactly"""
    saved: bool = True
    """whether the target has it"""


def salvaged(source: Storage, target: Storage) -> Iterator[SalvagedContext]:
    """Copy what is readable of each context of *source* to the empty *target*, and yield what became of it. O(rows)."""
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
        yield from _with_parent(source, target, records[0])
        after = records[0].id


def _with_parent(source: Storage, target: Storage, record: ContextRecord) -> Iterator[SalvagedContext]:
    if target.revision(record.id):
        return
    if record.parent is not None:
        try:
            found = source.load(record.parent)
        except MemciError:
            found = None  # it is named when it is reached
        if found is not None:
            yield from _with_parent(source, target, found[0])
    alone = record.parent is not None and not target.revision(record.parent)
    damage = list(problems(source, record.id))
    if not damage and not alone:
        target.commit(whole(source, record))
        yield SalvagedContext(record.id, record.head, ())
        return
    transition, lost = _rebuilt(source, record, alone=alone)
    messages = record.head - sum(sentence.startswith("message ") for sentence in lost)
    wrong = _wrong(transition)
    if wrong:
        transition = _unlisted(transition)
        wrong = _wrong(transition)
        lost.append(f"the Contents Page, {_BESIDE}")
    if not wrong:
        target.commit(transition)
        yield SalvagedContext(record.id, messages, tuple(lost if len(lost) > 1 else (*damage, *lost)))
        return
    yield SalvagedContext(record.id, 0, (*lost, *wrong), saved=False)


def _rebuilt(source: Storage, record: ContextRecord, *, alone: bool) -> tuple[Transition, list[str]]:
    """Return the transition that makes what is left of the context of *record*, and what is lost."""
    lost: list[str] = []
    pages: dict[int, PageRow] = {}
    for index, row in rows_or_errors(
        lambda first, end: source.pages(record.id, first=first, last=end - 1),
        1,
        record.next_page,
        lambda row: row.index,
    ):
        if isinstance(row, PageRow):
            pages[index] = row
        else:
            lost.append(f"page #{index}, where it begins and ends: {_reason(row)}")
    rows = _tiled(record, pages)
    base = 0 if alone else record.base
    model = settings_of(record).model
    count = counter_for(model, None)
    entries, views = [], []
    shown = dict(entries_or_errors(source, record))
    cost = message_tokens(decode(ERASED, b"user"), count, model)
    for seq, entry in entries_or_errors(source, record, as_appended=True):
        view = shown[seq]
        if not isinstance(entry, EntryRow):
            page = next((each.index for each in rows if any(a <= seq < b for a, b in each.spans(record.head))), 0)
            lost.append(f"message {seq + 1} (page #{page}): {_reason(entry)}")
            entry = view = EntryRow(seq, ERASED, b"user", digest(ERASED, b"user"), cost)  # noqa: PLW2901
        if seq < base:
            continue  # the parent's own
        entries.append(entry)
        if isinstance(view, EntryRow) and view != entry:
            views.append((seq, view.tokens, view.clip))
    changed = record._replace(parent=None, base=0) if alone else record
    try:
        found = source.load(record.id)
        compaction = found[1] if found else None
        listed = compaction is not None
    except MemciError as error:
        lost.append(f"the Contents Page: {error}")
        compaction, listed = None, True
    transition = Transition(
        *(0, changed, tuple(entries), tuple(rows), tuple(views)), compaction=compaction, arrives=True
    )
    if listed:
        lost.append("earlier states of the window: the requests of earlier turns can't be shown again")
    try:
        transition = transition._replace(ops=tuple(source.ops(record.id)), calls=tuple(source.calls(record.id)))
    except MemciError as error:
        lost.append(f"{_BESIDE}: {error}")
    return transition, lost


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, CorruptRecord) else str(error)


def _tiled(record: ContextRecord, pages: dict[int, PageRow]) -> list[PageRow]:
    """Return a row for every page: a page without one gets the messages that stand on no page, if it is their turn."""
    free = gaps(record, pages.values())
    rows = []
    turn = reached = 0
    for index in range(1, record.next_page):
        row = pages.get(index)
        if row is None:
            later = min((pages[other].first for other in range(index + 1, record.next_page) if other in pages),
                        default=record.head)  # fmt: skip
            span = next((each for each in free if each[1] <= later or index == record.open_page), None)
            if span is None:
                row = PageRow(index, reached, reached, turn, PageState.ERASED)
            else:
                free.remove(span)
                is_open = index == record.open_page
                state = PageState.ACTIVE if is_open else PageState.UNLOADED
                row = PageRow(index, span[0], None if is_open else span[1], turn, state)
        turn = row.turn
        reached = max(reached, record.head if row.end is None else row.end)
        rows.append(row)
    return rows


def _unlisted(transition: Transition) -> Transition:
    """Return *transition* without its Contents Page: what was listed is unloaded, the memory still finds it."""
    unloaded = PageState.UNLOADED
    rows = tuple(row._replace(state=unloaded) if row.state is PageState.ARCHIVED else row for row in transition.pages)
    return transition._replace(pages=rows, compaction=None, ops=(), calls=())


def _wrong(transition: Transition) -> list[str]:
    """Return what would be wrong with the context that *transition* makes, [] if it opens and is whole."""
    record = transition.record._replace(parent=None, base=0)
    scratch = EphemeralStorage()
    first = transition.record.base
    missing = tuple(EntryRow(seq, ERASED, b"user", digest(ERASED, b"user"), 1) for seq in range(first))
    try:
        scratch.commit(transition._replace(record=record, entries=(*missing, *transition.entries)))
        found = list(problems(scratch, record.id))
        loaded(scratch, OpenRequest(record.id, read_only=True))
    except (MemciError, ValueError, KeyError) as error:
        return [str(error)]
    return found
