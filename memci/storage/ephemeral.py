"""Contexts in RAM: as exact as a file and gone with the process.

A row is kept packed, not as an object, so that a page of two messages costs little more than its bytes:

    entries   |digest tokens clip end codec|digest tokens …     29 bytes per entry, addressed by seq
    bodies    [ 64 bodies end to end | 64 bodies … ]  tail       `end` is where a body ends in its run
    pages     |first end turn cut … place|first …                37 bytes per page, addressed by index

Reading makes the rows anew. Digests are kept but not checked: nothing here passes a disk, and bytes are immutable.

This module knows nothing of files or SQL.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from threading import RLock

from ..errors import HandlePoisoned
from .protocol import ContextRecord, EntryRow, OpRow, PageRow, Place, Transition
from .rows import check, check_lease, check_text

_ENTRY = Struct("<16sIIIB")
_pack_entry = _ENTRY.pack
_PAGE = Struct("<9IB")
_NONE = 0xFFFF_FFFF
_ABSENT = 0xFF
_NO_PAGE = _PAGE.pack(*[0] * 9, _ABSENT)
_RUN = 64
_LARGE = 4096
"""bytes from which a body is kept on its own, so that a run is never much to copy"""
_BATCH = 256
_ACTIVE = int(Place.ACTIVE)  # an IntEnum is slow to reach and to compare


class EphemeralStorage:
    """Keeps contexts in this process: for tests, and for agents whose memory may end with them."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._contexts: dict[str, _Kept] = {}
        self._trusted = True

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last edition of *context*, or None if there is no such context."""
        with self._lock:
            kept = self._find(context)
            return None if kept is None else (kept.record, kept.edition)

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is known. O(rows)."""
        record = transition.record
        with self._lock:
            check(transition)
            kept = self._find(record.id) or _Kept(record)
            if transition.op is not None:
                known = kept.ops.get(transition.op.op_id)
                if known is not None:
                    return _read_op(transition.op.op_id, known)
            head = len(kept.entries) // _ENTRY.size
            check_lease(transition, head, kept.record.revision if record.id in self._contexts else 0)
            packed = kept.pack(transition)
            # What stops us between here and the end (Ctrl-C) leaves half of a transition: no call may show it.
            self._trusted = False
            kept.apply(transition, packed)
            self._contexts[record.id] = kept
            self._trusted = True
        return None

    def pages(
        self, context: str, *, first: int = 1, last: int | None = None, place: Place | None = None
    ) -> Iterator[PageRow]:
        """Yield pages by index, as the protocol says; the active ones as they were at the call."""
        with self._lock:
            kept = self._find(context)
            if kept is None:
                return iter(())
            highest = len(kept.pages) // _PAGE.size
            start, end = max(first, 1), highest + 1 if last is None else min(last, highest) + 1
            if place is Place.ACTIVE:
                active = [(i, kept.packed_page(i)) for i in sorted(kept.active) if start <= i < end]
                return (_read_page(i, packed) for i, packed in active)
            return self._scan_pages(kept, start, end, place)

    def entries(
        self, context: str, first: int = 0, end: int | None = None, *, containing: bytes | None = None
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says; those that are there at the call."""
        with self._lock:
            kept = self._find(context)
            if kept is None:
                return iter(())
            head = kept.record.head
            return self._scan_entries(kept, max(first, 0), head if end is None else min(end, head), containing)

    def contexts(self) -> Sequence[ContextRecord]:
        """Return the record of every context, by id. O(contexts)."""
        with self._lock:
            self._find("")
            return [self._contexts[each].record for each in sorted(self._contexts)]

    def close(self) -> None:
        """Forget everything."""
        with self._lock:
            self._trusted = False
            self._contexts = {}

    def _find(self, context: str) -> "_Kept | None":
        if not self._trusted:
            raise HandlePoisoned("this store was closed, or a write was cut short: open a new one")
        kept = self._contexts.get(context)
        if kept is None:
            check_text("id", context)
        return kept

    def _scan_pages(self, kept: "_Kept", start: int, end: int, place: Place | None) -> Iterator[PageRow]:
        for batch in range(start, end, _BATCH):
            with self._lock:
                self._find("")
                packed = bytes(kept.pages[(batch - 1) * _PAGE.size : (min(batch + _BATCH, end) - 1) * _PAGE.size])
            for offset in range(0, len(packed), _PAGE.size):
                here = packed[offset + _PAGE.size - 1]
                if here != _ABSENT and (place is None or here == place):
                    yield _read_page(batch + offset // _PAGE.size, packed[offset : offset + _PAGE.size])

    def _scan_entries(self, kept: "_Kept", first: int, end: int, containing: bytes | None) -> Iterator[EntryRow]:
        while first < end:
            stop = min(end, first - first % _RUN + _RUN)
            with self._lock:
                self._find("")
                rows = kept.read(first, stop, containing)
            yield from rows
            first = stop


class _Kept:
    """One context, packed."""

    __slots__ = ("active", "at", "edition", "entries", "large", "ops", "pages", "quotes", "record", "runs", "tail")

    def __init__(self, record: ContextRecord) -> None:
        self.record = record
        self.edition: str | None = None
        self.entries = bytearray()
        self.runs: list[bytes] = []
        self.tail = bytearray()
        self.large: dict[int, bytes] = {}
        self.quotes: dict[int, tuple[int, int | None]] = {}
        self.at: dict[int, str] = {}
        self.pages = bytearray()
        self.active: set[int] = set()
        self.ops: dict[str, bytes] = {}

    def packed_page(self, index: int) -> bytes:
        return bytes(self.pages[(index - 1) * _PAGE.size : index * _PAGE.size])

    def read(self, first: int, stop: int, containing: bytes | None) -> list[EntryRow]:
        """Return the entries `[first, stop)`, which must be of one run."""
        number, skip = divmod(first, _RUN)
        run = self.runs[number] if number < len(self.runs) else self.tail
        size = _ENTRY.size
        begin = _ENTRY.unpack_from(self.entries, (first - 1) * size)[3] if skip else 0
        rows = []
        for seq in range(first, stop):
            digest, tokens, clip, end, codec = _ENTRY.unpack_from(self.entries, seq * size)
            body = self.large.get(seq) or bytes(run[begin:end])
            begin = end
            if containing is None or containing in body:
                quotes, at = self.quotes.get(seq), self.at.get(seq)
                rows.append(EntryRow(seq, codec, body, digest, tokens, clip, quotes, at))
        return rows

    def pack(self, transition: Transition) -> "_Packed":
        """Return what is to be kept as bytes. Nothing is touched yet: what can't be packed leaves no trace."""
        end = len(self.tail)
        entries, bodies = bytearray(), bytearray()
        runs, large = [], []
        for row in transition.entries:
            body = row.body
            if len(body) < _LARGE:
                end += len(body)
                bodies += body
            else:
                large.append((row.seq, bytes(body)))
            entries += _pack_entry(row.digest, row.tokens, row.clip, end, row.codec)
            if row.seq % _RUN == _RUN - 1:
                runs.append(bodies)
                end, bodies = 0, bytearray()
        pages = [(page.index, page.place == _ACTIVE, _pack_page(page)) for page in transition.pages]
        views = [(seq, _VIEW.pack(tokens, clip)) for seq, tokens, clip in transition.views] if transition.views else ()
        op = None if transition.op is None else (transition.op.op_id, _pack_op(transition.op))
        return entries, runs, bodies, large, pages, views, op

    def apply(self, transition: Transition, packed: "_Packed") -> None:
        entries, runs, bodies, large, pages, views, op = packed
        self.entries += entries
        for run in runs:
            self.runs.append(bytes(self.tail + run))
            self.tail = bytearray()
        self.tail += bodies
        if large:
            self.large.update(large)
        for row in transition.entries:
            if row.quotes is not None:
                self.quotes[row.seq] = row.quotes
            if row.at is not None:
                self.at[row.seq] = row.at
        for index, active, page in pages:
            start = (index - 1) * _PAGE.size
            if start > len(self.pages):
                self.pages += _NO_PAGE * (index - 1 - len(self.pages) // _PAGE.size)
            self.pages[start : start + _PAGE.size] = page
            (self.active.add if active else self.active.discard)(index)
        for seq, view in views:
            start = seq * _ENTRY.size + _VIEW_OFFSET
            self.entries[start : start + _VIEW.size] = view
        if op is not None:
            self.ops[op[0]] = op[1]
        if transition.edition is not None:
            self.edition = transition.edition
        self.record = transition.record


_Packed = tuple[
    bytearray,
    list[bytearray],
    bytearray,
    list[tuple[int, bytes]],
    list[tuple[int, bool, bytes]],
    Sequence[tuple[int, bytes]],
    tuple[str, bytes] | None,
]
"""entries, bodies that complete a run, bodies after them, large bodies, pages, views, op"""

_VIEW = Struct("<II")
_VIEW_OFFSET = 16


def _pack_page(page: PageRow) -> bytes:
    cut = page.cut or (_NONE, _NONE)
    return _PAGE.pack(
        page.first,
        _NONE if page.end is None else page.end,
        page.turn,
        cut[0],
        cut[1],
        _NONE if page.continues is None else page.continues,
        _NONE if page.archived_turn is None else page.archived_turn,
        page.recall_count,
        _NONE if page.last_recalled_turn is None else page.last_recalled_turn,
        page.place,
    )


def _read_page(index: int, packed: bytes) -> PageRow:
    first, end, turn, a, b, continues, archived, recalls, recalled, place = _PAGE.unpack(packed)
    return PageRow(
        index=index,
        first=first,
        end=None if end == _NONE else end,
        turn=turn,
        place=Place(place),
        cut=None if a == _NONE else (a, b),
        continues=None if continues == _NONE else continues,
        archived_turn=None if archived == _NONE else archived,
        recall_count=recalls,
        last_recalled_turn=None if recalled == _NONE else recalled,
    )


def _pack_op(op: OpRow) -> bytes:
    numbers = [number for pair in op.entries for number in pair]
    return Struct(f"<II{len(numbers)}I").pack(op.first, len(op.entries), *numbers) + op.digest


def _read_op(op_id: str, packed: bytes) -> OpRow:
    first, count = Struct("<II").unpack_from(packed)
    numbers = Struct(f"<{2 * count}I").unpack_from(packed, 8)
    return OpRow(op_id, packed[8 + 8 * count :], first, tuple(zip(numbers[::2], numbers[1::2], strict=True)))
