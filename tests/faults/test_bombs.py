"""Bombs find out stores that break a promise. `make faults` sets them off in good ones."""

import itertools
import sys

import pytest

from memci import SQLiteStorage, messages
from tests.faults.acts import ACTS, ON_DISK
from tests.faults.bombs import KINDS, Bomb, Case, exploded, known, spread

KINDS_RAISED = [kind for kind, raises in KINDS.items() if raises is not None]


def checked() -> None:
    messages.check({"role": "user", "content": "Book me a flight."})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "killed"])
def test_a_transition_in_two_transactions_is_noticed(kind):
    """A store that makes two transactions of a transition is found out, if a bomb goes off between them."""
    lines = range(known("split", "archive").lines, 0, -40)

    found = (violation for line in lines for violation in exploded(Case("split", "archive", kind, line))[1])

    assert any("archived but not listed" in violation for violation in found)


class Forgetful(SQLiteStorage):
    """Does not keep what was done under which op_id."""

    def commit(self, transition):
        return super().commit(transition._replace(ops=()))


class Deaf(SQLiteStorage):
    """Goes on whatever happens."""

    def commit(self, transition):
        try:
            return super().commit(transition)
        except BaseException:
            return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flaw", "kind", "expected"),
    [
        (Forgetful, "killed", "not as before or after"),
        (Forgetful, "KeyboardInterrupt", "lost or repeated"),
        (Deaf, "KeyboardInterrupt", "it was swallowed"),
    ],
)
def test_a_flaw_of_a_store_is_noticed(flaw, kind, expected, monkeypatch):
    """A store that appends a repeated turn again, or swallows what is raised in it, is found out."""
    monkeypatch.setitem(ON_DISK, flaw.__name__, lambda folder: flaw(folder / "agent.db"))
    lines = range(known(flaw.__name__, "append").lines, 0, -5)

    found = (violation for line in lines for violation in exploded(Case(flaw.__name__, "append", kind, line))[1])

    assert any(expected in violation for violation in found)


class Finalized:
    """Executes many lines of the package when it is dropped."""

    def __del__(self):
        for _ in range(100):
            checked()


class Dropping(SQLiteStorage):
    """Drops an object with a finalizer in each commit."""

    def commit(self, transition):
        Finalized()
        return super().commit(transition)


def test_what_a_finalizer_raises_is_not_swallowed_by_the_store(monkeypatch):
    """Python drops what a finalizer raises: that is counted, and is no broken promise."""
    monkeypatch.setitem(ON_DISK, "Dropping", lambda folder: Dropping(folder / "agent.db"))
    middle = known("Dropping", "append").lines // 2

    happened, found = exploded(Case("Dropping", "append", "KeyboardInterrupt", middle))

    assert "KeyboardInterrupt in a finalizer" in happened
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize(("store", "act"), [("ephemeral", "pin"), ("sqlite", "recall")])
def test_an_act_executes_the_same_lines_each_time(store, act):
    """The number of a line is that of the same line in each run, and the first line of all is a new one."""

    lines, firsts, legal = known(store, act)

    assert known.__wrapped__(store, act) == (lines, firsts, legal)
    assert 1 in firsts
    assert max(firsts) <= lines


@pytest.mark.parametrize("kind", KINDS_RAISED)
def test_a_bomb_goes_off_at_its_line(kind):
    """A bomb raises its exception at the line that it is for, and tells which one that is."""
    counted = Bomb()
    counted.around(checked)

    bombs = [Bomb(line, KINDS[kind]) for line in (1, counted.lines, counted.lines + 1)]
    raised = [bomb.around(checked) for bomb in bombs]

    assert [type(error).__name__ for error in raised] == [kind, kind, "NoneType"]
    assert [bomb.went_off for bomb in bombs] == [True, True, False]
    assert bombs[0].place.startswith("/messages.py:")


def test_nothing_is_watched_afterwards():
    """A call that no bomb is around executes no line that one counts."""
    bomb = Bomb(1, KeyboardInterrupt)
    bomb.around(checked)
    before = bomb.lines

    checked()

    assert bomb.lines == before
    assert sys.gettrace() is None or "bombs" not in str(sys.gettrace())


def test_acts_unload_pages():
    """Among what a bomb goes off in is an append that unloads pages."""

    before, *_, after = known("ephemeral", "append, compaction").legal

    assert "unloaded" not in before.pages
    assert "unloaded" in after.pages


@pytest.mark.slow
def test_all_acts_come_early_and_all_lines_come_once():
    """The first bombs meet each act with each kind; no bomb comes twice; lines that are executed again come last."""
    cases = list(spread(3, ["ephemeral"]))
    firsts = {act: known("ephemeral", act).firsts for act in ACTS}

    early = cases[: len(ACTS) * len(KINDS_RAISED)]
    pins = [case.line in firsts["pin"] for case in cases if case.act == "pin" and case.kind == "MemoryError"]

    assert {(case.act, case.kind) for case in early} == set(itertools.product(ACTS, KINDS_RAISED))
    assert len(set(cases)) == len(cases) == len(KINDS_RAISED) * sum(known("ephemeral", act).lines for act in ACTS)
    assert pins == sorted(pins, reverse=True)
