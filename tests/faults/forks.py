"""Forks: children of a busy process use what they inherited, or a store of their own, in each way that the docs name.

    parent    two threads append, one opens contexts and searches, the worker feeds the memory and consolidates
    child     a context, a store or a memory that it inherited (a server that preloads)   HandlePoisoned
              a store that it makes after the fork (a hook of the server)                  works
              multiprocessing's Process and Pool, a ProcessPoolExecutor                    work

    python -m tests.faults --only forks                 20 children; --tier long: 500

A child that uses no CPU for long is killed: it hung. One that waits for its turn on a busy machine did not. Each
process that forks is a fresh one, so that modules are loaded while it does.
"""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic

from memci import Context, SQLiteStorage
from memci.errors import HandlePoisoned, StorageBusy

from .tally import Order, Tally, Tell
from .worker import room

HANGS_SECONDS = 40
"""seconds without CPU after which a child is killed: longer than a fork waits for an import, or a call for a store"""
BATCH = 20
"""children of one process"""
FINE, POISONED, OTHER = 0, 2, 3
HUNG = -signal.SIGALRM
"""how a child ends that was killed for hanging: no other code says so"""


def use(path: str, name: str) -> None:
    """Do what a worker of a server does with a store of its own. On a full machine it may find the store busy."""
    with (
        suppress(StorageBusy),
        closing(SQLiteStorage(path)) as store,
        Context.open(store, name, owner="o", window=3_000) as context,
    ):
        context.append_turn("The ferry leaves at nine.", {"role": "assistant", "content": "Noted."})
        context.append_turn("Thanks.")
        context.archive()
        context.search_memory("ferry")


def hung(done: Callable[[], bool], children: Callable[[], Iterable[int | None]], within: float = HANGS_SECONDS) -> bool:
    """Wait until *done*; return whether the processes of *children* stood still for *within* seconds, or never end."""
    spent, begun = -1, monotonic()
    since = begun
    while not done():
        now = sum(_ticks(each) for each in children() if each is not None)
        if now != spent:
            spent, since = now, monotonic()
        if monotonic() - since > within or monotonic() - begun > 20 * within:
            return True
        threading.Event().wait(0.005)
    return False


def _ticks(process: int) -> int:
    """Return the CPU that *process* used, in ticks; 0 where the system does not tell."""
    try:
        told = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return 0
    return sum(map(int, told.rpartition(")")[2].split()[11:13]))


