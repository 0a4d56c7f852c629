"""Items: the values that a memory derives from pages, as rows.

    put(Episode("Flight to Oslo", …), pages=[3, 4])  ──▶  id 7, kind "episode", {"summary": …}, vector · evidence 3, 4

A value is stored as the JSON of its fields, with its vector beside it. Its evidence is the pages that it was derived
from: when a page is erased, its items are removed or rebuilt.
"""

import dataclasses
import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from ...errors import KeyMissing
from ..tiers.episodes import Episode
from ..tiers.events import DailySummary, LifeEvent
from ..tiers.facts import Known
from ..tiers.graph import Relation
from ..tiers.notes import Note
from ..tiers.profile import Profile
from ..tiers.rules import Rules
from ..tiers.topics import Chain, Vector
from .store import OwnerTable

Item = Rules | Episode | Chain | Known | Relation | Profile | LifeEvent | DailySummary | Note
KINDS: Final[Mapping[str, type[Item]]] = {
    "rules": Rules,
    "episode": Episode,
    "chain": Chain,
    "fact": Known,
    "relation": Relation,
    "profile": Profile,
    "event": LifeEvent,
    "day": DailySummary,
    "note": Note,
}
"""the types of items, by the kind of their rows"""
_KIND_OF: Final = {made: kind for kind, made in KINDS.items()}


def halve(vector: Vector) -> bytes:
    """Return a vector of unit length as bytes, two for each number, rounded to about three digits."""
    return vector.astype(np.float16).tobytes()


def read_vectors(*rows: bytes) -> Vector:
    """Return the numbers of the vectors that `halve` wrote, one after the other. O(numbers)."""
    return np.frombuffer(b"".join(rows), np.float16).astype(np.float32)


class ItemTable(OwnerTable):
    """The items of one owner, each with its evidence."""

    def put(self, value: Item, *, id: int | None = None, pages: Iterable[int] = ()) -> int:  # noqa: A002 -- of the item
        """Store a value, in place of the one with *id* if given, and return its id; *pages* join its evidence."""
        kind = _KIND_OF[type(value)]
        if id is None:  # encryption binds the content to the id
            id = self._store.insert_row(_INSERT, self._owner.nr, kind)  # noqa: A001
        vector = value.embedding if isinstance(value, Episode) else None
        kept = self._seal(_dump(value), kind, id), self._seal(None if vector is None else halve(vector), "vector", id)
        self._store.execute("UPDATE memory_item SET body = ?, vector = ? WHERE id = ?", *kept, id)
        statement = "INSERT INTO memory_evidence VALUES (?, ?) ON CONFLICT DO NOTHING"
        self._store.executemany(statement, [(id, page) for page in pages])
        return id

    def rewrite(self, values: Iterable[tuple[int, Item]]) -> None:
        """Store other values of items, by their ids. Their vectors and their evidence stay."""
        rows = [(self._seal(_dump(value), _KIND_OF[type(value)], id_), id_) for id_, value in values]
        self._store.executemany("UPDATE memory_item SET body = ? WHERE id = ?", rows)

    def drop(self, ids: Iterable[int]) -> None:
        """Remove items and their evidence."""
        for each in ids:
            self._store.execute("DELETE FROM memory_evidence WHERE item = ?", each)
            self._store.execute("DELETE FROM memory_item WHERE id = ?", each)

    def all(self) -> list[tuple[int, Any]]:
        """Return the ids and values of all items but notes; KeyMissing if their key was not given. O(items)."""
        rows = self._store.read_rows(_ALL, self._owner.nr)
        if self._store.keys is None and any(row[1] == "key" for row in rows):
            raise KeyMissing(f"the memory of {self._owner.name!r:.60}", None, "it is encrypted")
        return [(row[0], self._value(*row)) for row in rows if row[1] != "key"]

    def count(self, kind: str) -> int:
        """Return how many items of a *kind* there are."""
        statement = "SELECT count(*) FROM memory_item WHERE owner = ? AND kind = ?"
        return self._store.read_value(statement, self._owner.nr, kind) or 0

    def evidence(self, item: int) -> list[int]:
        """Return the pages that an item was derived from."""
        return self._store.read_column("SELECT page FROM memory_evidence WHERE item = ? ORDER BY page", item)

    def derived(self, pages: Collection[int]) -> list[int]:
        """Return the items that one of *pages* is evidence of. O(their evidence)."""
        return self._store.read_column(_DERIVED, json.dumps(list(pages)))

    def values(self, ids: Collection[int]) -> list[tuple[int, Any]]:
        """Return the items *ids* that exist, each with its id. O(these)."""
        return [(row[0], self._value(*row)) for row in self._store.read_rows(_SOME, json.dumps([*ids]))]

    def notes(self, pages: Collection[int]) -> dict[int, tuple[int, Note]]:
        """Return the notes of *pages* (their ids), each with its own id. O(pages)."""
        rows = self._store.read_rows(_NOTES, json.dumps(list(pages)))
        return {page: (id_, self._value(id_, "note", body, None)) for page, id_, body in rows}

    def _value(self, id_: int, kind: str, body: str, vector: bytes | None) -> Any:
        """Return the value of a row; ValueError if it is not what was written."""
        if kind == "rules":
            fields = json.loads(self._unseal(body, kind, id_))
            return Rules(**{name: fields[name] for name in Rules.model_fields if name in fields})
        # Not `validate_json`: it would keep short texts in a cache of the process, also those that are erased.
        value = _adapter(kind).validate_python(json.loads(self._unseal(body, kind, id_)))
        if vector is None:
            return value
        return dataclasses.replace(value, embedding=read_vectors(self._unseal(vector, "vector", id_)))


_INSERT = "INSERT INTO memory_item(owner, kind, body) VALUES (?, ?, '') RETURNING id"
_ALL = "SELECT id, kind, body, vector FROM memory_item WHERE owner = ? AND kind <> 'note'"
_SOME = "SELECT id, kind, body, vector FROM memory_item WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
_DERIVED = """
SELECT DISTINCT item FROM memory_evidence WHERE page IN (SELECT value FROM json_each(?)) ORDER BY item"""
_NOTES = """
SELECT e.page, i.id, i.body FROM memory_evidence AS e JOIN memory_item AS i ON i.id = e.item
WHERE e.page IN (SELECT value FROM json_each(?)) AND i.kind = 'note'"""


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(KINDS[kind])


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of a value, but for a vector, which is stored beside them."""
    if isinstance(value, Rules):
        return value.model_dump(mode="json")
    names = [field.name for field in dataclasses.fields(value) if field.name != "embedding"]
    return {name: getattr(value, name) for name in names}


_dump = json.JSONEncoder(default=_fields, ensure_ascii=False, separators=(",", ":")).encode
