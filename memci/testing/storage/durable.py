"""What a store that keeps its contexts must do: open as it was closed, show damage, leave no byte of what was erased.

commit, close(), reopen()         ──▶  all is there
a byte changes behind its back    ──▶  CorruptRecord, at that entry, never other bytes or an early end
erase                             ──▶  its files hold nothing of it
"""

import zlib
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from random import Random

import pytest

from ...errors import CorruptRecord, StorageBusy, WriteConflict
from ...storage.locks import hold
from ...storage.protocol import Erasure, Storage
from .conformance import StorageConformance
from .pair import PairedStore
from .rows import Reread, append, appended, bodies_of, called, compacted, current, entry, everything, with_op


class DurableStorageConformance(StorageConformance):
    """The promises of a store that keeps its contexts after close()."""

    @pytest.fixture
    def reopen(self) -> Reread:
        """Give what opens the same store once more, beside the handles that are open."""
        raise NotImplementedError("a subclass gives it")

    @pytest.fixture(params=["at once", "reopened"])
    def reread(self, storage: Storage, reopen: Reread, request: pytest.FixtureRequest) -> Iterator[Reread]:
        """Give what gives the store to read from: as it is, and after close() and opening it again."""
        opened: list[Storage] = []

        def again() -> Storage:
            if request.param == "reopened":
                storage.close()
                opened.append(reopen())
            return opened[-1] if opened else storage

        yield again
        for each in opened:
            each.close()

    @pytest.fixture
    def opening(self, reopen: Reread) -> Reread | None:
        """Give what opens the store again after close()."""
        return reopen

    @pytest.fixture
    def files(self) -> Callable[[], Iterable[Path]]:
        """Give what lists the files that the store consists of, if they hold bodies as they are."""
        pytest.skip("the store gives no `files` fixture")

    @pytest.fixture
    def corrupt(self) -> Callable[[str, int], None]:
        """Give what changes a byte of the stored body of (context, seq), if the store can be reached so."""
        pytest.skip("the store gives no `corrupt` fixture")

    @pytest.fixture
    def remove(self) -> Callable[[str, int], None]:
        """Give what removes the stored row of (context, seq), if the store can be reached so."""
        pytest.skip("the store gives no `remove` fixture")

    def test_handles_see_each_other(self, storage: Storage, reopen: Reread) -> None:
        """What one commits, another sees at the next call, or gets WriteConflict if behind; locks exclude both."""
        other = reopen()
        append(storage, "a", b"1")
        mine, theirs = appended(current(storage, "a"), b"mine"), appended(current(other, "a"), b"theirs")
        other.commit(theirs)

        with pytest.raises(WriteConflict):
            storage.commit(mine)

        assert bodies_of(storage, "a") == [b"1", b"theirs"]
        append(storage, "a", b"mine")
        assert bodies_of(other, "a") == [b"1", b"theirs", b"mine"]
        assert everything(storage, "a") == everything(other, "a")
        for one, another in ((storage, other), (other, storage)):
            lock = hold(one, "a", 0)
            with pytest.raises(StorageBusy):
                hold(another, "a", 0)
            lock.release()
        other.close()

    def test_changed_byte_is_corrupt(self, storage: Storage, corrupt: Callable[[str, int], None]) -> None:
        """A body that is not what was written is CorruptRecord when it is reached; the others can be read."""
        append(storage, "a", b"zero", b"one", b"two")
        corrupt("a", 1)

        rows = storage.entries("a")

        assert next(rows).body == b"zero"
        with pytest.raises(CorruptRecord) as caught:
            next(rows)
        assert (caught.value.context, caught.value.seq) == ("a", 1)
        assert [row.body for row in storage.entries("a", 2)] == [b"two"]

    @pytest.mark.parametrize("seq", [0, 1, 2])
    def test_missing_row_is_corrupt(self, storage: Storage, remove: Callable[[str, int], None], seq: int) -> None:
        """A row that is gone is CorruptRecord, never a gap or an early end."""
        append(storage, "a", b"zero", b"one", b"two")
        remove("a", seq)

        with pytest.raises(CorruptRecord) as caught:
            list(storage.entries("a"))

        assert caught.value.seq == seq

    @pytest.mark.parametrize("whole", [True, False], ids=["a context", "an entry"])
    def test_no_byte_is_left_in_the_files(
        self, storage: Storage, reread: Reread, files: Callable[[], Iterable[Path]], whole: bool
    ) -> None:
        """What was erased is in no file (bodies, times, digests of ops, compactions), at once and when reopened."""
        canaries = {
            "body": b'{"content":"canary 6f0c in a body"}',
            "large": b'{"content":"' + b"canary 91d2 in a large body " * 400 + b'"}',
            "at": b"2031-canary-in-a-time",
            "digest": b"canary digest 16",
            "compaction": b'{"lines":["canary 0be7 in a compaction"]}',
            "tools": b'["canary 1d4f in a list of tools"]',
        }
        small, large = (
            entry(i, canaries[each], at=canaries["at"].decode()) for i, each in enumerate(("body", "large"))
        )
        pair = PairedStore(storage)
        pair.append("other", b"stays")
        made = with_op(appended(pair.following("a"), b"", b""), "op", canaries["digest"])
        pair.commit(compacted(made._replace(entries=(small, large)), canaries["compaction"].decode()))
        for i in range(20):
            tools = canaries["tools"].decode() if whole else None
            pair.commit(called(appended(pair.following("a"), b"later %d" % i), tools))
        pair.fork("a", "b", 2, compaction=canaries["compaction"].decode())
        needles = {name: _ways(canary[:600]) for name, canary in canaries.items()}
        packed = zlib.compress(canaries["compaction"])
        needles["compaction"] |= {packed, packed[2:-4]}
        assert found(files(), needles), "the files that `files` gives are those of the store"

        erasure = pair.erasure(contexts=("a", "b")) if whole else pair.erasure(("a", 0), ("b", 1))
        assert pair.erase(erasure).scrubbed

        assert found(files(), needles) == []
        pair.check(reread())
        pair.append("other", b"goes on")
        assert found(files(), needles) == []

    def test_no_copy_of_a_row_that_was_moved_is_left(
        self, storage: Storage, files: Callable[[], Iterable[Path]]
    ) -> None:
        """Rows of contexts that grow in turns are moved about in the file, and what they left there is erased as well.

        A B-tree that makes room for a row copies its neighbours, and their bytes stay in the free space.
        """
        sizes = Random(7)  # noqa: S311 -- no secret
        for turn in range(12):
            for nr in range(12):
                body = b'"canary %d of c%d %s"' % (turn, nr, b"." * sizes.randrange(20, 700))
                append(storage, f"c{nr}", body)
        gone = range(0, 12, 2)

        assert storage.erase(Erasure(contexts=tuple(f"c{nr}" for nr in gone))).scrubbed

        assert found(files(), {f"c{nr}": {b" of c%d ." % nr} for nr in gone}) == []

    def test_scrubbing_waits_for_who_reads_an_older_state(
        self, storage: Storage, reopen: Reread, files: Callable[[], Iterable[Path]]
    ) -> None:
        """While another handle has half read, erase says whether bytes are left; when it is done, none are."""
        append(storage, "a", *[b'"canary 77aa"'] * 600)
        other = reopen()
        rows = other.entries("a")
        next(rows)
        needles = {"body": {b"canary 77aa"}}

        erased = storage.erase(Erasure(contexts=("a",)))

        assert not erased.scrubbed or found(files(), needles) == []
        other.close()
        assert storage.erase(Erasure()).scrubbed
        assert found(files(), needles) == []


def found(files: Iterable[Path], needles: dict[str, set[bytes]]) -> list[tuple[str, str]]:
    """Return which of *needles* are in which of *files*. O(bytes of the files)."""
    held = {str(path): path.read_bytes() + path.name.encode() for path in files}
    return [
        (name, file)
        for file, content in held.items()
        for name, ways in needles.items()
        if any(way in content for way in ways)
    ]


def _ways(canary: bytes) -> set[bytes]:
    """Return how a file may say *canary*: as it is, in hex, in base64 from any of its first bytes on."""
    shifted = (b64encode(canary[i : i + (len(canary) - i) // 3 * 3]) for i in range(3))
    return {canary, canary.hex().encode(), *shifted}
