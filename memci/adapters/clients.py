"""The plain clients of OpenAI, Anthropic and Google in one form: how each is called, whole and streamed.

    openai_chat(OpenAI(), model="gpt-4o-mini")          anthropic(Anthropic(), model="…", max_tokens=4_096)
    openai_responses(OpenAI(), model="gpt-4o-mini")     gemini(genai.Client(), model="…")

Each call gets the other arguments, too. Asynchronous clients are wrapped in the same way. `wrapped` does it for
`memci.Agent`, by the methods that a client has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ..context.context import Context
from ..errors import InvalidSetting, brief
from ..formats.streams import streamed
from ..llm.requests import response_format

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True)
class Client:
    """A provider's client: how it is called, and how the events of its stream become text and a whole answer."""

    format: str
    create: Callable[..., Any]  # the call that returns a whole answer
    streamed: Callable[..., Any]  # the call that returns events
    incoming: Callable[[], Any]  # makes an empty answer, to which events are added: see `memci.formats.streams`

    def shaped(self, output: "type[BaseModel]") -> dict[str, dict[str, Any]]:
        """Return the arguments of a call whose answer has the form of *output*."""
        asked = response_format(output)
        form: dict[str, Any] = asked["json_schema"]
        if self.format == "openai_chat":
            return {"response_format": asked}
        if self.format == "openai_responses":
            return {"text": {"format": {"type": "json_schema", **form}}}
        if self.format == "anthropic":
            return {"output_config": {"format": {"type": "json_schema", "schema": form["schema"]}}}
        return {"config": {"response_mime_type": "application/json", "response_json_schema": form["schema"]}}


def wrapped(client: Any, context: Context, **given: Any) -> Client:
    """Return *client* wrapped, for the model of *context* unless *given* names another one.

    InvalidSetting if it is no client of OpenAI, Anthropic or Google, or no model is named.
    """
    if isinstance(client, Client):
        if given:
            raise InvalidSetting(next(iter(given)), "pass it where the client is wrapped: openai_chat(OpenAI(), …)")
        return client
    if isinstance(client, type):
        raise InvalidSetting("client", f"expected a client, got the class: {client.__name__}()")
    given = {"model": context.model, **given}
    calls = ("chat.completions.create", "messages.create", "models.generate_content")
    if not any(_has(client, call) for call in calls):
        expected = "expected one of OpenAI, Anthropic or Google, or a wrapped one"
        raise InvalidSetting("client", f"{expected}, got {brief(client)}")
    if given["model"] is None:
        raise InvalidSetting("model", 'say which: Agent(client, context, model="…"), or Context.open(…, model="…")')
    if _has(client, calls[0]):
        responses = context.format == "openai_responses" and _has(client, "responses.create")
        return openai_responses(client, **given) if responses else openai_chat(client, **given)
    if _has(client, calls[1]):
        return anthropic(client, **{"max_tokens": context.reply, **given})
    return gemini(client, **given)


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
    own = dict(given.pop("config", None) or {})

    def call(method: str, **request: Any) -> Any:  # holds the client: without it, its models stop
        config = {**request.get("config", {}), **own}
        return getattr(client.models, method)(**given, **request | {"config": config})

    return _client("gemini", partial(call, "generate_content"), partial(call, "generate_content_stream"))


def _client(format: str, create: Callable[..., Any], stream: Callable[..., Any]) -> Client:  # noqa: A002
    return Client(format, create, stream, partial(streamed, format))


def _has(client: Any, path: str) -> bool:
    """Return whether *client* has the method at *path*."""
    for name in path.split("."):
        client = getattr(client, name, None)
    return callable(client)
