"""A consolidation that loses or repeats something is found out. `make faults` kills good ones."""

import gc
import shutil
from pathlib import Path

import pytest

from memci.memory.consolidation import event_detection
from memci.memory.repository.job_queue import JobQueue
from tests.faults.bombs import Bomb
from tests.faults.consolidating import (
    Case,
    Clock,
    consolidated,
    exploded,
    known,
    stored,
    template,
)
from tests.faults.worker import room


@pytest.mark.slow
def test_job_that_goes_before_it_is_done_is_noticed(monkeypatch):
    """A queue that takes a job out when it is claimed is found out: what was under way is never done."""
    lines = known("sqlite").firsts

    claim = JobQueue.claim

    def taken(queue, now):
        job = claim(queue, now)
        if job is not None:
            with queue._store.change():
                queue._store.execute("DELETE FROM memory_job WHERE id = ?", job.id)
        return job

    monkeypatch.setattr(JobQueue, "claim", taken)
    found = (each for line in lines[len(lines) // 4 :: 40] for each in exploded(Case("sqlite", "killed", line))[1])

    assert any("not at all" in violation for violation in found)


@pytest.mark.slow
def test_step_in_two_transactions_is_noticed(monkeypatch):
    """A step that keeps the half of what it found, and is done again, is found out: its events are there twice."""
    keep, bomb, halfway = event_detection.keep_profile, Bomb(), []

    def halves(owner, *args):
        with owner.store.change() as connection:
            connection.execute("COMMIT")
            connection.execute("BEGIN IMMEDIATE")
        halfway.append(bomb.lines)
        return keep(owner, *args)

    known("sqlite")
    monkeypatch.setattr(event_detection, "keep_profile", halves)
    (
        gc.collect(),
        gc.collect(),
    )  # a store that was dropped before would be closed in the middle, and its lines be counted
    with room() as folder:
        shutil.copytree(template("sqlite"), folder, dirs_exist_ok=True)
        bomb.around(lambda: consolidated(stored("sqlite", Path(folder)), Clock()))
    gc.collect(), gc.collect()
    found = (each for line in tuple(halfway) for each in exploded(Case("sqlite", "killed", line + 5))[1])

    assert any("known twice" in violation for violation in found)
