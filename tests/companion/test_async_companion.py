"""The awaited companion: the same answers, and a cancellation that loses nothing."""

import asyncio
import threading

import pytest

from memci.companion import AsyncCompanion, Companion
from memci.text.interface import section

STOPPED = section("companion")["stopped"]


def test_respond_when_it_is_awaited(context, scripted):
    """The answer is that of the companion, stored."""
    companion = AsyncCompanion(Companion(context, scripted(lambda messages: "Hello there.")))

    answer = asyncio.run(companion.respond("Hi"))

    assert answer.text == "Hello there."
    assert [message["content"] for message in context.messages()] == ["Hi", "Hello there."]


def test_stream_when_it_is_awaited(context, scripted):
    """Its pieces come as the model gives them."""
    companion = AsyncCompanion(Companion(context, scripted(lambda messages: "one two three")))

    async def taken():
        async with companion.stream("Count.") as stream:
            return [piece async for piece in stream], stream

    pieces, stream = asyncio.run(taken())

    assert pieces == ["one", " two", " three"]
    assert stream.answer.text == "one two three"


def test_respond_when_it_is_cancelled(context, scripted):
    """A task that is cancelled while the model thinks keeps the message, and is cancelled then."""
    asked, answers = threading.Event(), threading.Event()

    def answer(messages):
        asked.set()
        answers.wait(10)
        return "one two three"

    companion = AsyncCompanion(Companion(context, scripted(answer)))

    async def cancelled():
        task = asyncio.ensure_future(companion.respond("Count."))
        await asyncio.to_thread(asked.wait, 10)
        task.cancel()
        task.cancel()
        await asyncio.sleep(0)
        answers.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())

    assert [message["content"] for message in context.messages()] == ["Count.", f"one\n{STOPPED}"]


def test_respond_when_the_model_fails(context, scripted, down):
    """An error of the model is raised where the answer is awaited."""
    with pytest.raises(type(down)):
        asyncio.run(AsyncCompanion(Companion(context, scripted(lambda messages: down))).respond("Hi"))

    assert list(context.messages()) == []
