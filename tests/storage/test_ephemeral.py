"""EphemeralStorage keeps the promises of a store, in bounded memory and without a file."""

import pickle
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from memci.rows import PageState
from memci.storage import EphemeralStorage
from memci.storage.protocol import Erasure
from memci.testing.storage import StorageConformance
from memci.testing.storage.rows import append, appended, current
from tests.storage.plain_store import PlainStore


class TestEphemeralStorage(StorageConformance):
    @pytest.fixture
    def storage(self) -> EphemeralStorage:
        return EphemeralStorage()

    @pytest.fixture
    def known(self) -> type[PlainStore]:
        return PlainStore


def test_memory_is_at_most_twice_the_bodies() -> None:
    """An archived page of two messages of 400 bytes takes at most twice their bytes, and all goes at the close."""
    before = apsw.memory_used()
    storage = EphemeralStorage()

    for i in range(1000):
        transition = appended(current(storage, "a"), b"%0400d" % i, b"%0400d" % -i)
        storage.commit(transition._replace(pages=(transition.pages[0]._replace(state=PageState.ARCHIVED),)))

    assert apsw.memory_used() - before <= 2 * 1000 * 800
    storage.close()
    assert apsw.memory_used() - before <= 100_000


def test_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in RAM leaves nothing in the folder that the program runs in."""
    monkeypatch.chdir(tmp_path)
    with closing(EphemeralStorage()) as storage:
        append(storage, "a", b"1")
        assert storage.erase(Erasure(("a",))).scrubbed
        assert storage.damage() == []

    assert list(tmp_path.iterdir()) == []


def test_pickling_is_refused() -> None:
    """A handle can't be pickled; the error says what to do."""
    with pytest.raises(TypeError, match="EphemeralStorage can't be pickled: open"):
        pickle.dumps(EphemeralStorage())
