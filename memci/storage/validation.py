"""Checks that every store makes before it writes a transition.

Texts are stored as UTF-8, which can't encode half of a surrogate pair. Every store refuses such a text, the one in RAM
too, so that a context that works in a test works in production. Bodies are bytes and have no such limit.
"""

import errno
from collections.abc import Collection, Iterable
from typing import Final, Literal

from ..errors import InvalidSetting, WriteConflict, brief
from ..rows import ContextRecord, OpRow
from .protocol import DatabaseStorage, SidecarStorage, Storage, Transition

Durability = Literal["full", "fast"]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # errno values for a full disk

MAX_HEAD: Final = 2**40  # messages that one context may have
MAX_PAGE: Final = 2**32 - 1  # the highest page index
_ERASED_DIGEST: Final = bytes(16)


def check(transition: Transition) -> None:
    """Refuse texts with half of a surrogate pair, and assert that seqs and indexes are consistent. O(rows)."""
    record = transition.record
    for name, text in zip(("id", "owner", "settings", "state"), record[:4], strict=True):
        if type(text) is not str or not text.isascii():
            check_text(name, text)
    newest = 0
    for compaction in transition.compactions:
        check_text("compaction", compaction.text)
        assert newest < compaction.revision, "compactions come oldest first"
        newest = compaction.revision
    for op in transition.ops:
        check_text("op_id", op.op_id)
    for call in transition.calls:
        for name in ("at", "model", "tools"):
            check_text(name, getattr(call, name) or "")
    forked = record.parent is not None and transition.head == 0 and (record.revision == 1 or transition.arrives)
    head = record.base if forked else transition.head
    for row in transition.entries:
        assert row.seq == head, "seqs are dense from the head on"
        assert len(row.digest) == 16, "a digest has 16 bytes"
        if row.at is not None and not (type(row.at) is str and row.at.isascii()):
            check_text("at", row.at)
        head += 1
    assert record.head == head <= MAX_HEAD, "the record's head is the seq after the last entry"
    for page in transition.pages:
        assert 1 <= page.index <= MAX_PAGE, "pages count from 1"
    for seq, _, _ in transition.views:
        assert 0 <= seq < head, "a view is of an entry that there is"


def check_revision(transition: Transition, head: int, revision: int) -> None:
    """Raise WriteConflict unless *transition* follows the stored *head* and *revision*, both 0 for a new context.

    A context that arrives with its history starts at the revision that it had.
    """
    record = transition.record
    if head == transition.head == revision and transition.arrives:
        return
    if head != transition.head:
        raise WriteConflict(f"context {record.id!r} is at seq {head}, not {transition.head}: call refresh()")
    if revision != record.revision - 1:
        before = record.revision - 1
        raise WriteConflict(f"context {record.id!r} is at revision {revision}, not {before}: call refresh()")


def check_parent(record: ContextRecord, head: int | None) -> None:
    """Raise InvalidSetting unless the parent of the fork *record* has its base; *head* is None if it is missing."""
    if head is None or record.base > head:
        raise InvalidSetting("parent", f"{record.parent!r} has no {record.base} messages that a fork could share")


def check_forks(forks: Iterable[tuple[str, str | None]], erased: Collection[str]) -> None:
    """Raise InvalidSetting if a fork (id, parent) stays although its parent is *erased*. O(forks)."""
    for fork, parent in forks:
        if parent in erased and fork not in erased:
            raise InvalidSetting("context", f"{fork!r} is a fork of {parent!r}: erase that first")


def without_digests(ops: Iterable[OpRow], seqs: Collection[int]) -> list[OpRow]:
    """Return the ops that appended an entry of *seqs*, with their digests cleared. O(ops).

    Ops whose digest is already cleared are left out.
    """
    return [
        op._replace(digest=_ERASED_DIGEST)
        for op in ops
        if op.digest != _ERASED_DIGEST and any(seq in seqs for seq in range(op.first, op.first + len(op.entries)))
    ]


def check_opening(durability: str, busy_timeout_seconds: float) -> None:
    """Raise InvalidSetting unless both arguments are valid."""
    if durability not in ("full", "fast"):
        raise InvalidSetting("durability", f"{brief(durability)} is neither 'full' nor 'fast'")
    if not isinstance(busy_timeout_seconds, int | float) or not 0 <= busy_timeout_seconds <= 86_400:
        raise InvalidSetting("busy_timeout_seconds", f"{brief(busy_timeout_seconds)} is not between 0 and a day")


def check_int(name: str, value: object, least: int = 1) -> None:
    """Raise InvalidSetting about *name* unless *value* is an int from *least* on that stores and counters hold."""
    if type(value) is not int or not least <= value < 2**63:
        raise InvalidSetting(name, f"expected an int from {least}, got {brief(value)}")


def has_memory(storage: Storage) -> bool:
    """Return whether *storage* can keep a memory beside the pages."""
    return isinstance(storage, (SidecarStorage, DatabaseStorage))


def check_memory(storage: Storage) -> None:
    """Raise InvalidSetting unless *storage* can keep a memory."""
    if not has_memory(storage):
        kind = type(storage).__name__
        reason = f"{kind} has no sidecar to keep a memory in: pass memory=NullMemory(), or a TieredMemory with a path"
        raise InvalidSetting("memory", reason)


def check_text(name: str, text: str) -> None:
    """Raise InvalidSetting if *text* can't be stored exactly. O(characters)."""
    if not isinstance(text, str):
        raise InvalidSetting(name, f"expected a str, got {brief(text)}")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidSetting(
            name, f"character {error.start} is half of a surrogate pair: it can't be stored exactly"
        ) from None


def check_filled(name: str, text: object) -> None:
    """Raise InvalidSetting unless *text* is a str that is not empty, and can be stored exactly. O(characters)."""
    if not isinstance(text, str) or not text:
        raise InvalidSetting(name, f"expected a str that is not empty, got {brief(text)}")
    check_text(name, text)
