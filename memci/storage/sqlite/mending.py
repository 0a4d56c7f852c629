"""Mends a copy of a damaged SQLite store, so that SQLite reads what is behind the damage.

    its log      a flipped bit is turned back, which the check sums tell; all frames get new sums
    its index    made again if it hides contexts
    its start    the same in all stores, written again if SQLite would refuse it
    its tables   at the same pages in all stores: their definitions are written again if they can't be read
    its end      padded to the length that the header says

What is still damaged then is damaged in its rows, whose own sums show it. Never mend the only copy.
"""

from contextlib import closing, suppress
from pathlib import Path
from struct import Struct
from typing import Any, Final

import apsw

from ..witness import Witness
from .loss import FRAME, HEADER, MAGIC, log_path, sums, witness_path
from .schema import APPLICATION_ID, SCHEMA_VERSION, prepare

_SUMS: Final = Struct(">2I")
_COUNTS: Final = {
    "table": "SELECT count(id) FROM context NOT INDEXED",
    "index": "SELECT count(id) FROM context INDEXED BY sqlite_autoindex_context_1",
}
_START: Final = b"SQLite format 3\0\x10\0"  # and the size of a page, which memci leaves as it is
_FORMATS: Final = (b"\2\2\0@  ", b"\1\1\0@  ")  # with a write-ahead log, without one
_NUMBERS: Final = {60: SCHEMA_VERSION, 68: APPLICATION_ID}  # the same in all stores, too, by their places
_VERSION: Final = 3_007_000  # of the format of a log
_PAGE: Final = 4096  # bytes of a page, in all stores
_IDS: Final = "sqlite_autoindex_context_1"
_FILL: Final = {
    _IDS: "REINDEX sqlite_autoindex_context_1",
    "context_parent": "REINDEX context_parent",
    "ticket_context": "REINDEX ticket_context",
    "page_active": "REINDEX page_active",
}
_EMPTY_INDEX: Final = (b"\x0a\0\0\0\0\x10\0\0").ljust(_PAGE, b"\0")  # the page of an index that has no rows
_TABLE_TYPES: Final = frozenset({5, 13})  # the first byte of a page in the tree of a table
_SEVENTH: Final = 6 * _PAGE
"""where the page stands that tells a new file, in which it is of an index, from one that was written again by VACUUM,
which makes all tables first"""


def mend(path: str) -> None:
    """Mend the copy of a store at *path*. O(bytes)."""
    _mend_start(path)
    with closing(Witness(witness_path(path), read_only=True)) as witness:
        _mend_log(path, witness)
    _pad(path)


def mend_index(path: str) -> None:
    """Make the index of ids of *path* again if it hides contexts. O(contexts)."""
    counts: list[Any] = []
    with closing(apsw.Connection(path)) as connection:
        for way in _COUNTS:
            try:
                counts.append(connection.execute(_COUNTS[way]).get)
            except apsw.Error:
                counts.append(-1)
    if counts[0] > counts[1]:  # else the table itself is damaged, and the index may know more
        _make_again(path, _IDS)


def mend_tables(path: str) -> None:
    """Write the first page of *path* again, which defines the tables; what a memory derived is left out. O(bytes)."""
    with closing(apsw.Connection(":memory:")) as made, suppress(apsw.Error):
        prepare(made, path, writable=True)
        _take_log_in(path)
        with Path(path).open("r+b") as opened:
            opened.seek(_SEVENTH)
            if set(opened.read(1)) & _TABLE_TYPES:
                made.execute("VACUUM")
            page = bytearray(made.serialize("main")[:_PAGE])
            pages = Path(path).stat().st_size // _PAGE
            page[18:20] = _FORMATS[0][:2]
            page[24:40] = b"\0\0\0\1" + pages.to_bytes(4) + bytes(8)  # a count of changes, the length, nothing is free
            page[92:96] = page[24:28]
            opened.seek(0)
            opened.write(page)
        for name in _FILL:
            if name != _IDS:  # its first page is the same in all stores
                _make_again(path, name, moved=True)


def _make_again(path: str, index: str, *, moved: bool = False) -> None:
    """Fill *index* of *path* again, behind an empty first page, so that none of its old ones is read. O(rows).

    *moved*: the first page is a new one at the end.
    """
    with suppress(apsw.Error):
        _take_log_in(path)
        with closing(apsw.Connection(path)) as connection:
            [[root]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (index,))
            if moved:
                root = Path(path).stat().st_size // _PAGE + 1
                connection.pragma("writable_schema", True)
                connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (root, index))
        with Path(path).open("r+b") as opened:
            opened.seek((root - 1) * _PAGE)
            opened.write(_EMPTY_INDEX)
            if moved:
                opened.seek(28)
                opened.write(root.to_bytes(4))
        with closing(apsw.Connection(path)) as connection:
            connection.execute(_FILL[index])


