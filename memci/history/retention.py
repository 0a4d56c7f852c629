"""A retention: the pages that nothing was added to since a date are erased, in every context or in those of an owner.

A page is as old as its newest message, by the time that was given with it. A message without a time was said before the
next one that has one. A page behind which nothing has a time is named, and kept.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from ..errors import CorruptRecord, InvalidSetting, brief
from ..rows import ContextRecord
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.codec import ERASED
from ..storage.validation import check_filled
from ..text.moments import moment
from ..window.drafting import timestamp
from .erase import erase_seqs
from .erasures import ErasureReceipt
from .row_stream import Unread, readable_entries


class Outdated(NamedTuple):
    """What a retention finds in one context."""

    context: ContextRecord
    pages: tuple[int, ...]  # pages whose newest message is older than the date
    untimed: tuple[int, ...]  # pages of which nothing tells how old they are: they are kept


@checked
def find_outdated(store: Storage, before: datetime | str, owner: str | None = None) -> Iterator[Outdated]:
    """Yield the contexts of *owner*, or all, that have outdated pages or pages without times. O(entries).

    *before*: a datetime or ISO 8601, UTC without a zone; anything else is InvalidSetting.
    """
    if owner is not None:
        check_filled("owner", owner)
    try:
        date = moment(timestamp(before) or "")
    except ValueError:
        reason = f"expected a date (2026-03-31), ISO 8601 or a datetime, got {brief(before)}"
        raise InvalidSetting("before", reason) from None
    for record in store.contexts(owner=owner):
        times: dict[int, str | None] = {}
        entries: list[tuple[int, str | None]] = []
        for row in readable_entries(store, record):
            if isinstance(row, Unread):  # as old as the next one that tells
                entries.append((row.number, None))
            elif row.codec != ERASED:
                entries.append((row.seq, row.at))
        known: str | None = None
        for seq, at in reversed(entries):
            times[seq] = known = at or known
        old, untimed = [], []
        for page in store.pages(record.id, last=record.next_page - 1):
            seqs = [seq for first, end in page.spans(record.head) for seq in range(first, end) if seq in times]
            told = [moment(at) for seq in seqs if (at := times[seq]) is not None]
            if not seqs:  # erased
                continue
            if not told:
                untimed.append(page.index)
            elif max(told) < date:
                old.append(page.index)
        if old or untimed:
            yield Outdated(record, tuple(old), tuple(untimed))


@checked
def erase_outdated(store: Storage, found: Sequence[Outdated]) -> list[ErasureReceipt]:
    """Erase the pages that were *found*, one erasure for each context, and return its receipts. It raises as erase.

    A context that can't be opened keeps no other one: its error is raised in the end.
    """
    receipts = []
    damage: CorruptRecord | None = None
    for record, indexes, _ in found:
        spans = (span for page in store.pages_at(record.id, indexes) for span in page.spans(record.head))
        seqs = {seq for span in spans for seq in range(*span)}
        try:
            receipts += [erase_seqs(store, record.id, seqs)] if indexes else []
        except CorruptRecord as error:
            damage = damage or error
    if damage is not None:
        raise damage
    return receipts
