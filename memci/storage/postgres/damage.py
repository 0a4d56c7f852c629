"""Finds damaged contexts in Postgres, by statements over whole tables.

contexts that miss entries or have too many · forks whose parent is gone · rows that belong to no context
pages of the database whose checksum was wrong when the server read them
"""

from .database import Database
from .rows import unescape
from .schema import ROWS

_HOLES = """
SELECT c.id, c.head - c.base, count(e.seq) FROM our.context AS c
LEFT JOIN our.entry AS e USING (owner_key, number)
GROUP BY c.owner_key, c.number, c.id, c.head, c.base
HAVING count(e.seq) <> c.head - c.base OR min(e.seq) < c.base OR max(e.seq) >= c.head"""
_TABLES = ROWS[1:]
_ORPHANS = {
    table: f"""
SELECT count(*) FROM our.{table} AS t
WHERE NOT EXISTS (SELECT 1 FROM our.context AS c WHERE c.owner_key = t.owner_key AND c.number = t.number)"""
    for table in _TABLES
}
_LOST_PARENTS = """
SELECT f.id, f.parent FROM our.context AS f WHERE f.parent_key IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM our.context AS c WHERE c.key = f.parent_key AND c.head >= f.base)"""
_CHECKSUMS = "SELECT coalesce(checksum_failures, 0) FROM pg_stat_database WHERE datname = current_database()"


def damage(database: Database) -> list[str]:
    """Return one sentence for each problem. O(rows)."""
    found = []
    for (failures,) in database.read_rows(_CHECKSUMS):
        if failures:
            found.append(f"Postgres: {failures:,} pages of the database had a wrong checksum")
    for context, expected, there in database.read_rows(_HOLES):
        found.append(f"context {unescape(context)!r:.60} has {there:,} entries of its own, not {expected:,}")
    for fork, parent in database.read_rows(_LOST_PARENTS):
        found.append(f"context {unescape(fork)!r:.60} is a fork of {unescape(parent)!r:.60}, which is not there")
    for table in _TABLES:
        [[count]] = database.read_rows(_ORPHANS[table])
        if count:
            found.append(f"{count:,} rows of the table {table} belong to no context")
    return found
