"""A forked child that hangs is found out. `make faults` forks hundreds in all patterns."""

import itertools
import signal
import threading
import time

from tests.faults import worker
from tests.faults.forks import FINE, HUNG, _wrong, ended


def test_child_that_stands_still_hangs_and_one_that_works_does_not():
    assert _wrong(ended(threading.Event().wait, within=0.1), FINE) == "hung"
    assert ended(lambda: sum(range(1_000_000))) == FINE


def test_child_that_handles_signals_of_its_parent_is_killed_all_the_same():
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    try:
        assert _wrong(ended(threading.Event().wait, within=0.1), FINE) == "hung"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_child_that_was_killed_for_hanging_is_told():
    assert _wrong(HUNG, FINE) == "hung"
    assert _wrong(3, FINE) == "ended with 3, not 0"
    assert _wrong(FINE, FINE) == ""


def test_child_that_waits_for_its_turn_is_not_ended(monkeypatch):
    """The other harnesses end one that uses much CPU, or stands still for much longer."""
    monkeypatch.setattr(worker, "_HANGS_SECONDS", 0.03)

    assert worker.forked(lambda: time.sleep(0.1)) == 0
    assert worker.forked(lambda: all(itertools.count(1))) == signal.SIGPROF
    assert worker.forked(threading.Event().wait) == signal.SIGALRM
