"""An encrypted store shows nothing without its key, notices what was changed, and lets go of a key.

That each kind of store keeps its promises when it is encrypted, `make wrapped` and `make postgres` test.
"""

import secrets
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from memci import Context
from memci.errors import CorruptRecord, InvalidSetting, KeyMissing
from memci.history.copying import copy_contexts
from memci.history.erase import erase
from memci.history.row_stream import rows_of, transition_of
from memci.memory import NullMemory
from memci.storage import EncryptedStorage, EphemeralStorage, SQLiteStorage
from memci.storage.codec import digest
from memci.storage.protocol import Erasure, Transition
from memci.testing.storage.rows import (
    append,
    appended,
    bodies_of,
    called,
    compacted,
    current,
    everything,
    forked,
    with_op,
)

KEY = secrets.token_bytes(32)


@pytest.fixture
def inner() -> Iterator[EphemeralStorage]:
    with closing(EphemeralStorage()) as storage:
        yield storage


@pytest.fixture
def storage(inner: EphemeralStorage) -> EncryptedStorage:
    """Two contexts of one owner, with a row of each kind."""
    storage = EncryptedStorage(inner, KEY)
    for name in ("a", "b"):
        first = appended(current(storage, name)._replace(owner="ada"), b'"one"', b'"two"')
        storage.commit(compacted(with_op(first, "op", b"d" * 16), '["first"]'))
        later = called(appended(current(storage, name), b'"three"'), '["tool"]')
        storage.commit(compacted(later, '["second"]'))
    return storage


def test_compactions_are_compressed_against_each_other_before_they_are_encrypted(tmp_path: Path) -> None:
    """What a compaction repeats takes no room; any handle reads it, and one that an erasure leaves stands alone."""
    words = " ".join(secrets.token_hex(8) for _ in range(200))
    texts = [f'["{words} {number}"]' for number in range(20)]
    inner = SQLiteStorage(tmp_path / "agent.db", durability="fast")
    storage = EncryptedStorage(inner, KEY)
    for number, text in enumerate(texts):
        storage = EncryptedStorage(inner, KEY) if number % 5 == 0 else storage
        storage.commit(compacted(appended(current(storage, "a"), b'"said"'), text))

    sizes = [len(row.text) for row in inner.compactions("a")]
    assert sum(size > 2_000 for size in sizes) == 3, "one in eight stands alone"
    assert sum(size < 200 for size in sizes) == 17
    assert [row.text for row in storage.compactions("a")] == texts[::-1]
    assert [row.text for row in storage.compactions("a", head=9)] == texts[8::-1]

    record = current(storage, "a")
    storage.erase(Erasure(transitions=(compacted(Transition(record.head, record), texts[3]),)))
    storage.commit(compacted(appended(current(storage, "a"), b'"said"'), texts[4]))
    assert [row.text for row in EncryptedStorage(inner, KEY).compactions("a")] == [texts[4], texts[3]]
    inner.close()


def with_body(transition: Transition, at: int, body: bytes, codec: int | None = None) -> Transition:
    """Return *transition* with another body, whose digest is right."""
    rows = list(transition.entries)
    codec = rows[at].codec if codec is None else codec
    rows[at] = rows[at]._replace(codec=codec, body=body, digest=digest(codec, body))
    return transition._replace(entries=tuple(rows))


def flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def flipped_text(text: str, at: int) -> str:
    return text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]


def with_entry(transition: Transition, **fields: object) -> Transition:
    return transition._replace(entries=(transition.entries[0]._replace(**fields), *transition.entries[1:]))


def with_record(transition: Transition, **fields: object) -> Transition:
    return transition._replace(record=transition.record._replace(**fields))


