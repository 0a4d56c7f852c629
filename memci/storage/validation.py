"""The checks that every store makes before it writes a transition.

    check(t)    the entries are dense from `t.head` on, the record ends where they end, each text can be kept

Texts are stored as UTF-8, which can't encode half of a surrogate pair. Such a text is refused in RAM as on disk, so
that a context that works in a test works in production. Bodies are bytes and have no such limit.

This module knows nothing of how rows are kept.
"""

from typing import Final

from ..errors import InvalidSetting, WriteConflict
from .protocol import SidecarStorage, Storage, Transition

MAX_HEAD: Final = 2**40
"""messages that one context may have"""
MAX_PAGE: Final = 2**32 - 1
"""the highest page index"""


def check(transition: Transition) -> None:
    """Refuse texts that can't be kept, and assert that seqs and indexes make sense. O(rows).

    Raises:
        InvalidSetting: If a text holds half of a surrogate pair; its name says which text.
    """
    record = transition.record
    check_text("id", record.id)
    check_text("owner", record.owner)
    check_text("settings", record.settings)
    check_text("state", record.state)
    if transition.compaction is not None:
        check_text("compaction", transition.compaction)
    for compaction in transition.history:
        check_text("compaction", compaction.text)
    for op in (*transition.ops, transition.op):
        if op is not None:
            check_text("op_id", op.op_id)
    forked = record.parent is not None and transition.head == 0 and record.revision == 1
    head = record.base if forked else transition.head
    for row in transition.entries:
        assert row.seq == head, "seqs are dense from the head on"
        assert len(row.digest) == 16, "a digest has 16 bytes"
        if row.at is not None:
            check_text("at", row.at)
        head += 1
    assert record.head == head <= MAX_HEAD, "the record's head is the seq after the last entry"
    for page in transition.pages:
        assert 1 <= page.index <= MAX_PAGE, "pages count from 1"
    for seq, _, _ in transition.views:
        assert 0 <= seq < head, "a view is of an entry that there is"


def check_revision(transition: Transition, head: int, revision: int) -> None:
    """Raise WriteConflict unless *transition* follows the stored *head* and *revision*, both 0 for a new context.

    One that comes with its past starts at the revision that it had.
    """
    record = transition.record
    if head == transition.head == revision and transition.history:
        return
    if head != transition.head:
        raise WriteConflict(f"context {record.id!r} is at seq {head}, not {transition.head}: call refresh()")
    if revision != record.revision - 1:
        before = record.revision - 1
        raise WriteConflict(f"context {record.id!r} is at revision {revision}, not {before}: call refresh()")


def with_sidecar(storage: Storage) -> SidecarStorage:
    """Return *storage* if it has a sidecar, in which a memory can be kept.

    Raises:
        InvalidSetting: If it has none.
    """
    if not isinstance(storage, SidecarStorage):
        kind = type(storage).__name__
        reason = f"{kind} has no sidecar to keep a memory in: pass memory=NullMemory(), or a TieredMemory with a path"
        raise InvalidSetting("memory", reason)
    return storage


def check_text(name: str, text: str) -> None:
    """Raise InvalidSetting if *text* can't be kept exactly. O(characters)."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSetting(
            name, f"character {error.start} is half of a surrogate pair: it can't be kept exactly"
        ) from None
