"""The whole context on Postgres, beside a plain model of it: the machine that other stores stand, too."""

import pytest

from tests.machine.chat_machine import ContextMachine
from tests.machine.test_context_machine import missed

LIVES = 5
REACHED = ("compaction", "crashes", "takeovers", "readers", "forks")
"""what a run must have met"""


@pytest.mark.slow
def test_every_invariant_holds_whatever_is_done_to_a_context(a_schema):
    """After every step all invariants hold; each life has a schema of its own."""

    class PostgresMachine(ContextMachine):
        def __init__(self):
            super().__init__()
            self.schema = a_schema()
            self.url = self.schema.__enter__()

        def place(self):
            return self.url

        def teardown(self):
            try:
                super().teardown()
            finally:
                self.schema.__exit__(None, None, None)

    assert missed(PostgresMachine, LIVES, REACHED) == []
