"""One context in RAM, packed: a row is kept as bytes, not as an object, so that a page costs little more than it says.

    entries   |digest tokens clip end codec|digest tokens …     29 bytes per entry, addressed by its place
    bodies    [ 64 bodies end to end | 64 bodies … ]  tail       `end` is where a body ends in its run
    pages     |first end turn cut … state|first …                37 bytes per page, addressed by index

The places of a fork count from its base: what is before belongs to its parent. Reading makes new rows. This module
knows nothing of contexts beside one another.
"""

import zlib
from collections.abc import Iterable
from struct import Struct

from ..protocol import CompactionRow, ContextRecord, EntryRow, OpRow, PageRow, PageState, Transition

_ENTRY = Struct("<16sIIIB")
_pack_entry = _ENTRY.pack
_PAGE = Struct("<9IB")
_NONE = 0xFFFF_FFFF
_ABSENT = 0xFF
_NO_PAGE = _PAGE.pack(*[0] * 9, _ABSENT)
RUN = 64
"""bodies that are kept end to end"""
_LARGE = 4096
"""bytes from which a body is kept on its own, so that a run is never much to copy"""
_ACTIVE = int(PageState.ACTIVE)  # an IntEnum is slow to reach and to compare
_GONE = bytes(16)

Packed = tuple[
    bytearray,
    list[bytearray],
    bytearray,
    list[tuple[int, bytes]],
    list[tuple[int, bool, bytes]],
    list[tuple[int, int, int, bytes]],
    list[tuple[str, bytes]],
]
"""entries, bodies that complete a run, bodies after them, large bodies, pages, compactions, ops"""


