"""A server is asked for no more than a step can use."""

import pytest
from pydantic import BaseModel

from memci.llm import Reply, ask

HI = [{"role": "user", "content": "Hi"}]


class Title(BaseModel):
    title: str


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