def _take_log_in(path: str) -> None:
    """Move all that the log of *path* holds into the file."""
    with closing(apsw.Connection(path)) as connection:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _mend_start(path: str) -> None:
    """Write the start of *path* again if SQLite would refuse it, and the numbers that say whose file it is."""
    with Path(path).open("r+b") as opened:
        head = opened.read(24)
        one_bit = int.from_bytes(head[16:18]).bit_count() == 1  # as each size of a page has
        if not (head[:16] == _START[:16] and one_bit and head[18:] in _FORMATS):
            opened.seek(0)
            opened.write(_START + _FORMATS[0])
        for at, number in _NUMBERS.items():
            opened.seek(at)
            opened.write(number.to_bytes(4))


def _mend_log(path: str, witness: Witness) -> None:
    """Write the log of *path* again, up to the last frame that was surely committed."""
    log = Path(log_path(path))
    old = log.read_bytes() if log.exists() else b""
    if len(old) < HEADER.size + FRAME.size:
        return
    _, _, _, number, *salts, one, two = HEADER.unpack_from(old)
    if (one, two) not in (sums(order, old[:24], 0, 0) for order in "<>"):
        salts = list(FRAME.unpack_from(old, HEADER.size)[2:4])
    page_size = (int.from_bytes(Path(path).read_bytes()[16:18]) - 1) % 2**16 + 1  # 1 stands for 65,536
    size = FRAME.size + page_size
    starts = range(HEADER.size, len(old) - size + 1, size)
    fronts = [FRAME.unpack_from(old, at) for at in starts]
    bodies = [old[at : at + 8] + old[at + FRAME.size : at + size] for at in starts]
    wanted = [(front[4], front[5]) for front in fronts]
    found = []
    for order in "<>":  # the header, which says it, may be damaged
        whole = [
            sums(order, body, *seed) == end
            for body, seed, end in zip(bodies, [(one, two), *wanted], wanted, strict=False)
        ]
        ends = [at + 1 for at, front in enumerate(fronts) if whole[at] and list(front[2:4]) == salts]
        found.append((max(ends, default=0), order, whole))
    last, order, whole = max(found)
    last = max([last, *(slot.frames for slot in witness.slots() if slot.salt == salts[1])])
    header = HEADER.pack(MAGIC + (order == ">"), _VERSION, page_size, number, *salts, 0, 0)[:24]
    chain = sums(order, header, 0, 0)
    mended = bytearray(header + _SUMS.pack(*chain))
    for at, was in enumerate(bodies[:last]):
        body = was if whole[at] else _turn_back(order, was, wanted[at - 1] if at else (one, two), wanted[at])
        if 0 < int.from_bytes(body[:4]) <= max(front[1] for front in fronts[:last]):
            chain = sums(order, body, *chain)
            mended += body[:8] + _SUMS.pack(*salts) + _SUMS.pack(*chain) + body[8:]
    log.write_bytes(mended)


def _turn_back(order: str, body: bytes, seed: tuple[int, int], wanted: tuple[int, int]) -> bytes:
    """Return *body* with the one bit turned back that was flipped, by its sums from *seed*; else as it is. O(bytes).

    The sums are linear: a change of a word by d changes them by d times two factors, which depend on its place alone.
    The high bits of several words have equal effects: then no bit is turned.
    """
    found = []
    off = [(there - ours) % 2**32 for there, ours in zip(wanted, sums(order, body, *seed), strict=True)]
    first, second = (1, 1), (0, 1)  # the factors of the two words of a pair, from the last pair back
    for pair in range(len(body) - 8, -1, -8):
        for at, (one, two) in ((pair, first), (pair + 4, second)):
            for bit in range(32):
                change = off[0] == (one << bit) % 2**32 and off[1] == (two << bit) % 2**32
                if change or (off[0] == -(one << bit) % 2**32 and off[1] == -(two << bit) % 2**32):
                    byte = at + (bit // 8 if order == "<" else 3 - bit // 8)
                    tried = body[:byte] + bytes([body[byte] ^ 1 << bit % 8]) + body[byte + 1 :]
                    if sums(order, tried, *seed) == wanted:
                        found.append(tried)
        first, second = [((one + two) % 2**32, (one + 2 * two) % 2**32) for one, two in (first, second)]
    return found[0] if len(found) == 1 else body


def _pad(path: str) -> None:
    """Pad a truncated file to the length in its header: SQLite refuses a shorter one."""
    with Path(path).open("r+b") as opened:
        head = opened.read(32)
        length = int.from_bytes(head[16:18]) * int.from_bytes(head[28:32])
        if length > Path(path).stat().st_size:
            opened.truncate(length)
