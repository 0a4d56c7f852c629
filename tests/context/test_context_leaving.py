"""Leaving without `close()`: the process ends well while the worker is busy, a dropped context leaves nothing open."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from memci import Context
from memci.storage import FilesystemStorage

from .kit import turn

FILES = Path("/proc/self/fd")

# Each child is forked when all is imported, keeps the worker busy (numpy, SQLite, the tokenizer), and returns.
_CHILDREN = """
import os, sys, time
from memci import Context, EphemeralStorage

def busy():
    context = Context.open(EphemeralStorage(), "a", window=2_000, clock=None)
    for number in range(8):
        said = f"On day {number} I moved to Oslo, to house {number} of Ann, and got married. "
        context.append_turn(said * 4, {"role": "assistant", "content": f"I see: Oslo, day {number}. " * 10})
    return context

busy().flush()
for number in range(int(sys.argv[1])):
    child = os.fork()
    if not child:
        context = busy()
        time.sleep(0.05 + 0.004 * (number % 20))
        sys.exit()
    print(os.waitpid(child, 0)[1], flush=True)  # a child has a copy of what is not written yet
"""

# What is registered first runs last.
_ENDLESS = """
import atexit, threading
atexit.register(lambda: print([thread.name for thread in threading.enumerate()]))
from memci.workers import lock_worker, model_worker, worker, yield_to_calls

class Endless:
    touched = patience = 0.0
    def __init__(self):
        self.began = threading.Event()
    def step(self):
        self.began.set()
        while True:
            yield_to_calls()

steps = [Endless(), Endless(), Endless()]
for each, on in zip(steps, (worker, model_worker, lock_worker)):
    on.submit(each)
    each.began.wait()
"""


def run(program, *arguments):
    """What *program* prints, in lines."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split("\n")[:-1]


def open_files():
    """How many files this process has open."""
    return sum(1 for _ in FILES.iterdir())


def test_threads_are_joined_when_the_process_ends():
    """A step that would never end stops at its next yield, and no thread of ours runs while the interpreter ends."""
    assert run(_ENDLESS) == ["['MainThread']"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_process_that_leaves_while_the_worker_is_busy_ends_well():
    """A thread that is in native code while the interpreter ends would abort the process."""
    assert run(_CHILDREN, "4") == ["0"] * 4


@pytest.mark.skipif(not FILES.is_dir(), reason="only Linux lists what a process has open")
def test_context_that_is_dropped_leaves_no_file_open(tmp_path):
    """Of contexts that were never closed, with a path, a store, a lock or a memory, no file stays open."""

    def use(number):
        store = FilesystemStorage(tmp_path / "agent") if number % 4 == 0 else tmp_path / "agent.db"
        context = Context.open(store, f"{number % 8}", window=4_000, clock=None, wait=20 * (number < 8))
        if number < 8:
            context.append_turn(*turn(number))
        if number % 3 == 0:
            context.search_memory("question")

    for number in range(8):
        use(number)
    gc.collect(), gc.collect()
    before = open_files()

    for number in range(8, 56):  # twice each kind of use
        use(number)
    gc.collect()

    assert open_files() <= before
