"""The runner with harnesses that are made up, and the machine's harness with machines that are made up."""

import io
import json
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from rich.console import Console

from tests.faults.runner import HOURS, INTERRUPTED, MINUTES, SLOTS, Slot, main
from tests.faults.steps import LIVES, STEPS, Batch, MachineSteps, lived
from tests.faults.tally import Order, Tally

MODULE = "test_runner"


class Fine:
    """Does what it is asked to, at once."""

    name, unit, short, long = "fine", "tries", 4, 40
    orders: ClassVar[list[Order]] = []

    def run(self, order, tell):
        self.orders.append(order)
        tell(order.aim)
        tally = Tally(self.name, self.unit, runs=order.aim)
        tally.counts["tried in vain"] = 3
        return tally


class Broken(Fine):
    """Finds something."""

    def run(self, order, tell):
        tally = super().run(order, tell)
        tally.violations.append("it was acknowledged, and is lost\nall of its history")
        return tally


class Raises(Fine):
    """Does not come to its end."""

    def run(self, order, tell):
        raise RuntimeError("there is no compiler")


class Exits(Fine):
    """Thinks that it is a program."""

    def run(self, order, tell):
        raise SystemExit(0)


class Interrupted(Fine):
    """Is cut short by a Ctrl-C."""

    def run(self, order, tell):
        raise KeyboardInterrupt


class Idle(Fine):
    """Has no time."""

    def run(self, order, tell):
        return Tally(self.name, self.unit)


SLOTS_HERE = {kind.__name__.lower(): Slot(MODULE, kind.__name__, 0.25) for kind in (Fine, Broken, Raises, Idle)}
SLOTS_HERE |= {"second": Slot(MODULE, "Fine", 0.25), "missing": Slot("not_there", "Missing", 0.25)}
SLOTS_HERE |= {kind.__name__.lower(): Slot(MODULE, kind.__name__, 0.25) for kind in (Exits, Interrupted)}
SLOTS_HERE |= {"last": Slot(MODULE, "Fine", 0.25)}


@pytest.fixture(autouse=True)
def orders():
    Fine.orders.clear()
    return Fine.orders


def ran(*arguments: str, **console: bool) -> tuple[int, str]:
    written = io.StringIO()
    code = main(arguments, SLOTS_HERE, Console(file=written, width=200, _environ={"TERM": "xterm"}, **console))
    return code, written.getvalue()


@pytest.mark.parametrize(
    ("names", "code", "said"),
    [
        (["fine", "second"], 0, "no promise broken"),
        (["fine", "broken"], 1, "✗ it was acknowledged, and is lost … (--json has all of it)"),
        (["raises", "fine"], 1, "did not run: RuntimeError('there is no compiler')"),
        (["exits", "fine"], 1, "did not run: SystemExit(0)"),
        (["missing", "fine"], 1, "missing did not run: ModuleNotFoundError"),
        (["idle"], 1, "did not run: it had no time"),
    ],
)
def test_exit_code_says_whether_all_is_well(names, code, said):
    """A broken promise, and a harness that could not run, is told and makes the exit code 1."""

    found, text = ran("--only", *names)

    assert found == code
    assert said in text


def test_others_run_after_one_that_failed(orders):
    """A harness that can't be started, or raises, keeps none of the others from running."""

    _, text = ran("--only", *(name for name in SLOTS_HERE if name != "interrupted"))

    assert len(orders) == 4
    assert "4 / 4" in text
    assert "tried in vain 3" in text


def test_interrupted_run_tells_what_is_over(orders, tmp_path):
    """A Ctrl-C ends the run, with its own exit code and the figures of what is over; what follows does not begin."""
    path = tmp_path / "figures.json"

    code, text = ran("--only", "broken", "interrupted", "last", "--json", str(path))

    assert code == INTERRUPTED
    assert "interrupted did not come to its end" in text
    assert len(orders) == 1
    assert "✗ it was acknowledged, and is lost" in text
    assert [each["name"] for each in json.loads(path.read_text("utf-8"))["harnesses"]] == ["fine"]


def test_terminal_shows_how_far_each_one_is():
    """On a terminal each harness has a bar with its runs and its pace, elsewhere a line."""

    _, bars = ran("--only", "fine", force_terminal=True)
    _, lines = ran("--only", "fine", force_terminal=False)

    assert "4/4" in bars
    assert "/s, 0:00 left" in bars
    assert "4/4" not in lines
    assert "fine: 4 of 4 tries, 0 broken promises" in lines


def test_time_that_is_left_goes_to_the_rest(orders):
    """A harness that is over at once leaves its time to those after it."""

    ran("--only", "fine", "second", "--minutes", "1")

    assert 29 < orders[0].seconds <= 30
    assert 58 < orders[1].seconds <= 60