FORGERIES: dict[str, Callable[[Transition, Transition], Transition]] = {
    "a nonce": lambda a, _: with_body(a, 0, flipped(a.entries[0].body, 0)),
    "a byte": lambda a, _: with_body(a, 0, flipped(a.entries[0].body, 14)),
    "the last byte": lambda a, _: with_body(a, 2, flipped(a.entries[2].body, -1)),
    "a short body": lambda a, _: with_body(a, 1, b"short"),
    "bodies that changed places": lambda a, _: with_body(with_body(a, 0, a.entries[1].body), 1, a.entries[0].body),
    "a body of another context": lambda a, b: with_body(a, 0, b.entries[0].body),
    "a body that is not encrypted": lambda a, _: with_body(a, 0, b'"plain"', codec=1),
    "another codec": lambda a, _: with_body(a, 0, a.entries[0].body, codec=a.entries[0].codec + 1),
    "another time": lambda a, _: with_entry(a, at="2031-01-01"),
    "another quotation": lambda a, _: with_entry(a, quotes=(1, None)),
    "the settings": lambda a, _: with_record(a, settings=flipped_text(a.record.settings, 60)),
    "the data key of another context": lambda a, b: with_record(a, settings=b.record.settings),
    "no data key": lambda a, _: with_record(a, settings='{"encrypted":7'),
    "the state": lambda a, _: with_record(a, state=flipped_text(a.record.state, 20)),
    "the state of another context": lambda a, b: with_record(a, state=b.record.state),
    "another owner": lambda a, _: with_record(a, owner="eve"),
    "another turn": lambda a, _: with_record(a, turn=7),
    "a compaction of before": lambda a, _: a._replace(
        compactions=(a.compactions[0], a.compactions[1]._replace(text=a.compactions[0].text))
    ),
    "a compaction of another context": lambda a, b: a._replace(compactions=b.compactions),
    "a list of tools": lambda a, _: a._replace(
        calls=(a.calls[0]._replace(tools=flipped_text(a.calls[0].tools or "", 30)),)
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_was_changed_behind_the_back_is_corrupt(
    inner: EphemeralStorage, storage: EncryptedStorage, forgery: str
) -> None:
    """Each change is noticed by who reads it, although the store inside finds its rows in order."""
    rows = [transition_of(rows_of(inner, loaded[0])) for loaded in map(inner.load, "ab") if loaded]
    true, forged = EphemeralStorage(), EphemeralStorage()
    true.commit(rows[0])
    forged.commit(FORGERIES[forgery](*rows))
    assert everything(EncryptedStorage(true, KEY), "a") == everything(storage, "a")
    assert everything(forged, "a") != everything(true, "a"), "it is changed, and the store inside reads it"

    with pytest.raises(CorruptRecord) as caught:
        everything(EncryptedStorage(forged, KEY), "a")

    assert caught.value.context == "a"


def test_nothing_is_read_without_the_key(inner: EphemeralStorage, storage: EncryptedStorage) -> None:
    """Another key, no key for the owner, and a store that was opened without encryption: each is said."""
    other = secrets.token_bytes(32)
    for keys in (other, lambda owner: [other], lambda owner: []):
        closed = EncryptedStorage(inner, keys)
        for read in (closed.load, partial(bodies_of, closed), partial(append, closed)):
            with pytest.raises(KeyMissing):
                read("a")
        assert [record.id for record in closed.contexts()] == ["a", "b"]
        with pytest.raises(KeyMissing):
            closed.contexts()[0].read_settings()
    assert everything(EncryptedStorage(inner, [other, KEY]), "a") == everything(storage, "a")

    with pytest.raises(KeyMissing) as caught:
        Context.open(inner, "a", memory=NullMemory())
    assert "EncryptedStorage" in str(caught.value)


def test_store_that_is_not_encrypted_is_refused(inner: EphemeralStorage) -> None:
    """A plain context is no encrypted one, whatever key is there; and a key has 32 bytes."""
    append(inner, "a", b"1")
    storage = EncryptedStorage(inner, KEY)

    for read in (storage.load, lambda name: append(storage, name, b"2"), lambda _: storage.contexts()):
        with pytest.raises(InvalidSetting, match="memci copy"):
            read("a")
    for keys in (b"short", [], [KEY, b"short"], "k" * 32):
        with pytest.raises((InvalidSetting, KeyMissing)):
            EncryptedStorage(inner, keys)  # type: ignore[arg-type]


def test_plain_context_in_a_store_of_a_key_is_only_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the environment has a key, no store that holds a plain context is written: it may have been put there."""
    path = tmp_path / "agent.db"
    monkeypatch.setenv("MEMCI_KEY", KEY.hex())
    Context.open(path, "b", window=4_000, memory=NullMemory()).close()
    with closing(SQLiteStorage(path)) as behind:
        append(behind, "a", b"1")

    with pytest.raises(InvalidSetting, match="memci copy"):
        Context.open(path, "c", window=4_000, memory=NullMemory())

    assert [each.id for each in Context.list(path)] == ["a", "b"]
    monkeypatch.delenv("MEMCI_KEY")
    Context.open(path, "c", window=4_000, memory=NullMemory()).close()


def test_rotation_wraps_data_keys_again(inner: EphemeralStorage, storage: EncryptedStorage) -> None:
    """After it, the new key alone opens everything; no body was encrypted again; each append wraps its own."""
    new = secrets.token_bytes(32)
    before, sealed = [[*everything(storage, name)[0].values()][2:] for name in "ab"], bodies_of(inner, "a")
    storage.commit(forked("a", "fork", 2, b'"four"'))
    both = EncryptedStorage(inner, [new, KEY])
    append(both, "b", b'"five"')

    assert [both.rotate(), both.rotate()] == [2, 0]

    rotated = EncryptedStorage(inner, new)
    assert bodies_of(inner, "a") == sealed
    assert [*everything(rotated, "a")[0].values()][2:] == before[0]
    assert bodies_of(rotated, "b")[-1] == b'"five"'
    assert bodies_of(rotated, "fork") == [b'"one"', b'"two"', b'"four"']
    with pytest.raises(KeyMissing):
        EncryptedStorage(inner, KEY).load("a")


def test_owner_whose_key_is_gone_is_gone(inner: EphemeralStorage) -> None:
    """Each owner has keys of their own; without them nothing of the owner is read, and erasing still works."""
    keys = {name: [secrets.token_bytes(32)] for name in ("ada", "bob")}
    storage = EncryptedStorage(inner, lambda owner: keys.get(owner, []))
    for owner in keys:
        storage.commit(appended(current(storage, f"of {owner}")._replace(owner=owner), b'"mine"'))
    moved = current(storage, "of ada")._replace(owner="bob")
    storage.commit(Transition(moved.head, moved))
    del keys["ada"]
    assert bodies_of(EncryptedStorage(inner, lambda owner: keys.get(owner, [])), "of ada") == [b'"mine"']
    del keys["bob"]
    without = EncryptedStorage(inner, lambda owner: keys.get(owner, []))

    for name in ("of ada", "of bob"):
        with pytest.raises(KeyMissing):
            bodies_of(without, name)
    assert erase(without, owner="bob").contexts == 2
    assert inner.contexts() == []


def test_context_that_was_made_again_is_read_with_its_new_key(
    inner: EphemeralStorage, storage: EncryptedStorage
) -> None:
    """A handle that knows the data key of an erased context reads the one that another process made in its place."""
    other = EncryptedStorage(inner, KEY)
    other.erase(Erasure(contexts=("a",)))
    append(other, "a", b'"again"')

    assert bodies_of(storage, "a") == [b'"again"']


def test_copies_go_into_an_encrypted_store_and_back(tmp_path: Path) -> None:
    """Every row that can be read is the same, there and back; the encrypted rows themselves can be copied, too."""
    plain, back, moved = EphemeralStorage(), EphemeralStorage(), EphemeralStorage()
    with Context.open(plain, "a", window=2_000, memory=NullMemory(), system="Be brief.") as context:
        for number in range(30):
            context.append_turn(f"{number} " * 90, {"role": "assistant", "content": "Hi."}, op_id=f"{number}")
        context.fork("b", at=4).close()
    with closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as file:
        encrypted = EncryptedStorage(file, KEY)

        assert [each.new for each in copy_contexts(plain, encrypted)] == [True, True]
        list(copy_contexts(encrypted, back))
        list(copy_contexts(file, moved))

        assert everything(encrypted, "a", "b") == everything(plain, "a", "b") == everything(back, "a", "b")
        assert everything(EncryptedStorage(moved, KEY), "a", "b") == everything(plain, "a", "b")
