"""A retention: the pages that nothing was added to since a date are erased, in every context or in those of an owner.

A page is as old as its newest message, by the time that was given with it. A message without a time was said before the
next one that has one. A page behind which nothing has a time is named, and kept.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from ..errors import InvalidSetting, brief
from ..rows import ContextRecord
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.codec import ERASED
from ..storage.validation import check_filled
from ..text.moments import moment
from ..window.drafting import timestamp
from .erase import erase_seqs
from .erasures import ErasureReceipt


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
        entries = [(row.seq, row.at) for row in store.entries(record.id, 0, record.head) if row.codec != ERASED]
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
    """Erase the pages that were *found*, one erasure for each context, and return its receipts. It raises as erase."""
    receipts = []
    for record, indexes, _ in found:
        spans = (span for page in store.pages_at(record.id, indexes) for span in page.spans(record.head))
        receipts += [erase_seqs(store, record.id, {seq for span in spans for seq in range(*span)})] if indexes else []
    return receipts
