r"""What the tables of memories must do, wherever they are, as tests to inherit.

class TestMyTables(MemoryStoreConformance):
    @pytest.fixture
    def reopen(self, tmp_path):
        return lambda: tables_of(MyStorage(tmp_path))    # the same tables, as another process has them
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memci.memory.repository.job_queue import JobQueue
from memci.memory.repository.store import MemoryStore, OwnerKey

_NAMES = "SELECT name FROM memory_owner ORDER BY nr"


class MemoryStoreConformance:
    """The promises of `memci.memory.repository.store.MemoryStore`."""

    @pytest.fixture
    def reopen(self) -> Callable[[], MemoryStore]:
        """Give what opens the same tables once more, beside those that are open."""
        raise NotImplementedError("a subclass gives the tables")

    def test_looking_makes_no_tables(self, reopen: Callable[[], MemoryStore]) -> None:
        """Where nothing was ever stored, reading finds nothing and makes nothing; the first change makes the tables."""
        one, other = reopen(), reopen()
        assert (one.there, one.read_rows(_NAMES), other.there) == (False, [], False)

        with one.change():
            OwnerKey(one, "anna").add()

        assert one.there and other.there
        assert other.owner_names() == ["anna"]

    def test_change_is_whole_or_nothing(self, reopen: Callable[[], MemoryStore]) -> None:
        """A change sees its own rows, others see them once it is over; one that fails, also inside, leaves nothing."""
        one, other = reopen(), reopen()
        with one.change():
            OwnerKey(one, "anna\x00\x01").add()
            assert one.writing and one.read_column(_NAMES) == ["anna\x00\x01"]

        def failing(*, inside: bool) -> None:
            with one.change():
                OwnerKey(one, "ben").add()
                with one.change():
                    assert not inside or 1 / 0
                raise ZeroDivisionError

        for inside in (False, True):
            with pytest.raises(ZeroDivisionError):
                failing(inside=inside)
            assert (one.writing, other.read_column(_NAMES)) == (False, ["anna\x00\x01"])

    def test_owner_is_added_once(self, reopen: Callable[[], MemoryStore]) -> None:
        """An owner who is added twice is one, and a change that is counted in one handle is seen in the other."""
        one, other = reopen(), reopen()
        with one.change():
            nr = OwnerKey(one, "anna").add()
        with other.change():
            assert OwnerKey(other, "anna").add() == nr
            OwnerKey(other, "anna", nr).count(revisions=2, removals=1)

        assert OwnerKey(one, "anna").read_state() == (nr, 2, 1)

    def test_jobs_are_claimed_each_once(self, reopen: Callable[[], MemoryStore]) -> None:
        """Who claims at the same time, claims another job."""
        stores = [reopen() for _ in range(4)]
        with stores[0].change():
            nr = OwnerKey(stores[0], "anna").add()
            for subject in range(20):
                assert JobQueue(OwnerKey(stores[0], "anna", nr)).enqueue("page", subject)

        def claims(store: MemoryStore) -> list[int]:
            found = (JobQueue(OwnerKey(store, "anna", nr)).claim(1.0) for _ in range(5))
            return [job.subject for job in found if job is not None]

        with ThreadPoolExecutor(len(stores)) as pool:
            claimed = [each for found in pool.map(claims, stores) for each in found]

        assert sorted(claimed) == list(range(20))
