"""Items: what a memory derived from pages, as rows of the store.

    kind "episode"   id 7   {"summary": …, "warmth": …}   vector      evidence: the pages that it comes from

A value is stored as the JSON of its fields, with its vector beside it. The evidence is the pages that it was derived
from, so that nothing of an erased page is left. This module knows nothing of what the kinds mean.
"""

import dataclasses
import json
import zlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from ...errors import KeyMissing
from .store import OwnerTable

_T = TypeVar("_T")
Vector = NDArray[np.float32]
_adapters: dict[Any, TypeAdapter[Any]] = {}


def dumped(value: Any, *, without: Collection[str] = ()) -> str:
    """Return the fields of a dataclass as JSON, without some. O(size)."""
    body = {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.name not in without}
    return _JSON.encode(body)


def loaded(kind: type[_T], body: str, **more: Any) -> _T:
    """Return the value that `dumped` wrote: lists become tuples. *more* stands for what is not in its fields.

    A field that an earlier version stored is left out.
    """
    known = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    fields = {name: _frozen(value) for name, value in json.loads(body).items() if name in known}
    return kind(**(fields | more))


def validated(kind: type[_T], body: str) -> _T:
    """Return the value that `dumped` wrote, if its fields are values themselves."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    made: _T = _adapters[kind].validate_json(body)
    return made


def packed(vector: Vector | None) -> bytes | None:
    """Return a vector as bytes, four for each number."""
    return None if vector is None else np.ascontiguousarray(vector, np.float32).tobytes()


def halved(vector: Vector) -> bytes:
    """Return a vector of unit length as bytes, two for each number and one more, rounded to about three digits."""
    return vector.astype(np.float16).tobytes() + b"h"


def squeezed(vector: Vector) -> bytes:
    """Return a vector as `halved` does, compressed if most of its numbers are zeros, as in those made of words."""
    row = halved(vector)
    if 2 * np.count_nonzero(vector) > len(vector):
        return row
    small = zlib.compress(row, 1)
    return small + b"z" * (1 + len(small) % 2)  # an odd number of bytes, as `halved`


def unpacked(row: bytes | None) -> Vector | None:
    """Return the vector that `packed`, `halved` or `squeezed` wrote; ValueError if it is damaged."""
    if row is None:
        return None
    if len(row) % 2 and row.endswith(b"z"):
        try:
            row = zlib.decompressobj().decompress(row)
        except zlib.error as error:
            raise ValueError(f"a vector is not what was written: {error}") from error
    return np.frombuffer(row[:-1], np.float16).astype(np.float32) if len(row) % 2 else np.frombuffer(row, np.float32)


def matrix(rows: Sequence[bytes], dimension: int) -> Vector:
    """Return the vectors of one *dimension* that `packed` or `halved` wrote, row by row. O(numbers)."""
    made = np.empty((len(rows), dimension), np.float32)
    for kind, odd in ((np.float16, 1), (np.float32, 0)):
        places = [place for place, row in enumerate(rows) if len(row) % 2 == odd]
        joined = b"".join(rows[place][: len(rows[place]) - odd] for place in places)
        made[places] = np.frombuffer(joined, kind).reshape(-1, dimension)
    return made


class ItemTable(OwnerTable):
    """The items of one owner, each with its evidence."""

    def put(
        self,
        kind: str,
        body: str,
        *,
        id: int | None = None,  # noqa: A002 -- what it is
        vector: Vector | None = None,
        pages: Iterable[int] = (),
    ) -> int:
        """Store an item, in place of the one with *id* if given, and return its id; *pages* join its evidence."""
        if id is None:  # what is stored is bound to its id
            id = self._store.insert_row(_INSERT, self._owner.nr, kind)  # noqa: A001
        body, kept = self._seal(body, kind, id), self._seal(packed(vector), "vector", id)
        self._store.execute(_REPLACE, id, self._owner.nr, kind, body, kept)
        statement = "INSERT INTO memory_evidence VALUES (?, ?) ON CONFLICT DO NOTHING"
        self._store.executemany(statement, [(id, page) for page in pages])
        return id

    def drop(self, ids: Iterable[int]) -> None:
        """Remove items and their evidence."""
        for each in ids:
            self._store.execute("DELETE FROM memory_evidence WHERE item = ?", each)
            self._store.execute("DELETE FROM memory_item WHERE id = ?", each)

    def all(self) -> list[tuple[int, str, str, bytes | None]]:
        """Return (id, kind, body, vector) of all items but notes; KeyMissing if their key was not given. O(items)."""
        rows = self._store.read_rows(_ALL, self._owner.nr)
        if self._store.keys is None and any(row[1] == "key" for row in rows):
            raise KeyMissing(f"the memory of {self._owner.name!r:.60}", None, "it is encrypted")
        return [
            (id_, kind, self._unseal(body, kind, id_), self._unseal(vector, "vector", id_))
            for id_, kind, body, vector in rows
            if kind != "key"
        ]

    def bodies(self, kind: str) -> list[str]:
        """Return the bodies of all items of a *kind*. O(items)."""
        rows = self._store.read_rows(
            "SELECT id, body FROM memory_item WHERE owner = ? AND kind = ?", self._owner.nr, kind
        )
        return [self._unseal(body, kind, id_) for id_, body in rows]

    def all_there(self, ids: Collection[int]) -> bool:
        """Return whether all items are still there. O(ids)."""
        return len(ids) == (self._store.read_value(_COUNT, json.dumps(list(ids))) or 0)

    def evidence(self, item: int) -> list[int]:
        """Return the pages that an item was derived from."""
        return self._store.read_column("SELECT page FROM memory_evidence WHERE item = ? ORDER BY page", item)

    def derived(self, pages: Collection[int], kind: str | None = None) -> list[tuple[int, str]]:
        """Return (id, body) of the items that one of *pages* is evidence of, of all kinds or one. O(their evidence)."""
        rows = self._store.read_rows(_DERIVED, json.dumps(list(pages)), kind, kind)
        return [(id_, self._unseal(body, of, id_)) for id_, of, body in rows]

    def noted(self, context: str, indexes: Collection[int]) -> list[tuple[int, int, bytes, str]]:
        """Return (index, id, digest, body of a note) of pages of a context that are evidence of a note. One query."""
        rows = self._store.read_rows(_NOTED, self._owner.name, context, json.dumps(list(indexes)))
        return [(page, id_, digest, self._unseal(body, "note", item)) for page, id_, digest, item, body in rows]

    def rewrite(self, bodies: Iterable[tuple[str, str, int]]) -> None:
        """Store other bodies of items: (kind, body, id). Their vectors and their evidence stay."""
        rows = [(self._seal(body, kind, id_), id_) for kind, body, id_ in bodies]
        self._store.executemany("UPDATE memory_item SET body = ? WHERE id = ?", rows)


_INSERT = "INSERT INTO memory_item(owner, kind, body) VALUES (?, ?, '') RETURNING id"
_ALL = "SELECT id, kind, body, vector FROM memory_item WHERE owner = ? AND kind <> 'note'"
_COUNT = "SELECT count(*) FROM memory_item WHERE id IN (SELECT value FROM json_each(?))"
_REPLACE = """
INSERT INTO memory_item(id, owner, kind, body, vector) VALUES (?, ?, ?, ?, ?)
ON CONFLICT(id) DO UPDATE SET body = excluded.body, vector = excluded.vector"""
_DERIVED = """
SELECT DISTINCT i.id, i.kind, i.body FROM memory_evidence AS e JOIN memory_item AS i ON i.id = e.item
WHERE e.page IN (SELECT value FROM json_each(?)) AND (CAST(? AS TEXT) IS NULL OR i.kind = ?) ORDER BY i.id"""
_NOTED = """
SELECT g.page, g.id, g.digest, i.id, i.body FROM memory_owner AS o JOIN memory_context AS c ON c.owner = o.nr
JOIN memory_page AS g ON g.context = c.nr JOIN memory_evidence AS e ON e.page = g.id
JOIN memory_item AS i ON i.id = e.item
WHERE o.name = ? AND c.name = ? AND g.page IN (SELECT value FROM json_each(?)) AND i.kind = 'note'"""


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    """Return a value of a field in a form that JSON has."""
    return list(value) if isinstance(value, frozenset | set) else _fields(value)


_JSON = json.JSONEncoder(default=_plain, ensure_ascii=False, separators=(",", ":"))


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
