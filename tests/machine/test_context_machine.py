"""The whole context, on every store, beside a plain model of it. MEMCI_EXAMPLES=2000 runs it for longer."""

import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from chat_machine import ContextMachine
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from memci import EphemeralStorage

EXAMPLES = int(os.environ.get("MEMCI_EXAMPLES", "0"))
STEPS = settings(
    max_examples=EXAMPLES or 50,
    stateful_step_count=30,
    deadline=None,
    database=None,
    derandomize=not EXAMPLES,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
REACHED = (
    "edition",
    "unload",
    "clip",
    "splits",
    "unloads",
    "folded pages",
    "clipped messages",
    "late results",
    "restores by pin",
    "undos",
    "open groups",
    "budget exceeded",
    "recalls by tool",
    "pages read by tool",
    "renderings with pending",
)
"""what a run must have met: a machine that never gets there proves nothing"""


class EphemeralMachine(ContextMachine):
    """The machine in RAM."""

    def __init__(self) -> None:
        super().__init__()
        self.storage = EphemeralStorage()

    def place(self) -> Any:
        """Return one store for the whole run."""
        return self.storage


class SQLiteMachine(ContextMachine):
    """The machine on disk."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def place(self) -> Any:
        """Return the path of one file for the whole run."""
        return self.folder / "context.db"

    def teardown(self) -> None:
        """Delete the file."""
        try:
            super().teardown()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)


MACHINES = (EphemeralMachine, SQLiteMachine)


@pytest.mark.slow
def test_every_invariant_holds_whatever_is_done_to_a_context() -> None:
    """On each store, after every step, all invariants hold; and the runs met everything that a context can do."""
    seen = ContextMachine.seen = Counter()

    for machine in MACHINES:
        run_state_machine_as_test(machine, settings=STEPS)

    assert [what for what in REACHED if not seen[what]] == []
