"""The mutants: each can be made, each has a killer that is there, and a killer's verdict is what it says."""

import time

import pytest

from tests.faults import mutants
from tests.faults.mutants import ROOT, UNTRIED, Mutants, applied, chosen, killed
from tests.faults.mutations import MUTANTS, Mutant
from tests.faults.runner import SLOTS
from tests.faults.tally import Order

ALWAYS = time.monotonic() + 3_600


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that makes one promise; a test that holds it to that, and one that has it the wrong way round."""
    made = tmp_path / "root"
    (made / "memci").mkdir(parents=True)
    (made / "memci" / "__init__.py").write_text("KEPT = True\n")
    (made / "tests").mkdir()
    (made / "tests" / "test_promise.py").write_text("import memci\n\ndef test_kept():\n    assert memci.KEPT\n")
    (made / "tests" / "test_wrong.py").write_text("import memci\n\ndef test_kept():\n    assert not memci.KEPT\n")
    (made / "pyproject.toml").write_text("")
    monkeypatch.setattr(mutants, "ROOT", made)
    return made


def broken(killer: str, old: str = "True", new: str = "False") -> Mutant:
    return Mutant("it is kept", "memci/__init__.py", old, new, killer)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "_"))
def test_a_mutant_can_be_made(mutant, tmp_path):
    """The text that a mutant replaces is in the code, once, and what stands there then is Python."""
    path = tmp_path / mutant.path
    path.parent.mkdir(parents=True)
    path.write_text((ROOT / mutant.path).read_text("utf-8"), "utf-8")

    problem = applied(mutant, tmp_path)

    assert problem is None
    assert compile(path.read_text("utf-8"), mutant.path, "exec")
    assert mutant.new != mutant.old


@pytest.mark.parametrize("killer", sorted({mutant.killer for mutant in MUTANTS}))
def test_a_killer_is_there(killer):
    """A killer is one of the harnesses, or tests that can be found."""
    path = killer.split(maxsplit=1)[0].partition("::")[0]

    assert path in SLOTS or (ROOT / path).exists()


def test_there_are_thirty_and_six_are_quick():
    """There are at least thirty mutants, each named once, and the short tier takes six that one test notices."""

    names = {mutant.name for mutant in MUTANTS}
    short = chosen(Mutants.short)

    assert len(names) == len(MUTANTS) >= 30
    assert len(short) == 6
    assert all(mutant.quick and mutant.killer.startswith("tests/") for mutant in short)
    assert set(chosen(len(MUTANTS))) == set(MUTANTS)


@pytest.mark.slow
def test_what_survives_is_a_broken_promise(package, monkeypatch):
    """A mutant whose killer passes is told, and so is a killer that fails without any mutant."""
    killers = ("tests/test_promise.py", "tests/test_wrong.py")
    monkeypatch.setattr(mutants, "MUTANTS", tuple(broken(killer) for killer in killers))
    harness = Mutants()
    harness.short = 1  # the long tier tries killers without a mutant too

    tally = harness.run(Order(seed=7, aim=2, seconds=600), lambda _: None)

    assert tally.runs == 2
    assert tally.counts["caught by tests/test_promise.py"] == 1
    assert tally.violations == [
        "mutant 'it is kept': survived",
        "tests/test_wrong.py fails without any mutant",
    ]
    assert (package / "memci" / "__init__.py").read_text() == "KEPT = True\n"


@pytest.mark.slow
@pytest.mark.usefixtures("package")
def test_a_killer_that_can_not_run_is_noticed():
    """A killer that is not there has caught nothing."""

    outcome = killed(broken("tests/test_gone.py"), 7, ALWAYS)

    assert outcome.verdict.startswith("its killer broke")


@pytest.mark.usefixtures("package")
def test_a_mutant_that_changes_nothing_is_noticed():
    """A text that is not in the code any more, or is there twice, is not taken for a mutant that was caught."""

    gone, twice = (killed(broken("tests/test_promise.py", old), 7, ALWAYS).verdict for old in ("Gone", "T"))

    assert "is 0 times" in gone
    assert "is 2 times" in twice


@pytest.mark.usefixtures("package")
def test_what_there_was_no_time_for_is_said():
    """A mutant whose killer has no time is neither caught nor survives."""

    outcome = killed(broken("tests/test_promise.py"), 7, time.monotonic())

    assert outcome.verdict == UNTRIED
