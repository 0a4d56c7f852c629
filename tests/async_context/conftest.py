"""A loop that is listened to. It tests nothing."""

import asyncio
import gc

import pytest


@pytest.fixture
def quiet():
    """Fail if the loop is told of an exception that nobody took."""
    told = []

    def run(main):
        async def watched():
            asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
            return await main

        made = asyncio.run(watched())
        gc.collect()
        assert told == []
        return made

    return run
