"""The whole context, on every store, beside a plain model of it.

MEMCI_EXAMPLES=2000 runs it for longer, and makes what fails small: that takes minutes, which every other run saves.
"""

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from memci import Context, EphemeralStorage
from memci.formats import FORMATS
from memci.memory import NullMemory
from memci.storage import FilesystemStorage
from tests.door import open_context
from tests.machine.chat_machine import ContextMachine

EXAMPLES = int(os.environ.get("MEMCI_EXAMPLES", "0"))
LIVES = {"EphemeralMachine": 20, "SQLiteMachine": 6, "FilesystemMachine": 6}
STEPS = settings(
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=not EXAMPLES,
    phases=[Phase.generate, Phase.shrink] if EXAMPLES else [Phase.generate],
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
REACHED = (
    "compaction",
    "unload",
    "clip",
    "gate",
    "parts that left",
    "unloads",
    "folded pages",
    "clipped messages",
    "first pages in front",
    "late results",
    "restores by pin",
    "undos",
    "pops",
    "pages open again",
    "open groups",
    "budget exceeded",
    "recalls by tool",
    "pages read by tool",
    "renderings with pending",
    "crashes",
    "takeovers",
    "readers",
    "views of the past",
    "forks",
    "forks of a turn",
    "erased pages",
    "erased entries",
    "changes of prices",
    "changes of the model",
    "syncs",
    *(f"requests in {form}" for form in FORMATS),
    *(f"turns of {form}" for form in FORMATS),
)
"""what a run must have met, in RAM, where lives are cheap. A cut in a cold cache is rare, and has tests of its own"""
_TRIES = 72
"""runs in which all of it must have been met: what is rare is missed by half of them, and from the second one on each
is another one"""
_FEW = 5
"""lives of such a run, at least: the first one of each does next to nothing"""
ON_DISK = ("compaction", "crashes", "takeovers", "flipped bytes", "flips that are told")


class EphemeralMachine(ContextMachine):
    """The machine in RAM."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = EphemeralStorage()

    def place(self) -> Any:
        """Return one store for the whole run."""
        return self.storage


class DiskMachine(ContextMachine):
    """The machine on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        (self.folder / "store").mkdir()

    def teardown(self) -> None:
        """Delete the files."""
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


class SQLiteMachine(DiskMachine):
    """The machine on one SQLite file."""

    def place(self) -> Any:
        """Return the path of one file for the whole run: each handle has its own connection."""
        return self.folder / "store" / "context.db"

    def opened_copy(self, copy: Path, options: dict[str, Any]) -> Context:
        """Open the copied file."""
        return open_context(copy / "context.db", id=self.id, memory=NullMemory(), **options)


class FilesystemMachine(DiskMachine):
    """The machine on a folder."""

    def __init__(self) -> None:
        super().__init__()
        self.stores: list[FilesystemStorage] = []

    def place(self) -> Any:
        """Return a new store on the same folder."""
        self.stores.append(FilesystemStorage(self.folder / "store" / "agent"))
        return self.stores[-1]

    def opened_copy(self, copy: Path, options: dict[str, Any]) -> Context:
        """Open the copied folder."""
        self.stores.append(FilesystemStorage(copy / "agent"))
        return open_context(self.stores[-1], id=self.id, memory=NullMemory(), **options)

    def teardown(self) -> None:
        """Close all stores."""
        try:
            super().teardown()
        finally:
            for storage in self.stores:
                storage.close()


def missed(machine: type[ContextMachine], lives: int, reached: tuple[str, ...]) -> list[str]:
    """Run *machine* for so many *lives*, then for a third as many at a time, until it met all of *reached*.

    What it did not meet after all is returned: a machine that never gets there proves nothing.
    """
    seen = ContextMachine.seen = Counter()
    lives = EXAMPLES or lives
    for number in range(_TRIES):
        chosen = settings(STEPS, max_examples=max(_FEW, lives // 3) if number else lives)
        run_state_machine_as_test(machine, settings=settings(chosen, derandomize=chosen.derandomize and not number))
        if all(seen[what] for what in reached):
            break
    return [what for what in reached if not seen[what]]


@pytest.mark.slow
@pytest.mark.parametrize("machine", [EphemeralMachine, SQLiteMachine, FilesystemMachine])
def test_every_invariant_holds_whatever_is_done_to_a_context(machine: type[ContextMachine]) -> None:
    """On each store, after every step, all invariants hold; and the run met everything that a context can do."""
    reached = REACHED if machine is EphemeralMachine else ON_DISK

    assert missed(machine, LIVES[machine.__name__], reached) == []
