"""A provider counts more tokens than memci: its error is learnt from."""

import asyncio
from contextlib import suppress

from memci.testing.adapters import played
from memci.testing.llm.server import ModelServer, Status

TOO_LONG = Status(
    400,
    error="context_length_exceeded",
    message="This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
)


def lengths_after_refusal(kind, store, play=played, *, how="say"):
    """Return how long the request was that is refused, and the one after it, of the same run or of the next.

    *how*: the name of the driver's method that asks.
    """
    with ModelServer(play) as server:
        driver = kind(store, server.base_url, 8_000)

        async def talk():
            say = getattr(driver, how)
            for number in range(9):
                await say("a", f"say {number} " + "word " * 400)
            refused = len(server.requests)
            server.fails(TOO_LONG)
            with suppress(Exception):
                await say("a", "say it " + "word " * 400)
            if len(server.requests) == refused + 1:
                await say("a", "say it again")
            return [len(str(request.messages)) for request in server.requests[refused : refused + 2]]

        lengths = asyncio.run(talk())
        driver.close()
    return lengths
