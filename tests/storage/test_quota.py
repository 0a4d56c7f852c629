"""A quota refuses an append before anything has changed, and counts what is really there."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memci import Context
from memci.errors import InvalidSetting, QuotaExceeded
from memci.history.erase import erase
from memci.memory import NullMemory
from memci.storage import EncryptedStorage, EphemeralStorage, QuotaStorage, SQLiteStorage, Storage
from memci.storage.protocol import Erasure
from memci.storage.quota import Quota
from memci.testing.storage.rows import append, appended, bodies_of, current, everything, forked, tombstone, with_op


@pytest.fixture
def inner(tmp_path: Path) -> Iterator[Storage]:
    with closing(SQLiteStorage(tmp_path / "agent.db", durability="fast")) as storage:
        yield storage


def owned(storage: Storage, context: str, *bodies: bytes, owner: str = "ada", op: str | None = None) -> None:
    """Append to a context of *owner*."""
    storage.commit(with_op(appended(current(storage, context)._replace(owner=owner), *bodies), op))


@pytest.mark.parametrize(("limit", "most"), [("messages", 6), ("bytes", 60), ("pages", 3)])
def test_append_beyond_the_quota_changes_nothing(inner: Storage, limit: str, most: int) -> None:
    """Contexts of one owner count together, what was there before counts, and other owners have their own."""
    owned(inner, "a", b"x" * 10, b"y" * 10)
    storage = QuotaStorage(inner, Quota(**{limit: most}))
    owned(storage, "b", b"x" * 10, b"y" * 10)
    owned(storage, "a", b"x" * 10, b"y" * 10, op="last")
    before = everything(inner, "a", "b")

    for context in ("a", "b", "new"):
        with pytest.raises(QuotaExceeded) as caught:
            owned(storage, context, b"1")
        assert (caught.value.owner, caught.value.limit, caught.value.at_most) == ("ada", limit, most)
        assert caught.value.value > most

    assert everything(inner, "a", "b") == before
    assert [record.id for record in inner.contexts()] == ["a", "b"]
    record = current(inner, "a")
    known = storage.commit(with_op(appended(record, b"x"), "last"))
    assert known is not None, "an append that is known already is the answer"
    owned(storage, "of ben", b"x" * most, owner="ben")


def test_what_was_erased_does_not_count(inner: Storage) -> None:
    """It does not matter who erased it: this handle, or another one, a context or a message."""
    storage, other = QuotaStorage(inner, Quota(bytes=100)), QuotaStorage(inner, Quota())
    owned(storage, "a", b"x" * 60)
    owned(storage, "b", b"x" * 40)
    with pytest.raises(QuotaExceeded):
        owned(storage, "c", b"x" * 60)

    after = current(inner, "a")
    other.erase(
        Erasure(entries=(("a", tombstone(0)),), transitions=(appended(after)._replace(record=after, pages=()),))
    )
    owned(storage, "c", b"x" * 56)
    storage.erase(Erasure(contexts=("b",)))
    owned(storage, "c", b"x" * 40)

    with pytest.raises(QuotaExceeded):
        owned(storage, "c", b"x")
    assert sum(map(len, [*bodies_of(inner, "a"), *bodies_of(inner, "c")])) == 100


def test_messages_that_were_erased_do_not_count(inner: Storage) -> None:
    """Whoever erased them; and a full owner stays full."""
    storage, other = QuotaStorage(inner, Quota(messages=4)), QuotaStorage(inner, Quota())
    owned(storage, "a", b"1", b"2", b"3")
    owned(storage, "b", b"1")
    for eraser, gone in ((other, 0), (storage, 1)):
        with pytest.raises(QuotaExceeded):
            owned(storage, "c", b"1")

        after = current(inner, "a")
        transition = appended(after)._replace(record=after, pages=())
        eraser.erase(Erasure(entries=(("a", tombstone(gone)),), transitions=(transition,)))
        owned(storage, "c", b"1")

    with pytest.raises(QuotaExceeded) as caught:
        owned(storage, "a", b"1")
    assert caught.value.value == 5


def test_messages_that_were_erased_do_not_count_where_they_are_encrypted() -> None:
    storage = EncryptedStorage(QuotaStorage(EphemeralStorage(), Quota(messages=2)), bytes(range(32)))
    context = Context.open(storage, id="a", window=8_000, memory=NullMemory())
    context.append_turn("one", {"role": "assistant", "content": "two"})

    context.erase(1)
    context.append_turn("three", {"role": "assistant", "content": "four"})

    with pytest.raises(QuotaExceeded):
        context.append_turn("five")


def test_what_a_fork_shares_counts_once(inner: Storage) -> None:
    """A fork has its own messages; those before its base are its parent's."""
    storage = QuotaStorage(inner, Quota(messages=5, bytes=50))
    owned(storage, "a", *[b"x" * 10] * 4)

    storage.commit(
        forked("a", "fork", 3, b"x" * 10)._replace(record=forked("a", "fork", 3, b"x").record._replace(owner="ada"))
    )

    with pytest.raises(QuotaExceeded):
        owned(storage, "fork", b"1")


def test_appends_of_another_process_are_seen(inner: Storage) -> None:
    """Before a refusal and every hundred appends: who exceeds the quota exceeds it by so many at most."""
    storage = QuotaStorage(inner, Quota(messages=300))
    owned(storage, "a", b"1")
    for _ in range(150):
        owned(inner, "b", b"1")

    with pytest.raises(QuotaExceeded) as caught:
        for _ in range(300):
            owned(storage, "a", b"1")

    assert caught.value.value == 301
    assert inner.revision("a") == 150


def test_counting_costs_the_same_however_much_there_is(inner: Storage) -> None:
    """An append reads no message and no record, once its owner is counted."""

    storage = QuotaStorage(inner, Quota(bytes=2**30, messages=10**6))
    owned(storage, "a", b"1")
    listed, read = inner.contexts, inner.entries
    calls: list[str] = []
    inner.contexts = lambda *given, **named: (calls.append("contexts"), listed(*given, **named))[1]  # type: ignore[method-assign]
    inner.entries = lambda *given, **named: (calls.append("entries"), read(*given, **named))[1]  # type: ignore[method-assign]

    for _ in range(98):
        owned(storage, "a", b"1")

    assert calls == []


def test_context_says_that_its_owner_has_too_much() -> None:
    """The append is refused, the window is as it was, and erasing another context makes room; encrypted, too."""
    storage = EncryptedStorage(QuotaStorage(EphemeralStorage(), Quota(messages=4)), bytes(32))
    with Context.open(storage, "old", owner="ada", window=8_000, memory=NullMemory()) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hi."})
    with Context.open(storage, "new", owner="ada", window=8_000, memory=NullMemory()) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hi."})
        shown = context.render()
        with pytest.raises(QuotaExceeded):
            context.append_turn("And now?")
        assert context.render() == shown
        erase(storage, context="old")
        context.append_turn("And now?")


def test_quota_that_makes_no_sense_is_refused(inner: Storage) -> None:
    """A limit is a number from 0; each owner may have one of their own."""
    for quota in (Quota(bytes=-1), Quota(messages=1.5), Quota(pages="3")):  # type: ignore[arg-type]
        with pytest.raises(InvalidSetting):
            QuotaStorage(inner, quota)
    storage = QuotaStorage(inner, lambda owner: Quota(messages=owner.count("!")))
    append(storage, "ada!!", b"1", b"2")
    with pytest.raises(QuotaExceeded):
        append(storage, "ada!", b"1", b"2")
