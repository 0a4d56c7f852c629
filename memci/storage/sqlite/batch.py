"""Reading entries of a SQLite store in batches: each is a query of its own, by key.

    nr 3, entries [200, 900)    ──▶    200 … 455, or fewer if they are large; then the next batch

A slow reader holds back neither writers nor RAM. This module knows nothing of forks: it is told whose entries to read.
"""

import apsw

from ...errors import CorruptRecord
from ..protocol import EntryRow
from .rows import read_entry

BATCH_ROWS = 256
_BATCH_BYTES = 2**20

_ENTRIES = """
SELECT e.id, e.tokens, e.clip, quotes_page, quotes_entry, at, e.crc, codec, digest, body, v.tokens, v.clip, v.crc
FROM entry AS e LEFT JOIN view AS v ON v.id = e.id + ? WHERE e.id >= ? AND e.id < ?"""
_SELECT_ENTRIES = f"{_ENTRIES} ORDER BY e.id LIMIT {BATCH_ROWS}"
_SELECT_ENTRIES_CONTAINING = f"{_ENTRIES} AND instr(body, ?) ORDER BY e.id LIMIT {BATCH_ROWS}"


def read_batch(
    connection: apsw.Connection,
    context: str,
    nr: int,
    owner: int,
    first: int,
    end: int,
    containing: bytes | None,
) -> tuple[list[EntryRow], CorruptRecord | None]:
    """Return entries from *first* on, and what is wrong with the one after them."""
    bounds = (nr - owner) << 40, owner << 40 | first, (owner << 40) + end
    entries: list[EntryRow] = []
    size, seq = 0, first
    if containing is None:
        cursor = connection.execute(_SELECT_ENTRIES, bounds)
    else:
        cursor = connection.execute(_SELECT_ENTRIES_CONTAINING, (*bounds, containing))
    try:
        for columns in cursor:
            if containing is not None:
                seq = columns[0] - (owner << 40)
            entries.append(read_entry(context, seq, owner, nr, columns))
            size += len(entries[-1].body)
            seq += 1
            if size > _BATCH_BYTES:
                break
    except CorruptRecord as error:
        return entries, error
    except (apsw.CorruptError, UnicodeDecodeError) as error:
        return entries, CorruptRecord(context, seq, f"it can't be read: {error}")
    finally:
        cursor.close()
    if containing is None and not entries:
        return entries, CorruptRecord(context, first, "it is missing")
    return entries, None
