"""A quick look at the queue of a lock: processes have it equally often, and one that has ended is passed over."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.locks import STORES, measured
from memci.storage.locks import EXPIRY_SECONDS, _ticket, find_living


@pytest.mark.slow
@pytest.mark.parametrize("store", STORES)
def test_lock_is_shared_equally_among_processes(store, tmp_path):
    """Four processes that open with `wait=`, append and close, again and again: all have it about equally often.

    Who waits has it in turn; a busy machine may keep a process from waiting, so that shares differ.
    """
    figures = measured(store, tmp_path, 4, 0.5)

    turns = [each for each, _ in figures["processes"]]
    assert max(turns) <= 3 * min(turns) + 3


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says when a process began")
def test_process_that_has_ended_is_passed_over():
    """It is seen at once: also if it is not yet waited for, and if its number was given to another process."""
    mine = _ticket("a")
    boot, space, pid, began = mine.process.rsplit(" ", 3)
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as child:
        child.stdout.read()
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) is None:
            pass
        born = Path(f"/proc/{child.pid}/stat").read_text("utf-8").rpartition(")")[2].split()[19]
        zombie = mine._replace(process=f"{boot} {space} {child.pid} {born}")
        assert find_living([mine, zombie]) == [mine]

    reused = mine._replace(process=f"{boot} {space} {pid} {int(began) - 1}")
    gone = mine._replace(process=f"{boot} {space} {child.pid} 1")
    assert find_living([mine, reused, gone]) == [mine]


def test_ticket_of_another_machine_ends_by_time_only(monkeypatch):
    """A process that can't be seen from here counts as alive until its ticket ends, whatever its number is."""
    mine = _ticket("a")
    monkeypatch.setattr("memci.storage.locks._beginning", lambda _: "")
    others = [mine._replace(process=process) for process in ("", "boot pid:[1] 1 1", "boot", "a b c d", "\ud83d 1 1 1")]
    late = mine._replace(process="", expires=time.time() - 0.001)
    far = mine._replace(process="", expires=time.time() + 3 * EXPIRY_SECONDS)

    assert find_living([mine, *others, late, far]) == [mine, *others]
