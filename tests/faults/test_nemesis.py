"""`nemesis` and `histories` find out a store that does not fence. `make faults` kills writers of good ones."""

import os
from pathlib import Path

import pytest

from memci import SQLiteStorage
from memci.errors import StorageBusy, WriteConflict
from memci.rows import OpRow
from memci.storage.protocol import Transition
from tests.faults.histories import History, against, examined, history, said
from tests.faults.nemesis import LOCKED, STORES, WRITERS, Life, Nemesis, Writer, opened, sqlite
from tests.faults.tally import Order, Tally


class Unfenced(SQLiteStorage):
    """Takes the transition of a stale writer for one that follows what is stored."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, busy_timeout_seconds=30)
        self._believed: dict[str, int] = {}

    def load(self, context):
        found = super().load(context)
        if found is not None:
            self._believed[context] = found[0].revision
        return found

    def revision(self, context: str) -> int:
        return self._believed[context] if context in self._believed else super().revision(context)

    def commit(self, transition: Transition) -> OpRow | None:
        record = transition.record
        while True:
            found = super().load(record.id)
            head, revision = (found[0].head, found[0].revision) if found else (0, 0)
            shift = head - transition.head
            after = record._replace(revision=revision + 1, head=record.head + shift)
            entries = tuple(row._replace(seq=row.seq + shift) for row in transition.entries)
            try:
                known = super().commit(transition._replace(head=head, record=after, entries=entries))
            except WriteConflict:
                continue
            if known is None:
                self._believed[record.id] = record.revision
            return known


class Refusing(SQLiteStorage):
    """Lets nobody write."""

    def commit(self, transition: Transition) -> OpRow | None:
        raise StorageBusy("somebody writes, for ever")


CONDUCTOR = os.getpid()


def refusing(folder: Path) -> SQLiteStorage:
    kind = SQLiteStorage if os.getpid() == CONDUCTOR else Refusing
    return kind(folder / "shared.db")


def unfenced(folder: Path) -> Unfenced:
    return Unfenced(folder / "shared.db")


def run(*stores: str, kills: int) -> Tally:
    return Nemesis(stores or STORES).run(Order(seed=3, aim=kills, seconds=600), lambda _: None)


@pytest.mark.parametrize(
    ("make", "conflicts", "expected"),
    [(sqlite, 1, []), (unfenced, 0, ["shared a: 1-1 came between the appends of one handle, 0-1 and 0-2"])],
    ids=["fenced", "unfenced"],
)
def test_a_store_that_does_not_fence_is_noticed(make, conflicts, expected, tmp_path):
    """A store that takes the changes of a stale writer is found out: other appends come between those of a handle."""
    writers = [Writer(Life(tmp_path, number, number, seed=number), make) for number in range(2)]

    for op in ("0-1", "1-1", "0-2"):
        writers[int(op[0])].append(op, "shared a")
    counts, found = examined(tmp_path, make, opened, apart={LOCKED}, writers=2)

    assert counts["write conflicts"] == conflicts
    assert found == expected


@pytest.mark.slow
def test_a_store_that_refuses_all_is_noticed():
    """A store in which nobody can append any more is found out, although nothing is lost."""

    tally = run(f"{__name__}:refusing", kills=2)

    assert any("nobody could append" in each for each in tally.violations)


def told(*ops: str, run: str = "1.1", **more) -> History:
    return History(dict.fromkeys(ops, "shared a"), dict.fromkeys(ops, run), set(), [], [], 0)._replace(**more)


def wrong(*stored: str, writers: dict[int, History]) -> list[str]:
    return list(against(writers, {"shared a": list(stored)}, {LOCKED}))


def test_a_history_that_was_stored_is_fine():
    """What was acknowledged is there once, and what was in flight is there or not."""
    in_flight = told("1-1", run="2.1")
    in_flight.started["1-2"] = "shared a"

    found = [wrong(*more, "0-1", "0-2", "1-1", writers={0: told("0-1", "0-2"), 1: in_flight}) for more in ((), ())]

    assert found == [[], []]
    assert wrong("0-1", "0-2", "1-1", "1-2", writers={0: told("0-1", "0-2"), 1: in_flight}) == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (["0-1"], "0-2 was acknowledged, and is lost"),
        (["0-1", "0-2", "0-2"], "0-2 is there 2 times"),
        (["0-1", "0-2", "7-9"], "nobody said 7-9 here"),
        (["0-2", "0-1"], "the order of writer 0 is lost"),
        (["0-1", "1-1", "0-2"], "1-1 came between the appends of one handle, 0-1 and 0-2"),
    ],
)
def test_a_broken_history_is_noticed(stored, expected):
    """A history in which something is lost, repeated, foreign, out of order or interleaved is found out."""
    writers = {0: told("0-1", "0-2"), 1: told(*(["1-1"] if "1-1" in stored else []), run="2.1")}

    found = wrong(*stored, writers=writers)

    assert any(expected in each for each in found)


@pytest.mark.parametrize("name", [LOCKED, "of writer 0"])
def test_a_lock_that_was_not_exclusive_is_noticed(name):
    """A writer that loses the context that it holds the lock of, or that nobody else knows, is found out."""

    found = wrong(writers={0: told(lost=[name])})

    assert found == [f"{name}: writer 0 lost a context that nobody else may write"]


def test_a_handle_that_shows_the_past_is_noticed():
    """A handle that goes on although another one has changed the context is found out."""

    found = wrong(writers={0: told(stale=["shared a"])})

    assert found == ["shared a: writer 0 did not notice that it was overtaken"]


def test_a_torn_append_is_noticed(tmp_path):
    """Half of an append in the store is found out, and a log is read as it was written."""
    (tmp_path / "writer-0.log").write_text(
        "start 0-1 a b\nlost 0-1\nacked 0-1 4.2\nstart 0-2 a b\nagain 0-2\nknown 0-2\n"
    )
    storage = sqlite(tmp_path)
    with opened(storage, "a b") as context:
        context.append_turn(*said("0-1"))
        context.append_turn(said("0-2")[0])
    storage.close()

    counts, found = examined(tmp_path, sqlite, opened, apart=set(), writers=WRITERS)

    assert history(tmp_path, 0) == History({"0-1": "a b", "0-2": "a b"}, {"0-1": "4.2"}, {"0-2"}, ["a b"], [], 1)
    assert counts["appends acknowledged"] == 2
    assert any("message 2 ('0-2 asks" in each and "is not of a whole append" in each for each in found)
