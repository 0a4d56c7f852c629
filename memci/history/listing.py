"""Listing: which contexts a store holds.

    listed(store, owner="alice", limit=2)        [ContextInfo(id="a1", …), ContextInfo(id="a2", …)]

This module knows nothing of windows or messages.
"""

from dataclasses import dataclass
from heapq import nsmallest

from ..errors import InvalidSetting, brief
from ..storage import Storage
from ..storage.protocol import ContextRecord


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """What is known of a context without opening it."""

    id: str
    owner: str
    messages: int
    """how many were ever appended"""
    pages: int
    """how many were ever opened"""
    turns: int
    """how many interactions are closed"""
    parent: str | None
    """the context that it was forked from"""


def listed(storage: Storage, *, owner: str | None, after: str | None, limit: int) -> list[ContextInfo]:
    """Return at most *limit* contexts of *storage*, by id, after the id *after*. O(contexts in the store).

    Raises:
        InvalidSetting: If an argument makes no sense.
    """
    for name, value in (("owner", owner), ("after", after)):
        if value is not None and not isinstance(value, str):
            raise InvalidSetting(name, f"expected a name (a str), got {brief(value)}")
    if type(limit) is not int or limit < 1:
        raise InvalidSetting("limit", f"expected a number from 1 (an int), got {brief(limit)}")
    records = (
        record
        for record in storage.contexts()
        if owner in (None, record.owner) and (after is None or record.id > after)
    )
    return [_info(record) for record in nsmallest(limit, records, key=lambda record: record.id)]


def _info(record: ContextRecord) -> ContextInfo:
    pages = record.next_page - 1
    return ContextInfo(record.id, record.owner, record.head, pages, record.turn, record.parent)