def test_times_multiply_aims_and_time(orders):
    """`--times 3` aims at three times as many runs, in three times the time; the long tier aims at its own number."""

    ran("--only", "fine", "--minutes", "1", "--times", "3")
    ran("--only", "fine", "--tier", "long", "--minutes", "1")

    assert [order.aim for order in orders] == [12, 40]
    assert 170 < orders[0].seconds <= 180


def test_hours_are_those_of_the_environment(orders, monkeypatch):
    """The variable says how long the long tier takes, not the short one."""
    monkeypatch.setenv(HOURS, "0.5")

    ran("--only", "fine", "--tier", "long")
    ran("--only", "fine")

    assert 1_790 < orders[0].seconds <= 1_800
    assert orders[1].seconds <= MINUTES["short"] * 60


def test_seed_is_that_of_the_commit(orders):
    """The same commit gives the same seed, unless another one is asked for."""

    ran("--only", "fine")
    ran("--only", "fine")
    ran("--only", "fine", "--seed", "7")

    assert orders[0].seed == orders[1].seed
    assert orders[2].seed == 7


def test_figures_are_written(tmp_path):
    """The figures hold all that is needed to see them again, those of harnesses that failed too."""
    path = tmp_path / "figures.json"

    ran("--only", "fine", "broken", "raises", "--seed", "7", "--json", str(path))

    figures = json.loads(path.read_text("utf-8"))
    assert (figures["seed"], figures["tier"], figures["times"]) == (7, "short", 1)
    assert {"commit", "machine", "minutes"} <= figures.keys()
    fine, broken, raises = figures["harnesses"]
    assert (fine["runs"], fine["aim"], fine["violations"], fine["failure"]) == (4, 4, [], "")
    assert broken["violations"] == ["it was acknowledged, and is lost\nall of its history"]
    assert "no compiler" in raises["failure"]


@pytest.mark.parametrize("name", SLOTS)
def test_each_harness_is_there(name):
    """Each harness of the table can be made, and says what it is and aims at."""
    module, kind, share = SLOTS[name]

    harness = getattr(pytest.importorskip(f"tests.faults.{module}"), kind)()

    assert harness.name
    assert harness.unit
    assert 0 < harness.short <= harness.long
    assert 0 < share < 1


class Counts(RuleBasedStateMachine):
    """Does nothing wrong."""

    @rule()
    def step(self):
        self.seen["steps"] += 1


class Wrong(RuleBasedStateMachine):
    """Breaks a promise at its fifth step."""

    steps_taken = 0

    @rule()
    def step(self):
        self.steps_taken += 1
        assert self.steps_taken < 5, "it holds no longer"


def test_steps_are_counted_as_they_are_taken():
    """A batch counts the steps that were taken, no more, and what its machine met."""

    steps, met, violations = lived(Batch(f"{__name__}:Counts", 7, until=1e12, lives=3))

    assert violations == []
    assert steps == met["met: steps"] == met["steps in Counts"]
    assert STEPS < steps <= 3 * STEPS


def test_a_machine_that_fails_is_noticed():
    """A machine that breaks a promise is told with its seed and its steps."""

    _, _, (violation,) = lived(Batch(f"{__name__}:Wrong", 7, until=0.0 + 1e12, lives=2))

    assert violation.startswith("Wrong, seed 7: AssertionError")
    assert "it holds no longer" in violation
    assert "state.step()" in violation


class WrongTwice(RuleBasedStateMachine):
    """Breaks two promises."""

    @rule(first=st.booleans())
    def step(self, first):
        if first:
            raise LookupError("it is lost")
        raise TimeoutError("it hangs")


def test_a_machine_that_fails_in_two_ways_is_noticed():
    """Each way to fail is told by itself, with its own steps."""

    _, _, violations = lived(Batch(f"{__name__}:WrongTwice", 7, until=1e12, lives=20))

    lost, hangs = sorted(violations)
    assert "LookupError('it is lost') at test_runner.py" in lost
    assert "state.step(first=True)" in lost
    assert "TimeoutError('it hangs') at test_runner.py" in hangs
    assert "state.step(first=False)" in hangs


def test_a_batch_ends_with_its_time():
    """A batch whose time is over takes no further step."""

    steps, _, violations = lived(Batch(f"{__name__}:Counts", 7, until=0.0))

    assert (steps, violations) == (0, [])


@pytest.mark.slow
def test_machine_takes_as_many_steps_as_it_is_asked_to():
    """The harness begins new seeds until it has taken the steps."""
    told = []

    tally = MachineSteps((f"{__name__}:Counts",)).run(
        Order(7, aim=LIVES * STEPS + 1, seconds=600, workers=1), told.append
    )

    assert tally.violations == []
    assert LIVES * STEPS < tally.runs == told[-1] <= 4 * LIVES * STEPS
