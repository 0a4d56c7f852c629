"""A wrapper of a store that encrypts rows when they are written, and decrypts them when they are read.

    EncryptedStorage(SQLiteStorage("agent.db"), key)        any store; the keys of rows stay the same

    settings, state, message, compaction, list of tools     encrypted, bound to other fields (`memci.rows`)
    digest of an op                                         masked with a key, so that it reveals nothing
    ids, owners, times, sizes, tokens, page numbers         not encrypted: the store finds rows by them

The settings of an encrypted record are {"encrypted": the data key of the context, wrapped}. This module knows nothing
of how the store inside keeps its rows.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import orjson

from ...errors import CorruptRecord, InvalidSetting, KeyMissing
from ...rows import CALL, COMPACTION, CONTEXT, ENTRY, OP, CallRow, CompactionRow, ContextRecord, EntryRow, OpRow, Table
from ..around import StorageAround
from ..codec import SEALED, digest
from ..columns import CHAIN
from ..protocol import ErasedRows, Erasure, Storage, Transition
from ..validation import check
from .keys import Cipher, Forged, KeyRing, Keys

_REMEMBERED = 10_000  # contexts whose data keys are kept in RAM: some MB

_T = TypeVar("_T")
_R = TypeVar("_R", OpRow, CallRow)


class _Known(NamedTuple):
    """The data key of a context, and the parts of its record that encryption needs."""

    cipher: Cipher
    wrapped: str
    owner: str
    parent: str | None
    base: int


class EncryptedStorage(StorageAround):
    """Encrypts what *storage* keeps.

    Args:
        storage: Any store. Contexts that it has already must be encrypted: `memci copy` makes an encrypted store.
        keys: 32 random bytes; or several such keys, of which the first one encrypts and all decrypt; or a function
            that returns those of an owner. Without its key, a context is lost.

    Raises:
        InvalidSetting: If a key is none, or `cryptography` is not installed.
    """

    def __init__(self, storage: Storage, keys: Keys) -> None:
        super().__init__(storage)
        self.keys = KeyRing(keys)
        """the keys that wrap data keys, also those of memories"""
        self._known: dict[str, _Known] = {}
        Cipher(bytes(32))  # raises if the package is missing

    def load(self, context: str) -> tuple[ContextRecord, str | None] | None:
        """Return the record and the last compaction of *context*, or None if there is no such context.

        Raises:
            KeyMissing: If its key was not given.
            CorruptRecord: If it was changed after its encryption.
            InvalidSetting: If it is not encrypted.
        """
        found = self._storage.load(context)
        if found is None:
            self._known.pop(context, None)
            return None
        record = self._decrypt_record(found[0])
        if found[1] is None:
            return record, None
        last = (row.text for row in self.compactions(context) if row.revision <= record.revision)
        return record, next(last, None)

    def commit(self, transition: Transition) -> OpRow | None:
        """Apply *transition* and return None, or return the row of its op if that is stored. O(bytes)."""
        check(transition)
        record = transition.record
        known = self._find_key_to_write(record)
        op = self._storage.commit(self._seal_transition(transition, known))
        if op is None:
            self._remember(record.id, known)
            return None
        return self._unseal(OP, record.id, op)

    def entries(
        self,
        context: str,
        first: int = 0,
        end: int | None = None,
        *,
        containing: bytes | None = None,
        as_appended: bool = False,
    ) -> Iterator[EntryRow]:
        """Yield entries in order, as the protocol says. With *containing*, all of the range is decrypted. O(bytes)."""
        rows = self._storage.entries(context, first, end, as_appended=as_appended)
        opened = (self._entry(context, row) for row in rows)
        return opened if containing is None else (row for row in opened if containing in row.body)

    def entries_at(self, context: str, seqs: Collection[int]) -> Sequence[EntryRow]:
        """Return the entries with *seqs*, decrypted. O(bytes)."""
        return [self._entry(context, row) for row in self._storage.entries_at(context, seqs)]

    def compactions(self, context: str, *, head: int | None = None) -> Iterator[CompactionRow]:
        """Yield the compactions, newest first, as the protocol says. At most `CHAIN` are read for one."""
        return self._unseal_chains(context, self._storage.compactions(context, head=head))

    def ops(self, context: str) -> Iterator[OpRow]:
        """Yield the ops by their first seq."""
        return (self._unseal(OP, context, row) for row in self._storage.ops(context))

    def op(self, context: str, op_id: str) -> OpRow | None:
        """Return one op."""
        row = self._storage.op(context, op_id)
        return None if row is None else self._unseal(OP, context, row)

    def calls(self, context: str, *, after: int = 0) -> Iterator[CallRow]:
        """Yield the calls of the model, oldest first."""
        return (self._unseal(CALL, context, row) for row in self._storage.calls(context, after=after))

    def contexts(
        self, *, owner: str | None = None, after: str | None = None, limit: int | None = None
    ) -> Sequence[ContextRecord]:
        """Return records by id, as the protocol says; without its key, a record stays encrypted."""
        return [
            self._decrypt_if_possible(record)
            for record in self._storage.contexts(owner=owner, after=after, limit=limit)
        ]

    def forks(self, context: str) -> Sequence[ContextRecord]:
        """Return the records of the forks of *context*, by id, as `contexts` does."""
        return [self._decrypt_if_possible(record) for record in self._storage.forks(context)]

    def erase(self, erasure: Erasure) -> ErasedRows:
        """Remove what *erasure* names. The data key of a context is removed with its record."""
        tombstones = []
        for context, row in erasure.entries:
            holder = self._holder(context, row.seq)
            tombstones.append((context, _seal_entry(self._of(holder).cipher, holder, row)))
        for transition in erasure.transitions:
            check(transition)
        after = [
            self._seal_transition(each, self._find_key_to_write(each.record), whole=True)
            for each in erasure.transitions
        ]
        gone = self._storage.erase(erasure._replace(entries=tuple(tombstones), transitions=tuple(after)))
        for context in erasure.contexts:
            self._known.pop(context, None)
        return gone

    def rotate(self) -> int:
        """Wrap the data keys of contexts with the first key, each in a commit; return how many were not. O(contexts).

        `memci.history.rotation.rotate` does so for memories, too.
        """
        count = 0
        for listed in self._storage.contexts():
            found = self._storage.load(listed.id)
            if found is not None and not self.keys.is_current(_read_data_key(found[0]), found[0].owner):
                record = self._decrypt_record(found[0])
                self.commit(Transition(record.head, record._replace(revision=record.revision + 1)))
                count += 1
        return count

    def close(self) -> None:
        """Close the store inside."""
        self._known.clear()
        self._storage.close()

    def _find_key_to_write(self, record: ContextRecord) -> _Known:
        """Return the data key for *record*: that of its context, or a new one."""
        known = self._known.get(record.id)
        if known is None and (found := self._storage.load(record.id)) is not None:
            known = self._learn(found[0])
        if known is None:
            known = _Known(Cipher(os.urandom(32)), "", record.owner, record.parent, record.base)
        if known.owner == record.owner and self.keys.is_current(known.wrapped, record.owner):
            return known
        wrapped = self.keys.wrap(known.cipher, record.owner, "context", record.id)
        return known._replace(wrapped=wrapped, owner=record.owner)

    def _seal_transition(self, transition: Transition, known: _Known, *, whole: bool = False) -> Transition:
        """Return *transition*, encrypted; *whole*: earlier compactions are removed."""
        cipher, context = known.cipher, transition.record.id
        return transition._replace(
            record=_seal_record(cipher, known.wrapped, transition.record),
            entries=tuple(_seal_entry(cipher, context, row) for row in transition.entries),
            compactions=tuple(self._seal_chain(cipher, context, transition.compactions, whole=whole)),
            ops=tuple(_seal(cipher, OP, context, row) for row in transition.ops),
            calls=tuple(_seal(cipher, CALL, context, row) for row in transition.calls),
        )

    def _seal_chain(
        self, cipher: Cipher, context: str, rows: Sequence[CompactionRow], *, whole: bool
    ) -> Iterator[CompactionRow]:
        """Yield compactions, encrypted: each is a digit, and what it does not have in common with the one before.

        The digit is the number of compactions behind it that are needed to read it.
        """
        length, before = 0, ""
        if rows and not whole:
            with suppress(CorruptRecord):  # nothing is based on a damaged one
                stored = iter(self._storage.compactions(context))
                newest = next(stored, None)
                length = 0 if newest is None else (int(newest.text[:1]) + 1) % CHAIN
                before = next(self._unseal_chains(context, chain([newest], stored))).text if newest and length else ""
        for row in rows:
            text = cipher.seal_text(row.text, *_place(COMPACTION, context, row), before=before if length else "")
            yield row._replace(text=f"{length}{text}")
            length, before = (length + 1) % CHAIN, row.text

    def _unseal_chains(self, context: str, rows: Iterator[CompactionRow]) -> Iterator[CompactionRow]:
        """Yield compactions, newest first, decrypted: each chain is read back to its first one, which stands alone."""
        for row in rows:
            needed = [row]
            while needed[-1].text[:1] != "0" and (older := next(rows, None)) is not None:
                needed.append(older)
            found: list[CompactionRow] = []
            for each in reversed(needed):
                before, place = found[-1].text if found else "", _place(COMPACTION, context, each)
                text = self._read(context, 0, Cipher.unseal_text, each.text[1:], *place, before=before)
                found.append(each._replace(text=text))
            yield from reversed(found)

    def _of(self, context: str) -> _Known:
        """Return the data key of *context*, which must exist. O(1), a query the first time."""
        known = self._known.get(context)
        if known is not None:
            return known
        found = self._storage.load(context)
        if found is None:
            raise CorruptRecord(context, 0, "its record is missing, which has its data key")
        return self._learn(found[0])

    def _holder(self, context: str, seq: int) -> str:
        """Return the context that has entry *seq* of *context*: itself, or one that it was forked from."""
        known = self._of(context)
        while known.parent is not None and seq < known.base:
            context, known = known.parent, self._of(known.parent)
        return context

    def _entry(self, shown: str, row: EntryRow) -> EntryRow:
        context, codec = self._holder(shown, row.seq), row.codec - SEALED
        if codec < 0:
            raise CorruptRecord(shown, row.seq, "it is not encrypted, although its context is")
        place = _place(ENTRY, context, row._replace(codec=codec))
        body = self._read(context, row.seq, Cipher.unseal, row.body, *place)
        return row._replace(codec=codec, body=body, digest=digest(codec, body))

    def _unseal(self, table: Table, context: str, row: _R) -> _R:
        """Return *row* of *context*, decrypted."""
        [name] = table.sealed
        value = getattr(row, name)
        if isinstance(value, str):
            place = _place(table, context, row)
            plain: dict[str, Any] = {name: self._read(context, 0, Cipher.unseal_text, value, *place)}
            return row._replace(**plain)
        return _seal(self._of(context).cipher, table, context, row)  # masking twice gives the digest again

    def _read(self, context: str, seq: int, unseal: Callable[..., _T], *sealed: Any, **more: Any) -> _T:
        """Return what *unseal* makes of *sealed* with the data key of *context*, or else with a newer data key."""
        before = self._of(context)
        with suppress(Forged):
            return unseal(before.cipher, *sealed, **more)
        self._known.pop(context, None)
        now = self._of(context)
        with suppress(Forged):
            if now.wrapped != before.wrapped:
                return unseal(now.cipher, *sealed, **more)
        raise CorruptRecord(context, seq, "it is not what was encrypted: its bytes, or their place, were changed")

    def _learn(self, record: ContextRecord) -> _Known:
        """Return the data key in *record*, and keep it in RAM."""
        known = self._known.get(record.id)
        wrapped = _read_data_key(record)
        if known is not None and (known.wrapped, known.owner) == (wrapped, record.owner):
            return known
        try:
            cipher = self.keys.unwrap(wrapped, record.owner, "context", record.id)
        except Forged:
            raise CorruptRecord(record.id, 0, "its data key is not what was encrypted") from None
        known = _Known(cipher, wrapped, record.owner, record.parent, record.base)
        self._remember(record.id, known)
        return known

    def _remember(self, context: str, known: _Known) -> None:
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[context] = known

    def _decrypt_record(self, record: ContextRecord) -> ContextRecord:
        cipher = self._learn(record).cipher
        try:
            settings, state = orjson.loads(cipher.unseal_text(record.state, *_place(CONTEXT, record.id, record)))
        except Forged:
            raise CorruptRecord(record.id, 0, "the context's record is not what was encrypted") from None
        return record._replace(settings=settings, state=state)

    def _decrypt_if_possible(self, record: ContextRecord) -> ContextRecord:
        with suppress(KeyMissing):
            return self._decrypt_record(record)
        return record


def _read_data_key(record: ContextRecord) -> str:
    """Return the wrapped data key of the context of an encrypted *record*."""
    if not record.encrypted:
        reason = f"context {record.id!r:.60} is not encrypted: copy the store into an encrypted one (memci copy)"
        raise InvalidSetting("keys", reason)
    try:
        return str(orjson.loads(record.settings)["encrypted"])
    except (ValueError, TypeError, KeyError):
        raise CorruptRecord(record.id, 0, "its data key is not what was written") from None


def _place(table: Table, context: str, row: Any) -> tuple[Any, ...]:
    """Return the values that the sealed fields of *row* are bound to."""
    return (table.name, context, *(getattr(row, name) for name in table.bound))


def _seal(cipher: Cipher, table: Table, context: str, row: _R) -> _R:
    """Return *row* of *context* with its text encrypted, or its digest masked.

    Texts without bound fields are encrypted alike if they are equal, so that a store keeps each list of tools once.
    """
    [name] = table.sealed
    value = getattr(row, name)
    if isinstance(value, str):
        value = cipher.seal_text(value, *_place(table, context, row), same=not table.bound)
    elif value is not None:
        value = cipher.mask(value, *_place(table, context, row)[2:])
    return row._replace(**{name: value})


def _seal_record(cipher: Cipher, wrapped: str, record: ContextRecord) -> ContextRecord:
    texts = orjson.dumps((record.settings, record.state)).decode()
    state = cipher.seal_text(texts, *_place(CONTEXT, record.id, record))
    return record._replace(settings=orjson.dumps({"encrypted": wrapped}).decode(), state=state)


def _seal_entry(cipher: Cipher, context: str, row: EntryRow) -> EntryRow:
    body = cipher.seal(row.body, *_place(ENTRY, context, row))
    codec = row.codec + SEALED
    return row._replace(codec=codec, body=body, digest=digest(codec, body))