class Kept:
    """One context, packed."""

    __slots__ = (
        "active",
        "at",
        "compactions",
        "entries",
        "large",
        "ops",
        "pages",
        "quotes",
        "record",
        "runs",
        "tail",
        "views",
    )

    def __init__(self, record: ContextRecord) -> None:
        self.record = record
        self.compactions: list[tuple[int, int, int, bytes]] = []
        """(revision, head, turn, packed text), oldest first"""
        self.entries = bytearray()
        self.runs: list[bytes] = []
        self.tail = bytearray()
        self.large: dict[int, bytes] = {}
        self.quotes: dict[int, tuple[int, int | None]] = {}
        self.at: dict[int, str] = {}
        self.views: dict[int, tuple[int, int]] = {}
        """(tokens, clip) of entries that are not shown as they were appended, a parent's included"""
        self.pages = bytearray()
        self.active: set[int] = set()
        self.ops: dict[str, bytes] = {}

    @property
    def highest(self) -> int:
        """The highest index of a page."""
        return len(self.pages) // _PAGE.size

    def page(self, index: int) -> PageRow | None:
        """Return page *index*, None if it was never written."""
        packed = bytes(self.pages[(index - 1) * _PAGE.size : index * _PAGE.size])
        return None if packed[-1] == _ABSENT else _read_page(index, packed)

    def read(self, first: int, stop: int) -> list[EntryRow]:
        """Return the entries `[first, stop)`, which must be of one run, as they were appended."""
        base, size = self.record.base, _ENTRY.size
        number, skip = divmod(first - base, RUN)
        run = self.runs[number] if number < len(self.runs) else self.tail
        begin = _ENTRY.unpack_from(self.entries, (first - base - 1) * size)[3] if skip else 0
        rows = []
        for seq in range(first, stop):
            digest, tokens, clip, end, codec = _ENTRY.unpack_from(self.entries, (seq - base) * size)
            body = self.large.get(seq) or bytes(run[begin:end])
            begin = end
            rows.append(EntryRow(seq, codec, body, digest, tokens, clip, self.quotes.get(seq), self.at.get(seq)))
        return rows

    def shown(self, rows: list[EntryRow]) -> list[EntryRow]:
        """Return *rows* as this context shows them now."""
        if not self.views:
            return rows
        return [
            row._replace(tokens=self.views[row.seq][0], clip=self.views[row.seq][1]) if row.seq in self.views else row
            for row in rows
        ]

    def stop(self, first: int, end: int) -> int:
        """Return where the run of entry *first* ends, *end* at the latest."""
        place = first - self.record.base
        return min(end, first - place % RUN + RUN)

    def pack(self, transition: Transition) -> Packed:
        """Return what is to be kept as bytes. Nothing is touched yet: what can't be packed leaves no trace."""
        entries, runs, bodies, large = self._pack_entries(transition.entries, len(self.tail))
        pages = [(page.index, page.state == _ACTIVE, _pack_page(page)) for page in transition.pages]
        compactions = list(transition.history)
        if transition.compaction is not None:
            record = transition.record
            compactions.append(CompactionRow(record.revision, record.head, record.turn, transition.compaction))
        texts = [(row.revision, row.head, row.turn, zlib.compress(row.text.encode())) for row in compactions]
        ops = (*transition.ops, *(() if transition.op is None else (transition.op,)))
        return entries, runs, bodies, large, pages, texts, [(op.op_id, _pack_op(op)) for op in ops]

    def _pack_entries(
        self, rows: Iterable[EntryRow], end: int
    ) -> tuple[bytearray, list[bytearray], bytearray, list[tuple[int, bytes]]]:
        """Return *rows* packed; *end* is where the body before the first one ends."""
        entries, bodies = bytearray(), bytearray()
        runs, large = [], []
        base = self.record.base
        for row in rows:
            body = row.body
            if len(body) < _LARGE:
                end += len(body)
                bodies += body
            else:
                large.append((row.seq, bytes(body)))
            entries += _pack_entry(row.digest, row.tokens, row.clip, end, row.codec)
            if (row.seq - base) % RUN == RUN - 1:
                runs.append(bodies)
                end, bodies = 0, bytearray()
        return entries, runs, bodies, large

    def apply(self, transition: Transition, packed: Packed) -> None:
        """Take over *transition*, of which *packed* was made."""
        entries, runs, bodies, large, pages, compactions, ops = packed
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
                self.pages += _NO_PAGE * (index - 1 - self.highest)
            self.pages[start : start + _PAGE.size] = page
            (self.active.add if active else self.active.discard)(index)
        for seq, tokens, clip in transition.views:
            self.views[seq] = (tokens, clip)
        if compactions:
            self.compactions += compactions
        if ops:
            self.ops.update(ops)
        self.record = transition.record

    def bury(self, tombstone: EntryRow) -> None:
        """Put *tombstone* in the place of its entry. O(bodies of its run)."""
        base, seq = self.record.base, tombstone.seq
        first = seq - (seq - base) % RUN
        rows = self.read(first, self.stop(first, self.record.head))
        rows[seq - first] = tombstone
        entries, runs, bodies, _ = self._pack_entries(rows, 0)
        start = (first - base) * _ENTRY.size
        self.entries[start : start + len(entries)] = entries
        if runs:
            self.runs[(first - base) // RUN] = bytes(runs[0])
        else:
            self.tail = bodies
        for told in (self.large, self.quotes, self.at, self.views):
            told.pop(seq, None)

    def all_compactions(self) -> Iterable[CompactionRow]:
        """Yield the compactions, newest first."""
        for revision, head, turn, packed in reversed(self.compactions):
            yield CompactionRow(revision, head, turn, zlib.decompress(packed).decode())

    def op(self, op_id: str) -> OpRow | None:
        """Return what is known of *op_id*."""
        packed = self.ops.get(op_id)
        return None if packed is None else _read_op(op_id, packed)

    def forget_ops(self, erased: set[int]) -> int:
        """Take the digest, which tells of the bytes, from each op that appended one of *erased*; return how many."""
        found = 0
        for op_id, packed in self.ops.items():
            op = _read_op(op_id, packed)
            if op.digest != _GONE and not erased.isdisjoint(range(op.first, op.first + len(op.entries))):
                self.ops[op_id] = _pack_op(op._replace(digest=_GONE))
                found += 1
        return found


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
        page.state,
    )


def _read_page(index: int, packed: bytes) -> PageRow:
    first, end, turn, a, b, continues, archived, recalls, recalled, state = _PAGE.unpack(packed)
    return PageRow(
        index=index,
        first=first,
        end=None if end == _NONE else end,
        turn=turn,
        state=PageState(state),
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
