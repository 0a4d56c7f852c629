"""A slow server gets the time that it needs, and is asked for no more than a step can use."""

from typing import Any

import pytest
from pydantic import BaseModel

from memci.errors import ModelUnavailable
from memci.llm import Reply, Usage, ask

HI = [{"role": "user", "content": "Hi"}]


class Title(BaseModel):
    title: str


def waits(server: Any) -> list[float]:
    """Return how many seconds the client would have waited for each answer: it says so in a header."""
    return [float(request.headers["x-stainless-read-timeout"]) for request in server.requests]


def slow(clock: Any, seconds: float, completion: int) -> Any:
    """Return a script: each answer has so many tokens, and takes so many seconds."""

    def script(_: Any) -> Reply:
        clock.now += seconds
        return Reply({"role": "assistant", "content": "x"}, Usage(8, completion))

    return script


def test_timeout_grows_when_the_server_is_slow(server, chat_over, clock):
    """After an answer that came with 7 tokens a second, one of 600 tokens may take twice the time that it needs."""
    server.answers(slow(clock, 22.0, 139))
    chat = chat_over(server, max_tokens=600)

    for _ in range(3):
        chat(HI)

    assert waits(server) == [30.0, *[pytest.approx(2 * 600 / 7, rel=0.01)] * 2]


def test_timeout_stays_when_short_answers_are_quick(server, chat_over, clock):
    """What a short answer costs on its way is no pace; a fast server is given up as soon as before."""
    server.answers(slow(clock, 1.5, 2))
    chat = chat_over(server)

    for _ in range(3):
        chat(HI)

    assert waits(server) == [30.0] * 3


def test_timeout_doubles_when_the_server_never_answers(server, chat_over):
    """A server that is late gets more time, up to four times the setting; an answer sets it back."""
    chat = chat_over(server, timeout=0.05, tries=1)
    for _ in range(4):
        server.hangs()
        with pytest.raises(ModelUnavailable):
            chat(HI)

    chat.timeout.answered(500, 1.0)

    assert waits(server) == [0.05, 0.1, 0.2, 0.2]
    assert chat.timeout.seconds(5) == 0.05


def test_answer_is_bounded_by_its_step_and_by_the_chat(server, chat_over):
    """The smaller bound counts; without any, none is sent."""
    server.answers([{"title": "x"}] * 4)
    bounded, free = chat_over(server, max_tokens=20), chat_over(server)

    ask(free, HI, Title, step="title", max_tokens=50)
    ask(bounded, HI, Title, step="title", max_tokens=50)
    ask(bounded, HI, Title, step="title", max_tokens=5)
    free(HI)

    assert [request.body.get("max_tokens") for request in server.requests] == [50, 20, 5, None]


@pytest.mark.parametrize(
    ("cut", "bounds"),
    [
        ({"content": "<think>Let me see"}, [50, None, None]),
        ({"content": "", "reasoning_content": "Let me see"}, [50, None, None]),
        ({"content": '{"title": "and on and on'}, [50, 50, 50]),
    ],
)
def test_bound_of_a_step_when_the_model_thinks(server, chat, cut, bounds):
    """A model whose thoughts filled the bound is asked without it from then on; one that rambles is not."""
    server.answers([Reply({"role": "assistant", **cut}, finish="length"), {"title": "x"}, {"title": "y"}])

    ask(chat, HI, Title, step="title", max_tokens=50)
    ask(chat, HI, Title, step="title", max_tokens=50)

    assert [request.body.get("max_tokens") for request in server.requests] == bounds
