"""Checks whether everything that a store holds of a context is there and consistent.

    problems(storage, "alice")      "entry 23: its bytes are not those that were written", …      nothing if all is well

    record        the state is that of a window with its pages
    entries       each is there, and holds a message that every format can send
    pages         each entry is on exactly one page
    marks         each pinned page, and each to be listed again, can be shown
    compactions   each has the fields of a window; the newest lists each archived page once, and no other page
    ops, calls    each names entries that are there

`RowChecks` makes these checks on a stream of rows. An import makes the same ones.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Final

from ..errors import KeyMissing, MemciError
from ..formats import check_native
from ..messages import check
from ..rows import (
    CALL,
    COMPACTION,
    ENTRY,
    PAGE,
    VIEW,
    CallRow,
    CompactionRow,
    ContextRecord,
    EntryRow,
    OpRow,
    PageRow,
    PageState,
    Table,
)
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.codec import ERASED, decode, encode
from ..window.drafting import timestamp
from ..window.stored import check_settings, checked_snapshot, checked_state
from .page_runs import gaps, page_problem, page_problems
from .reader import GONE
from .row_stream import TABLE_OF, Row, Unread, detach, readable_rows

_NAMED: Final = 10  # pages that one sentence names, at most: it stays readable
_READS: Final = 8  # further reads of a context that is in use: after two or three its changes are told from damage
_STEPS: Final[Mapping[Table, tuple[float, float]]] = {
    ENTRY: (1, 1),
    PAGE: (1, 1),
    VIEW: (1, inf),
    CALL: (1, inf),
    COMPACTION: (-inf, -1),
}
"""the least and the greatest difference between the keys of two successive rows of a table"""


@checked
def problems(storage: Storage, context: str, *, on_entry: Callable[[EntryRow], None] = lambda _: None) -> Iterator[str]:
    """Yield a sentence for each problem of *context*, and call *on_entry* with each entry. O(entries).

    If others change the context meanwhile, it is read again: what is wrong is wrong each time. KeyMissing if a key was
    not given: encrypted rows can't be checked without it.
    """
    wrong, found = _problems(storage, context, on_entry)
    for _ in range(_READS):
        if not wrong or found is None or storage.revision(context) == found.revision:
            break
        again, found = _problems(storage, context, on_entry)
        wrong = [each for each in wrong if each in again]
    yield from wrong


def _problems(
    storage: Storage, context: str, on_entry: Callable[[EntryRow], None]
) -> tuple[list[str], ContextRecord | None]:
    """Return the problems of *context*, and its record if there is one that can be read."""
    try:
        found = storage.load(context)
    except KeyMissing:
        raise
    except (MemciError, ValueError) as error:
        return [str(error)], None
    if found is None:
        return [f"there is no context {context!r:.60}"], None
    record = detach(found[0])
    checks, wrong = RowChecks(record), list[str]()
    for row in readable_rows(storage, record, exact=False):
        try:
            checks.check(row)
        except KeyMissing:
            raise
        except (MemciError, ValueError) as error:
            wrong.append(f"{_name(row)}{error}")
        if isinstance(row, EntryRow):
            on_entry(row)
    return [*wrong, *checks.whole()], record


def _name(row: Row | Unread) -> str:
    """Return which row an error is about, as the beginning of a sentence; "" where the error says so itself."""
    if isinstance(row, EntryRow):
        return f"entry {row.seq}: "
    if isinstance(row, Unread) and row.table in (ENTRY, VIEW, PAGE):
        return f"page #{row.number}: " if row.table is PAGE else f"entry {row.number}: "
    return ""


class RowChecks:
    """Checks the rows of the context of *record* one by one. Keeps the pages and the names of ops."""

    def __init__(self, record: ContextRecord) -> None:
        self._record = record
        self._keys = {ENTRY: record.base - 1, VIEW: -1, PAGE: 0, COMPACTION: record.revision + 1, CALL: 0}
        """the key of the last row of each table; before the first row, a key that the first one may follow"""
        self._pages: list[PageRow] = []
        self._all_pages = True
        self._marked: frozenset[int] = frozenset()
        self._listed: list[int] | None = []
        """the pages that the newest compaction lists; None: not known"""
        self._compactions = 0
        self._ops: set[str] = set()

    def check(self, row: Row | Unread) -> None:
        """Raise a ValueError or a MemciError if *row*, the next one of the stream, is wrong. O(characters)."""
        if isinstance(row, Unread):
            self._pass_over(row)
            raise row.error
        self._check_place(row)
        match row:
            case EntryRow():
                message = decode(row.codec, row.body)
                if row.codec != ERASED:
                    check(message)
                    encode(message)  # a body of codec 2 may hold NaN, which no client can send
                    check_native(message)
                _check_time(row.at)
            case PageRow():
                self._pages.append(row)
                if problem := page_problem(row, self._record):
                    raise ValueError(problem)
            case ContextRecord():
                check_settings(row.settings)
                state = checked_state(row)
                self._marked = frozenset((*state.pins, *state.relist))
            case CompactionRow():
                self._check_compaction(row)
            case OpRow():
                if row.first + len(row.entries) > self._record.head:
                    raise ValueError(f"the op {row.op_id!r:.60} names messages that are not there")
            case CallRow():
                record = self._record
                if row.revision > record.revision or row.seq > record.head or row.turn >= record.next_page:
                    raise ValueError(f"the call of the model of revision {row.revision} is not one of this context")
                _check_time(row.at)

    def whole(self) -> Iterator[str]:
        """Yield a sentence for each problem of the rows together. O(pages)."""
        record, pages, entries = self._record, self._pages, self._keys[ENTRY] + 1
        if entries != record.head:
            yield f"{entries:,} messages are there, not {record.head:,}"
        if not self._all_pages:
            return
        yield from page_problems(record, pages)
        for first, end in gaps(record, pages):
            yield f"entries {first} to {end - 1} are on no page"
        if len(pages) != record.next_page - 1:
            yield f"{len(pages):,} pages are there, not {record.next_page - 1:,}"
        if marked := sorted(self._marked.intersection(row.index for row in pages if row.state in GONE)):
            yield f"pages {marked[:_NAMED]} are pinned or to be listed, and were taken back or erased"
        if self._listed is None:
            return
        archived, listed = {row.index for row in pages if row.state is PageState.ARCHIVED}, set(self._listed)
        if lost := sorted(archived - listed):
            yield f"pages {lost[:_NAMED]} are archived but not listed"
        if unknown := sorted(listed - archived):
            yield f"pages {unknown[:_NAMED]} are listed but not archived"

    def _pass_over(self, row: Unread) -> None:
        """Continue as if *row* had been there, so that consequences of its loss are not named as well."""
        self._keys[row.table] = row.number
        if row.table is PAGE:
            self._all_pages = False
        elif row.table is COMPACTION and not self._compactions:
            self._listed = None

    def _check_place(self, row: Row) -> None:
        """Raise a ValueError if *row* does not follow the row of its table before it."""
        table = TABLE_OF[type(row)]
        key = getattr(row, table.key)
        if isinstance(row, OpRow):
            if key in self._ops:
                raise ValueError(f"the op_id {key!r:.60} is there twice")
            self._ops.add(key)
        if table in _STEPS:
            (least, most), step = _STEPS[table], key - self._keys[table]
            self._keys[table] = key
            if not least <= step <= most or (table is VIEW and key > self._keys[ENTRY]):
                raise ValueError(f"{table.name} {key} is not in its place: rows are missing or in another order")

    def _check_compaction(self, row: CompactionRow) -> None:
        self._compactions += 1
        newest = self._compactions == 1
        if newest:
            self._listed = None
        try:
            snapshot = checked_snapshot(row, self._record)
        except ValueError as error:
            raise ValueError(f"the compaction can't be read: {error}") from None
        for problem in filter(None, (page_problem(page, snapshot.record) for page in snapshot.active)):
            raise ValueError(f"the compaction can't be read: {problem}")
        if newest:
            self._listed = snapshot.contents.listed


def _check_time(at: str | None) -> None:
    if at is not None:
        timestamp(at)
