"""fork(): a child gets HandlePoisoned or works, whatever the threads of its parent were doing, and never hangs."""

import _imp
import importlib.abc
import importlib.machinery
import os
import re
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

import memci
from memci import Context, SQLiteStorage, workers
from memci.memory.repository import home
from memci.workers import cached_property, guard_lock
from tests.faults import forks
from tests.faults.forks import FINE, POISONED

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
LIMIT = 20
"""seconds after which a child is killed"""
FORKS = int(os.environ.get("MEMCI_FORKS", "3"))
"""children of each kind while others call"""
ended = partial(forks.ended, within=LIMIT)


def use(path, name):
    """What a worker of a server does with a store of its own."""
    with Context.open(path, name, owner="o", window=3_000) as context:
        context.append_turn("The ferry leaves at nine.", {"role": "assistant", "content": "Noted."})
        context.append_turn("Thanks.")
        context.archive()
        context.search_memory("ferry")


@pytest.fixture
def opened(tmp_path):
    with closing(SQLiteStorage(tmp_path / "a.db")) as store, Context.open(store, "a", window=3_000) as context:
        context.append_turn("Hello.")
        yield context


class Holder:
    """A thread that holds *lock* within the block."""

    def __init__(self, lock):
        self._lock, self._held, self._enough = lock, threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._hold)

    def _hold(self):
        with self._lock:
            self._held.set()
            self._enough.wait(LIMIT)

    def __enter__(self):
        self._thread.start()
        assert self._held.wait(LIMIT)

    def __exit__(self, *_):
        self._enough.set()
        self._thread.join()


@pytest.mark.parametrize("whose", ["context", "store", "memories"])
def test_child_of_a_process_whose_thread_never_lets_go(whose, opened, tmp_path, monkeypatch):
    """The fork does not wait for ever, and the child has the locks free."""
    monkeypatch.setattr(workers, "FORK_SECONDS", 0.01)
    lock = {"context": opened._lock, "store": opened._storage._lock, "memories": home._lock}[whose]
    with Holder(lock):
        assert ended(opened.render) == POISONED
        assert ended(opened.close) == FINE
        assert ended(lambda: use(tmp_path / "a.db", whose)) == FINE

    opened.append_turn("The parent goes on.")


def test_call_that_never_ends_takes_no_time_from_a_store(opened, monkeypatch):
    """SQLite's own locks are free only if no thread is in the store: a child would wait for them for ever."""
    monkeypatch.setattr(workers, "FORK_SECONDS", 0.05)
    waited = []

    class Watched:
        """A lock of a store that tells how long the fork would wait for it."""

        def acquire(self, timeout):
            waited.append(timeout)
            return True

        def release(self):
            pass

    watched = guard_lock(Watched(), "store")
    with Holder(opened._lock):
        assert ended(opened.render) == POISONED

    assert waited[0] > 0, watched


def test_child_that_was_forked_while_others_call(opened, tmp_path):
    """The fork waits until no call is under way, so SQLite's own locks and those of imports are free."""
    done = threading.Event()

    def call(number):
        with Context.open(tmp_path / "a.db", f"t{number}", owner="o", window=3_000) as context:
            while not done.is_set():
                context.append_turn("word " * 40, {"role": "assistant", "content": "ok " * 20})

    threads = [threading.Thread(target=call, args=(number,)) for number in range(2)]
    for each in threads:
        each.start()
    try:
        for number in range(FORKS):
            assert ended(opened.render) == POISONED
            assert ended(lambda number=number: use(tmp_path / "a.db", f"child-{number}")) == FINE
    finally:
        done.set()
        for each in threads:
            each.join()


class Slow(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module, or loads it, as slowly as it is told."""

    def __init__(self, at):
        self._at, self.began, self.enough = at, threading.Event(), threading.Event()

    def find_spec(self, name, path, target=None):
        if name != "memci.slow":
            return None
        self._wait("found")
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        self._wait("loaded")
        module.number = 7

    def _wait(self, at):
        if at == self._at:
            self.began.set()
            self.enough.wait(LIMIT)


@pytest.mark.parametrize("at", ["found", "loaded"])
def test_child_of_a_process_whose_thread_imports(at, opened, monkeypatch):
    """The fork waits until a module of memci is loaded, longer than for a call: nobody could load it in the child."""
    slow = Slow(at)
    monkeypatch.setattr(workers, "FORK_SECONDS", 0.01)
    monkeypatch.setattr("sys.meta_path", [slow, *sys.meta_path])
    importing = threading.Thread(target=importlib.import_module, args=("memci.slow",))
    importing.start()
    assert slow.began.wait(LIMIT)
    threading.Timer(0.2, slow.enough.set).start()
    try:
        assert ended(lambda: importlib.import_module("memci.slow").number + 1) == FINE
    finally:
        slow.enough.set()
        importing.join()
        del sys.modules["memci.slow"]
    assert not _imp.lock_held()


def test_fork_within_a_call(opened, tmp_path):
    """A callback may fork: parent and child both leave the call, and the lock is free after it."""
    how = []
    opened.on_event = lambda _event: how.append(ended(lambda: use(tmp_path / "b.db", "b")))
    opened.append_turn("Ahoy. " * 40, {"role": "assistant", "content": "ok"})
    opened.append_turn("Next.")
    opened.archive(keep=0)

    assert how
    assert set(how) == {FINE}
    with Holder(opened._lock):  # another thread can take it
        pass


def test_free_lock_of_another_thread():
    lock = guard_lock(threading.Lock())
    with Holder(lock):
        assert ended(lambda: lock.acquire(timeout=LIMIT + 1)) == FINE
        assert lock.locked()


def test_child_of_a_process_whose_thread_computes_a_property(opened):
    """A child computes the same property of another object: no lock of the class was copied as taken."""
    began, enough = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            began.set()
            enough.wait(LIMIT)
            return 7

    computing = threading.Thread(target=lambda: Slow().value)
    computing.start()
    assert began.wait(LIMIT)
    try:
        assert ended(lambda: enough.set() or Slow().value) == FINE
    finally:
        enough.set()
        computing.join()


def test_no_module_has_properties_with_locks():
    sources = {path.name: path.read_text(encoding="utf-8") for path in Path(memci.__file__).parent.rglob("*.py")}

    assert [
        name
        for name, text in sources.items()
        if re.search(r"^from functools import .*cached_property", text, re.MULTILINE)
    ] == []