def ended(act: Callable[[], object], within: float = HANGS_SECONDS) -> int:
    """Return how a forked child ends that does *act*: its exit code, `HUNG`, or minus the signal that killed it.

    *within*: seconds without CPU after which it is killed: it has to end by itself. It inherits handlers of signals,
    so that only SIGKILL is sure to end it.
    """
    child = os.fork()
    if not child:
        code = OTHER
        try:
            act()
            code = FINE
        except HandlePoisoned:
            code = POISONED
        finally:
            os._exit(code)
    if hung(
        lambda: os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None, lambda: [child], within
    ):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return HUNG
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Parent:
    """A process with a store in *folder*, whose threads use it."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "a.db")
        self.store = SQLiteStorage(self.path)
        self.context = Context.open(self.store, "parent", owner="o", window=3_000)
        self.context.append_turn("Hello.")
        self._done = threading.Event()
        acts = (self._append, self._append, self._search)
        self._threads = [threading.Thread(target=act, args=(number,)) for number, act in enumerate(acts)]
        for each in self._threads:
            each.start()

    def _append(self, number: int) -> None:
        with Context.open(self.store, f"t{number}", owner="o", window=3_000) as context:
            while not self._done.wait(0.02):
                context.append_turn("word " * 40, {"role": "assistant", "content": "ok " * 20})

    def _search(self, number: int) -> None:
        while not self._done.wait(0.02):
            use(self.path, f"s{number}")

    def close(self) -> None:
        """Let the threads end."""
        self._done.set()
        for each in self._threads:
            each.join()
        self.context.close()
        self.store.close()

    # -- what children do; each returns what went wrong

    def inherited_context(self, _: str) -> str:
        """A child renders a context of its parent."""
        return _wrong(ended(self.context.render), POISONED)

    def inherited_store(self, name: str) -> str:
        """A server preloads: a child opens a context in the store of its parent."""
        return _wrong(ended(lambda: Context.open(self.store, name, owner="o", window=3_000)), POISONED)

    def inherited_memory(self, _: str) -> str:
        """A child searches the memory of its parent."""
        return _wrong(ended(lambda: self.context.search_memory("ferry")), POISONED)

    def poisoned_then_own(self, name: str) -> str:
        """A child closes what it inherited, and makes a store of its own."""

        def act() -> None:
            with suppress(HandlePoisoned):
                self.context.close()
            use(self.path, name)

        return _wrong(ended(act), FINE)

    def own_store(self, name: str) -> str:
        """A hook of the server makes the store after the fork."""
        return _wrong(ended(lambda: use(self.path, name)), FINE)

    def process(self, name: str) -> str:
        """`multiprocessing.Process`, forked."""
        child = multiprocessing.get_context("fork").Process(target=use, args=(self.path, name))
        child.start()
        if hung(lambda: child.exitcode is not None, lambda: [child.pid]):
            child.kill()
            return "hung"
        return _wrong(child.exitcode or FINE, FINE)

    def pool(self, name: str) -> str:
        """`multiprocessing.Pool`, forked, of one process."""
        with multiprocessing.get_context("fork").Pool(1) as pool:
            doing = pool.apply_async(use, (self.path, name))
            if hung(doing.ready, _children):
                return "hung"
            doing.get()
        return ""

    def executor(self, name: str) -> str:
        """`ProcessPoolExecutor`, forked, of one process."""
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
            doing = pool.submit(use, self.path, name)
            if hung(doing.done, _children):
                for child in multiprocessing.active_children():
                    child.kill()
                return "hung"
            doing.result()
        return ""


PATTERNS = (
    Parent.inherited_context,
    Parent.inherited_store,
    Parent.inherited_memory,
    Parent.poisoned_then_own,
    Parent.own_store,
    Parent.process,
    Parent.pool,
    Parent.executor,
)


def _children() -> list[int | None]:
    return [each.pid for each in multiprocessing.active_children()]


def _wrong(code: int, expected: int) -> str:
    if code == HUNG:
        return "hung"
    return "" if code == expected else f"ended with {code}, not {expected}"


def batch(seed: int, size: int) -> tuple[Counter[str], list[str]]:
    """Fork *size* children of this process; return how many did what, and what went wrong."""
    warnings.simplefilter("ignore", DeprecationWarning)  # forks of a process with threads: that is what this is about
    rng, counts, wrong = random.Random(seed), Counter[str](), list[str]()
    with room() as folder:
        parent = Parent(Path(folder))
        try:
            for number in range(size):
                pattern = PATTERNS[(seed + number) % len(PATTERNS)]
                threading.Event().wait(rng.uniform(0, 0.01))
                found = pattern(parent, f"child-{number}")
                counts[pattern.__name__] += 1
                if found:
                    wrong.append(f"{pattern.__name__}, seed {seed}, child {number}: {found}")
        finally:
            parent.close()
    return counts, wrong


class Forks:
    """Forks busy processes."""

    name = "forks"
    unit = "forked children"
    short = 20
    long = 500

    def run(self, order: Order, tell: Tell) -> Tally:
        """Fork children until *order* is done."""
        tally, until, seed = Tally(self.name, self.unit), monotonic() + order.seconds, order.seed
        while tally.runs < order.aim and monotonic() < until:
            size = min(BATCH, order.aim - tally.runs)
            code = f"from {__name__} import batch; import json; print(json.dumps(batch({seed}, {size})))"
            done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
            counts, wrong = json.loads(done.stdout)
            tally.counts.update(counts)
            tally.violations += wrong
            tally.runs += size
            seed += size
            tell(tally.runs)
        return tally
