"""What the tests of AsyncContext share: a store with a gate, and what it holds. It tests nothing."""

import asyncio
import threading

from memci import EphemeralStorage

from ..context.kit import again, words

GIVEN = {"id": "alice", "window": 4_000, "counter": words, "nonce": "00000000"}


class Gated(EphemeralStorage):
    """A store whose commits wait at a gate, while it is shut; `entered` tells that one is there."""

    def __init__(self):
        super().__init__()
        self.entered = threading.Semaphore(0)
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, transition):
        self.entered.release()
        assert self.gate.wait(30)
        return super().commit(transition)

    async def reached(self):
        """Wait until a commit is at the gate."""
        while not self.entered.acquire(blocking=False):  # noqa: ASYNC110 -- what a thread does is seen by looking
            await asyncio.sleep(0)


def said(storage):
    return [each["content"] for each in again(storage).messages()]
