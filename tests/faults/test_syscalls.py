"""`syscalls` has teeth: a store that commits by halves is found out. `make faults` lets calls of good ones fail."""

import pytest

from tests.faults.shim import library
from tests.faults.syscalls import Syscalls, spread
from tests.faults.tally import Order, Tally

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def shim(tmp_path_factory):
    try:
        library(str(tmp_path_factory.mktemp("shim")))
    except RuntimeError as error:
        pytest.skip(str(error))


def run(*stores: str, aim: int, seed: int = 1) -> Tally:
    return Syscalls(stores).run(Order(seed=seed, aim=aim, seconds=600, workers=1), lambda _: None)


def test_a_transition_in_two_transactions_is_noticed():
    """A store that makes two transactions of a transition is found out: a call fails, or kills it, between them."""

    tally = run("split", aim=24, seed=4)

    assert any("the call failed and changed" in each for each in tally.violations)


def test_spread_names_each_call_once():
    """The order in which calls fail leaves none out, and repeats none."""

    assert [sorted(spread(total)) for total in range(1, 40)] == [list(range(total)) for total in range(1, 40)]
