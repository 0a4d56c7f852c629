"""Listing: the contexts that a store holds, without opening them.

    list_contexts(store, owner="alice", limit=2)        [ContextInfo(id="a1", …), ContextInfo(id="a2", …)]

This module knows nothing of windows or messages.
"""

from dataclasses import dataclass

from ..errors import InvalidSetting, brief
from ..storage import Storage


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """The facts of a context that are known without opening it."""

    id: str
    owner: str
    messages: int
    """how many were appended, including those undone or erased later"""
    pages: int
    """how many were opened, including those undone or erased later"""
    turns: int
    """how many interactions are closed: another one has begun after them"""
    parent: str | None
    """the context that it was forked from"""


def list_contexts(storage: Storage, *, owner: str | None, after: str | None, limit: int) -> list[ContextInfo]:
    """Return the contexts of *storage* by id (see `Context.list`). O(those, and what is passed over)."""
    for name, value in (("owner", owner), ("after", after)):
        if value is not None and not isinstance(value, str):
            raise InvalidSetting(name, f"expected a name (a str), got {brief(value)}")
    if type(limit) is not int or limit < 1:
        raise InvalidSetting("limit", f"expected a number from 1 (an int), got {brief(limit)}")
    return [
        ContextInfo(record.id, record.owner, record.head, record.next_page - 1, record.turn, record.parent)
        for record in storage.contexts(owner=owner, after=after, limit=limit)
    ]
