"""memci.llm.AsyncChat over a real socket: the same policy as for Chat, awaited."""

import asyncio
import contextlib
import socket
import threading

import pytest
from pydantic import BaseModel

from memci.errors import AnswerRejected, ModelRefused, ModelUnavailable
from memci.llm import AsyncChat, Reply, Spent, Usage, ask_async
from memci.testing.llm.faults import Cut, Hang, Reset, Status
from memci.testing.llm.server import ModelServer

HI = [{"role": "user", "content": "Hi"}]
TEXT = "你好 🌍 — it’s a “test”\u2028of é"


class Title(BaseModel):
    title: str


@pytest.fixture
def run(server, clock):
    """Run a coroutine of a chat over the server, in a loop of its own."""

    def running(work, **settings):
        async def inside():
            given = {"base_url": server.base_url, "sleep": clock.sleep_async, "random": lambda: 1.0, **settings}
            async with AsyncChat("test-model", **given) as chat:
                return await work(chat)

        return asyncio.run(inside())

    return running


def test_answer_comes_back_exactly(server, run):
    """Text of any script comes back character for character, with what it cost."""
    server.answers([Reply({"role": "assistant", "content": TEXT}, Usage(9, 4, 2))])

    async def work(chat):
        reply = await chat(HI, step="page")
        return reply, chat.ledger.steps

    reply, steps = run(work)

    assert reply == Reply({"role": "assistant", "content": TEXT}, Usage(9, 4, 2), "stop", "test-model")
    assert steps == {"page": Spent(calls=1, prompt=9, completion=4, cached=2)}


def test_failures_are_tried_again_as_for_a_chat(server, run, clock):
    """The policy is the same one: what passes is tried again, what lasts is not."""
    server.fails(Status(401), Status(503), Reset())
    server.answers(["ok"])

    async def work(chat):
        with pytest.raises(ModelRefused):
            await chat(HI)
        return await chat(HI)

    assert run(work).text == "ok"
    assert clock.slept == [0.5, 1.0]


def test_hang_ends_by_the_timeout(server, run):
    """A server that sends nothing but blanks is given up after the timeout."""
    server.fails(Hang(blanks=True))

    async def work(chat):
        with pytest.raises(ModelUnavailable, match="no answer in time"):
            await chat(HI)

    run(work, timeout=0.2, tries=1)


def test_header_without_an_end_ends_by_the_timeout(run):
    """A server that never ends its header is given up, too: the timeout is that of the whole try."""
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def trickle():
            connection, _ = listening.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
                while not done.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=trickle)
        thread.start()

        async def work(chat):
            with pytest.raises(ModelUnavailable, match="no answer in time"):
                await asyncio.wait_for(chat(HI), 5)

        try:
            run(work, base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", timeout=0.2, tries=1)
        finally:
            done.set()
            thread.join()


def test_cancelled_call_is_cancelled(server, run):
    """A call that is cancelled ends at once, counts as no failure, and the chat goes on."""
    hang = server.hangs()
    server.answers(["ok", "ok"])

    async def work(chat):
        call = asyncio.create_task(chat(HI))
        await asyncio.to_thread(hang.reached.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        hang.release()
        return await chat(HI), chat.ledger.total.failed

    reply, failed = run(work)

    assert reply.text == "ok"
    assert failed == 0


@pytest.mark.parametrize("chunk", [None, 1])
def test_stream_is_the_text(run, clock, chunk):
    """Pieces joined are the text, and the reply has it whole."""
    with ModelServer([Reply({"role": "assistant", "content": TEXT}, Usage(9, 4))], chunk=chunk) as server:

        async def work(chat):
            stream = chat.stream(HI)
            return [piece async for piece in stream], stream.reply

        pieces, reply = run(work, base_url=server.base_url)

    assert len(pieces) > 2
    assert "".join(pieces) == reply.text == TEXT
    assert reply.usage == Usage(9, 4)


def test_cut_stream_raises_with_what_came(server, run):
    """A stream that stops in the middle raises, and says what had come."""
    server.answers([Cut("Once upon a time", after=9)])

    async def work(chat):
        stream = chat.stream(HI)
        pieces = []
        with pytest.raises(ModelUnavailable) as raised:
            async for piece in stream:
                pieces.append(piece)  # noqa: PERF401 -- what came before it raises
        with pytest.raises(ModelUnavailable):
            _ = stream.reply
        return "".join(pieces), raised.value.partial, chat.ledger.total.failed

    assert run(work) == ("Once upon", "Once upon", 1)


def test_stream_is_tried_again_before_its_first_piece(server, run, clock):
    """As long as nothing was said, a stream is tried again."""
    server.fails(Status(500), Reset())
    server.answers(["ok"])

    async def work(chat):
        return [piece async for piece in chat.stream(HI)]

    assert run(work) == ["ok"]
    assert clock.slept == [0.5, 1.0]


def test_stream_that_is_left_is_closed(server, run):
    """Who stops listening closes the stream, and the chat goes on."""
    server.answers(["one two three four", "ok"])

    async def work(chat):
        async with chat.stream(HI) as stream:
            first = await anext(stream)
        return first, (await chat(HI)).text, chat.ledger.total

    first, text, total = run(work)

    assert (first, text) == ("one ", "ok")
    assert (total.calls, total.failed) == (2, 0)


def test_stream_that_hangs_ends_by_the_timeout(server, run):
    """A stream of nothing but blanks is given up after the timeout."""
    server.fails(Hang(blanks=True))

    async def work(chat):
        with pytest.raises(ModelUnavailable, match="no answer in time"):
            await anext(chat.stream(HI))

    run(work, timeout=0.2, tries=1)


def test_calls_run_side_by_side(server, run):
    """Several calls of one loop each get the answer to their own question."""
    server.answers(lambda request: f"You said {request.text}")

    async def work(chat):
        questions = [[{"role": "user", "content": f"{number}"}] for number in range(8)]
        return [reply.text for reply in await asyncio.gather(*map(chat, questions))]

    assert run(work) == [f"You said {number}" for number in range(8)]


def test_asking_is_awaited(server, run):
    """An answer of a type is asked for as by `ask`: again after one that is none, at most twice."""
    server.answers(["no", {"title": "Violins"}, "no", "no", "no"])

    async def work(chat):
        title = await ask_async(chat, HI, Title, step="title")
        with pytest.raises(AnswerRejected):
            await ask_async(chat, HI, Title, step="title")
        return title, chat.ledger.steps["title"].rejected

    assert run(work) == (Title(title="Violins"), 4)
    assert len(server.requests) == 5
