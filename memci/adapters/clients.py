"""The plain clients of OpenAI, Anthropic and Google in one form: how each is called, whole and streamed.

    openai_chat(OpenAI(), model="gpt-4o-mini")          anthropic(Anthropic(), model="…", max_tokens=4_096)
    openai_responses(OpenAI(), model="gpt-4o-mini")     gemini(genai.Client(), model="…")

Each call gets the other arguments, too. Asynchronous clients are wrapped in the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..formats.streams import streamed


@dataclass(frozen=True)
class Client:
    """A provider's client: how it is called, and how the events of its stream become text and a whole answer."""

    format: str
    create: Callable[..., Any]  # the call that returns a whole answer
    streamed: Callable[..., Any]  # the call that returns events
    incoming: Callable[[], Any]  # makes an empty answer, to which events are added: see `memci.formats.streams`


def openai_chat(client: Any, **given: Any) -> Client:
    """Wrap a client of OpenAI for Chat Completions; each call gets the arguments *given*: `model`, `temperature`, …."""
    create = partial(client.chat.completions.create, **given)
    return _client("openai_chat", create, partial(create, stream=True, stream_options={"include_usage": True}))


def openai_responses(client: Any, **given: Any) -> Client:
    """Wrap a client of OpenAI for Responses. The provider stores nothing; its encrypted thoughts are stored here."""
    create = partial(client.responses.create, **{"store": False, "include": ["reasoning.encrypted_content"], **given})
    return _client("openai_responses", create, partial(create, stream=True))


def anthropic(client: Any, **given: Any) -> Client:
    """Wrap a client of Anthropic; each call gets *given*, which must contain `model` and `max_tokens`."""
    create = partial(client.messages.create, **given)
    return _client("anthropic", create, partial(create, stream=True))


def gemini(client: Any, **given: Any) -> Client:
    """Wrap a client of Google, or its `aio`; each call gets *given*, which must contain `model`."""

    def create(**request: Any) -> Any:  # holds the client: without it, its models stop
        return client.models.generate_content(**given, **request)

    def stream(**request: Any) -> Any:
        return client.models.generate_content_stream(**given, **request)

    return _client("gemini", create, stream)


def _client(format: str, create: Callable[..., Any], stream: Callable[..., Any]) -> Client:  # noqa: A002
    return Client(format, create, stream, partial(streamed, format))
