"""The parameters of a request, in words that the server knows.

    max_tokens            ──▶  max_completion_tokens      where the first is refused (OpenAI's reasoning models)
    json_schema           ──▶  json_object  ──▶  nothing  where a response_format is refused
    stream_options        ──▶  nothing                    where it is refused
    encoding_format       ──▶  float                      where base64 is refused
    content: null         ──▶  content: ""                where null is refused beside tool calls

The first column is tried first: servers that do not know `max_completion_tokens` ignore it silently. What a server
refuses with status 400 or 422 is written in the next words, and so is what it can't do with status 500, if it names the
parameter: once it accepts the new words, they become its `Dialect`. This module knows nothing of sockets.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..messages import Message
from .server_errors import Failure

if TYPE_CHECKING:
    from pydantic import BaseModel

_FORMATS = ("json_schema", "json_object", "")
_SIGNS = {
    "limit": ("max_tokens", "max_completion_tokens"),
    "usage": ("stream_options", "include_usage"),
    "format": ("response_format", "json_schema", "json_object", "structured output", "grammar"),
    "encoding": ("encoding_format", "base64"),
    "null": ("content", "nonetype"),
}
_TOO_LONG = ("context_length", "context length", "maximum context", "context window", "too long")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words that a server is known to accept."""

    limit: str = "max_tokens"
    format: str = "json_schema"
    usage: bool = True
    encoding: str = "base64"
    null: bool = True


class CompletionRequest:
    """A request for a completion."""

    def __init__(
        self,
        messages: Sequence[Message],
        parameters: Mapping[str, Any],
        *,
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        stream: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self.dialect = Dialect()
        self.learned: dict[str, Any] = {}
        """words of the dialect that the server refused, and what took their place"""
        self._messages = list(messages)
        self._answer = answer
        self._stream = stream
        self._max_tokens = max_tokens
        self._fixed = {**parameters, **({"tools": list(tools)} if tools else {})}

    def send(self, client: Any) -> Any:
        """Send it with an openai client; return a context manager of the response."""
        return client.chat.completions.with_streaming_response.create(**self._parameters())

    def reworded(self, failure: Failure) -> bool:
        """Return whether there are other words for what the server refused, and use them from now on."""
        if failure.status not in {400, 422, 500, 501} or any(sign in failure.detail for sign in _TOO_LONG):
            return False
        dialect = self.dialect
        left: dict[str, Any] = {}
        if self._answer is not None and dialect.format:
            left["format"] = _FORMATS[_FORMATS.index(dialect.format) + 1]
        if self._stream and dialect.usage:
            left["usage"] = False
        if self._max_tokens is not None and dialect.limit == "max_tokens":
            left["limit"] = "max_completion_tokens"
        if dialect.null and any(map(_is_null, self._messages)):
            left["null"] = False
        meant = [word for word in left if any(sign in failure.detail for sign in _SIGNS[word])]
        if not left or (not meant and (failure.parameter is not None or failure.status >= 500)):
            return False
        word = next(iter([*meant, *left]))
        self.learned[word] = left[word]
        self.dialect = replace(dialect, **self.learned)
        return True

    def _parameters(self) -> dict[str, Any]:
        messages = self._messages
        if not self.dialect.null:
            messages = [{**each, "content": ""} if _is_null(each) else each for each in messages]
        given = {"messages": messages, **self._fixed}
        if self._max_tokens is not None:
            given[self.dialect.limit] = self._max_tokens
        if self._stream:
            given["stream"] = True
            if self.dialect.usage:
                given["stream_options"] = {"include_usage": True}
        if self._answer is not None:
            if self.dialect.format == "json_schema":
                given["response_format"] = response_format(self._answer)
            else:
                given["messages"] = _instructed(messages, self._answer)
            if self.dialect.format == "json_object":
                given["response_format"] = {"type": "json_object"}
        return given


class EmbeddingRequest:
    """A request for embeddings."""

    def __init__(self, texts: Sequence[str], parameters: Mapping[str, Any]) -> None:
        self.dialect = Dialect()
        self.learned: dict[str, Any] = {}
        self._fixed = {**parameters, "input": list(texts)}

    def send(self, client: Any) -> Any:
        """Send it with an openai client; return a context manager of the response."""
        create = client.embeddings.with_streaming_response.create
        return create(**self._fixed, encoding_format=self.dialect.encoding)

    def reworded(self, failure: Failure) -> bool:
        """Return whether there are other words for what the server refused, and use them from now on."""
        known = failure.status in {400, 422} and self.dialect.encoding == "base64"
        if not known or not any(sign in failure.detail for sign in _SIGNS["encoding"]):
            return False
        self.learned["encoding"] = "float"
        self.dialect = replace(self.dialect, **self.learned)
        return True


Request = CompletionRequest | EmbeddingRequest
"""a request that can be written in other words"""


def response_format(answer: "type[BaseModel]") -> dict[str, Any]:
    """Return the `response_format` that asks for an *answer*.

    It is strict where the schema allows that. Strict mode knows a part of JSON Schema only: a bound that it does not
    know is left out, since `ask` validates the answer anyway; a schema that it can't express (a dict with any keys, a
    tuple) is sent as it is, and not strictly.
    """
    schema = answer.model_json_schema()
    try:
        strict = _strict(schema) if schema.get("type") == "object" else None
    except _Inexpressible:
        strict = None
    form: dict[str, Any] = {"name": answer.__name__[:64], "schema": schema if strict is None else strict}
    return {"type": "json_schema", "json_schema": form if strict is None else {**form, "strict": True}}


_DROPPED = frozenset({"title", "default", "examples", "minLength", "maxLength", "uniqueItems", "discriminator"})


class _Inexpressible(Exception):
    """The schema has something that strict mode does not know."""


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or not schema or "prefixItems" in schema or "patternProperties" in schema:
        raise _Inexpressible
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if len(schema.get("allOf", ())) == 1:
        return _strict(schema["allOf"][0])
    strict = {key: value for key, value in schema.items() if key not in _DROPPED}
    if not strict.keys() & {"type", "anyOf", "oneOf", "enum", "const"}:
        raise _Inexpressible
    for key in ("anyOf", "oneOf"):
        if key in strict:
            strict["anyOf"] = [_strict(each) for each in strict.pop(key)]
    if "$defs" in strict:
        strict["$defs"] = {name: _strict(each) for name, each in strict["$defs"].items()}
    if strict.get("type") == "array":
        strict["items"] = _strict(strict.get("items"))
    if strict.get("type") == "object":
        if "properties" not in strict or strict.get("additionalProperties"):
            raise _Inexpressible
        strict["properties"] = {name: _strict(each) for name, each in strict["properties"].items()}
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
    return strict


def _is_null(message: Message) -> bool:
    return bool(message.get("tool_calls")) and message.get("content") is None


def _instructed(messages: Sequence[Message], answer: "type[BaseModel]") -> list[Message]:
    """Return *messages* with the schema in words, for a server that takes no schema.

    The words stand in the first message if it is the system's: not every model takes a system message further behind.
    """
    schema = json.dumps(answer.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    instruction = f"Answer with one JSON object and nothing else. It has this JSON schema: {schema}"
    first = messages[0] if messages else {}
    if first.get("role") in {"system", "developer"} and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
