"""`power` has teeth: a store that does not sync is found out. `make faults` cuts the power of good ones."""

import random

import pytest

from tests.faults.disk import Folder
from tests.faults.inode import Change, File
from tests.faults.power import PowerCuts
from tests.faults.shim import library
from tests.faults.tally import Order, Tally


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    try:
        library(str(tmp_path_factory.mktemp("shim")))
    except RuntimeError as error:
        pytest.skip(str(error))


def run(*stores: str, aim: int, seed: int = 1) -> Tally:
    return PowerCuts(stores).run(Order(seed=seed, aim=aim, seconds=600, workers=1), lambda _: None)


@pytest.mark.slow
def test_commits_that_are_not_synced_are_noticed(shim):
    """A store that does not sync its commits is found out, if it is checked as one that does."""

    tally = run("fast_as_full", aim=60)

    assert any("acknowledged changes are lost" in each for each in tally.violations)


def survivals(file: File, cut: int) -> set[bytes]:
    return {file.survives(cut, random.Random(seed)) for seed in range(200)}


def test_what_was_synced_survives():
    """After a sync every byte that was written before it is there."""
    file = File()
    file.change(1, 0, b"a" * 1000)
    file.change(2, 0, b"b" * 10)

    file.sync(3, failed=False)

    assert survivals(file, 4) == {b"b" * 10 + b"a" * 990}


def test_what_was_not_synced_survives_in_any_part():
    """Of a write that was not synced there is all, nothing, or any of its sectors."""
    file = File()

    file.change(1, 0, b"a" * 512 + b"b" * 512)

    assert {b"", b"a" * 512 + b"b" * 512, b"a" * 512, bytes(512) + b"b" * 512, bytes(1024)} <= survivals(file, 2)


def test_a_sync_that_failed_keeps_nothing():
    """What a sync failed to keep may be gone even after the next one succeeds; another write to its page saves it."""
    file = File()
    file.change(1, 0, b"a" * 4096 + b"b")
    file.sync(2, failed=True)
    file.change(3, 4097, b"c")

    file.sync(4, failed=False)

    assert survivals(file, 5) >= {b"a" * 4096 + b"bc", bytes(4096) + b"bc"}
    assert all(each[4096:] == b"bc" for each in survivals(file, 5))


def test_names_survive_in_their_order():
    """Of the names since the last sync of their folder the first few are there; a rename is whole."""
    file, folder = File(), Folder()
    folder.change(1, ("tmp", file))
    folder.syncs.append(2)
    folder.change(3, ("tmp", None), ("final", file))
    folder.change(4, ("other", File()))

    found = {tuple(dict(folder.survives(5, random.Random(seed)))) for seed in range(200)}

    assert found == {("tmp",), ("final",), ("final", "other")}


def test_a_change_of_no_bytes_is_a_cut():
    """A file that was cut is as short as that, once it is synced."""
    file = File([Change(0, 0, b"")])
    file.change(1, 0, b"abc")
    file.change(2, 1, None)

    file.sync(3, failed=False)

    assert survivals(file, 4) == {b"a"}
