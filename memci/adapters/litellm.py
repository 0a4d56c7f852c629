"""LiteLLM: the client of memci's loop for every model that LiteLLM can call.

    context = Context.open("agent.db", "alice", system="Be brief.", window=32_000)
    agent = Agent(litellm(model="anthropic/claude-sonnet-4-5"), context, tools=[weather])
    agent.run("What is the weather in Oslo?")

The loop is `memci.Agent`. The message of an answer is stored with its thoughts and their signatures, without
the fields that LiteLLM adds for its own use.
"""

from functools import partial
from typing import Any

import litellm as library
from openai.types.chat import ChatCompletion

from .clients import Client

_ADDED = ("provider_specific_fields", "index")


def litellm(router: Any = library, *, asynchronous: bool = False, **given: Any) -> Client:
    """Wrap LiteLLM; each call gets the arguments *given*, which must contain `model`.

    Args:
        router: A `litellm.Router`, which chooses among deployments; default: each call goes to the model's provider.
        asynchronous: Whether the agent is run by `arun` and `astream`.
        given: Arguments of `litellm.completion`: `api_key`, `api_base`, `temperature`, `num_retries`, …
    """

    def now(**request: Any) -> ChatCompletion:
        return _kept(router.completion(**request))

    async def later(**request: Any) -> ChatCompletion:
        return _kept(await router.acompletion(**request))

    call = router.acompletion if asynchronous else router.completion
    streamed = partial(call, stream=True, stream_options={"include_usage": True}, **given)
    return Client("openai_chat", partial(later if asynchronous else now, **given), streamed, StreamedCompletion)


class StreamedCompletion:
    """An answer that LiteLLM itself adds up from the events of its stream."""

    ended = True  # LiteLLM raises an error if the stream is cut

    def __init__(self) -> None:
        self._events: list[Any] = []

    def add(self, event: Any) -> str:
        """Add the next *event*, and return the text that it adds."""
        self._events.append(event)
        return (event.choices[0].delta.content or "") if event.choices else ""

    @property
    def whole(self) -> ChatCompletion:
        """The answer so far."""
        return _kept(library.stream_chunk_builder(self._events))


def _kept(reply: Any) -> ChatCompletion:
    """Return *reply* as an answer of Chat Completions, without the fields that LiteLLM adds."""
    found = reply.model_dump(exclude_none=True)
    message = {key: value for key, value in found["choices"][0]["message"].items() if key not in _ADDED}
    for call in message.get("tool_calls", ()):
        for name in _ADDED:
            call.pop(name, None)
    choice = {**found["choices"][0], "message": {"content": None, **message}}
    return ChatCompletion.model_validate({**found, "choices": [choice]})
