"""Machine steps: the context machine (`tests/machine`) for as long as there is time, with fresh seeds.

    seed 7 ──▶ 40 examples × 30 steps on each store ──▶ seed 8 ──▶ …

This module knows nothing of what the machine does.
"""

import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

from .tally import Order, Tally, Tell

MACHINE = Path(__file__).parent.parent / "machine"
EXAMPLES = 12
STEPS = 30


class MachineSteps:
    """Drives the machine with one seed after another."""

    name = "machine"
    unit = "machine steps"
    short = 3_000
    long = 500_000

    def run(self, order: Order, tell: Tell) -> Tally:
        """Take steps until *order* is done, and return how many, and which seeds failed."""
        tally = Tally(self.name, self.unit)
        until = monotonic() + order.seconds
        seeds = count(order.seed)
        with ProcessPoolExecutor(order.workers) as pool:
            running = [pool.submit(_batch, next(seeds), until) for _ in range(order.workers)]
            while running:
                done = running.pop(0)
                steps, violations = done.result()
                tally.runs += sum(steps.values())
                tally.counts.update(steps)
                tally.violations += violations
                tell(tally.runs)
                if tally.runs < order.aim and monotonic() < until:
                    running.append(pool.submit(_batch, next(seeds), until))
        return tally


def _batch(seed: int, until: float) -> tuple[Counter[str], list[str]]:
    """Return the steps on each store, and what failed, with *seed*."""
    if str(MACHINE) not in sys.path:
        sys.path.insert(0, str(MACHINE))
    import test_context_machine as machines
    from hypothesis import HealthCheck, settings
    from hypothesis import seed as seeded
    from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

    how = settings(
        max_examples=EXAMPLES,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    machines.ContextMachine.seen = Counter()
    steps: Counter[str] = Counter()
    violations = []
    for kind in machines.MACHINES:
        if monotonic() > until:
            break
        counted = _counting(kind, steps)
        machine: type[RuleBasedStateMachine] = seeded(seed)(counted)
        try:
            run_state_machine_as_test(machine, settings=how)
        except BaseException as error:  # a failing example, whatever it raises
            notes = " ".join(getattr(error, "__notes__", []))[:600]
            violations.append(f"{kind.__name__}, seed {seed}: {error!r:.600} {notes}")
    return steps, violations


def _counting(kind: Any, steps: Counter[str]) -> Any:
    """Return *kind* with its steps counted."""

    class Counting(kind):
        def check_invariants(self, *args: Any, **kw: Any) -> None:
            steps[kind.__name__] += 1
            super().check_invariants(*args, **kw)

    Counting.__name__ = kind.__name__
    return Counting
