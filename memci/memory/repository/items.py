"""Items: what a memory derived from pages, as rows of the store.

    kind "episode"   id 7   {"summary": …, "warmth": …}   vector      evidence: the pages that it comes from

A value is stored as the JSON of its fields, its vector beside it; the evidence says which pages it was derived from, so
that nothing of an erased page is left. This module knows nothing of what the kinds mean.
"""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any, TypeVar

import apsw
import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

_T = TypeVar("_T")
Vector = NDArray[np.float32]
_adapters: dict[Any, TypeAdapter[Any]] = {}


def dumped(value: Any, *, without: Iterable[str] = ()) -> str:
    """Return the fields of a dataclass as JSON, without some. O(size)."""
    left = frozenset(without)
    body = {
        field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.name not in left
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def loaded(kind: type[_T], body: str, **more: Any) -> _T:
    """Return the value that `dumped` wrote: lists become tuples. *more* stands for what is not in its fields."""
    fields = {name: _frozen(value) for name, value in json.loads(body).items()}
    return kind(**(fields | more))


def validated(kind: type[_T], body: str) -> _T:
    """Return the value that `dumped` wrote, if its fields are values themselves."""
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    made: _T = _adapters[kind].validate_json(body)
    return made


def packed(vector: Vector | None) -> bytes | None:
    """Return a vector as bytes."""
    return None if vector is None else np.ascontiguousarray(vector, np.float32).tobytes()


def unpacked(row: bytes | None) -> Vector | None:
    """Return the vector that `packed` wrote."""
    return None if row is None else np.frombuffer(row, np.float32)


def put(
    connection: apsw.Connection,
    owner: int,
    kind: str,
    body: str,
    *,
    id: int | None = None,  # noqa: A002 -- what it is
    vector: Vector | None = None,
    pages: Iterable[int] = (),
) -> int:
    """Store an item, in place of the one with *id* if it is given, and return its id; *pages* come to its evidence."""
    if id is None:
        connection.execute(
            "INSERT INTO memory_item(owner, kind, body, vector) VALUES (?, ?, ?, ?)",
            (owner, kind, body, packed(vector)),
        )
        id = connection.last_insert_rowid()  # noqa: A001
    else:
        connection.execute(
            "INSERT INTO memory_item(id, owner, kind, body, vector) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT(id) DO UPDATE SET body = excluded.body, vector = excluded.vector",
            (id, owner, kind, body, packed(vector)),
        )
    connection.executemany("INSERT OR IGNORE INTO memory_evidence VALUES (?, ?)", [(id, page) for page in pages])
    return id


def drop(connection: apsw.Connection, ids: Iterable[int]) -> None:
    """Remove items and their evidence."""
    for each in ids:
        connection.execute("DELETE FROM memory_evidence WHERE item = ?", (each,))
        connection.execute("DELETE FROM memory_item WHERE id = ?", (each,))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple | list | frozenset | set):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return value


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
