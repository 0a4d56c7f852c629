"""Requests, written in words that the server accepts.

    max_tokens            ──▶  max_completion_tokens      where the first is refused (OpenAI's reasoning models)
    json_schema           ──▶  json_object  ──▶  nothing  where a response_format is refused
    stream_options        ──▶  nothing                    where it is refused
    encoding_format       ──▶  float                      where base64 is refused
    content: null         ──▶  content: ""                where null is refused beside tool calls

The first column is tried first: servers that do not know `max_completion_tokens` ignore it silently. What the server
refuses with status 400 or 422 is written in the next words. So is a parameter that it names in an error of status 500.
Once it accepts the new words, they become its `Dialect`.
"""

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import InvalidSetting, brief
from ..formats.overflow import overflow
from ..messages import Message
from .server_errors import Failure

if TYPE_CHECKING:
    from pydantic import BaseModel

_WORDS: Final[Mapping[str, Mapping[str, list[Any]]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)

Dialect = Mapping[str, Any]  # the words that a server accepts, as far as it is known: a value for each field
DIALECT: Final[Dialect] = {word: field["values"][0] for word, field in _WORDS.items()}
"""the words of the first request to any server"""


class Request:
    """A request that can be written in other words."""

    def __init__(self, words: Iterable[str]) -> None:
        """Note the fields of the dialect that matter to this request."""
        self.dialect = DIALECT
        self.learned: dict[str, Any] = {}
        """fields of the dialect that the server refused, and their new values"""
        self._words = tuple(words)

    def send(self, client: Any) -> Any:
        """Send it with an openai client; return a context manager of the response."""
        raise NotImplementedError

    def reword(self, failure: Failure) -> bool:
        """Use other words for what the server refused; return False if there are none."""
        if failure.status not in {400, 422, 500, 501} or overflow(failure.detail):
            return False
        left: dict[str, Any] = {}
        for word in self._words:
            values = _WORDS[word]["values"]
            following = values[values.index(self.dialect[word]) + 1 :]
            if following:
                left[word] = following[0]
        meant = [word for word in left if any(sign in failure.detail for sign in _WORDS[word]["refused"])]
        if not left or (not meant and (failure.parameter is not None or failure.status >= 500)):
            return False
        word = next(iter([*meant, *left]))
        self.learned[word] = left[word]
        self.dialect = {**self.dialect, **self.learned}
        return True


class CompletionRequest(Request):
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
        if isinstance(messages, (str, dict)):
            expected = "expected a list, as [{'role': 'user', 'content': 'Hi'}]"
            raise InvalidSetting("messages", f"{expected}, got {brief(messages)}")
        limited, calls = max_tokens is not None, any(map(_is_null, messages))
        used = {"format": answer is not None, "usage": stream, "limit": limited, "null": calls}
        super().__init__(word for word in used if used[word])
        self._messages = list(messages)
        self._answer = answer
        self._stream = stream
        self._max_tokens = max_tokens
        self._fixed = {**parameters, **({"tools": list(tools)} if tools else {})}

    def send(self, client: Any) -> Any:
        """Send it with an openai client; return a context manager of the response."""
        dialect, messages = self.dialect, self._messages
        if not dialect["null"]:
            messages = [{**each, "content": ""} if _is_null(each) else each for each in messages]
        given: dict[str, Any] = {}
        if self._max_tokens is not None:
            given[dialect["limit"]] = self._max_tokens
        if self._stream:
            given |= {"stream": True, **({"stream_options": {"include_usage": True}} if dialect["usage"] else {})}
        if self._answer is not None:
            if dialect["format"] == "json_schema":
                given["response_format"] = response_format(self._answer)
            else:
                messages = _instruct(messages, self._answer)
            if dialect["format"] == "json_object":
                given["response_format"] = {"type": "json_object"}
        return client.chat.completions.with_streaming_response.create(messages=messages, **self._fixed, **given)


class EmbeddingRequest(Request):
    """A request for embeddings."""

    def __init__(self, texts: Sequence[str], parameters: Mapping[str, Any]) -> None:
        super().__init__(["encoding"])
        self._fixed = {**parameters, "input": list(texts)}

    def send(self, client: Any) -> Any:
        """Send it with an openai client; return a context manager of the response."""
        create = client.embeddings.with_streaming_response.create
        return create(**self._fixed, encoding_format=self.dialect["encoding"])


def response_format(answer: "type[BaseModel]") -> dict[str, Any]:
    """Return the `response_format` that asks for an *answer*.

    It is strict if the schema allows that. Strict mode supports only a part of JSON Schema. Other bounds are left out,
    since `ask` validates the answer anyway. A schema that strict mode can't express (a dict with any keys, a tuple) is
    sent unchanged, and not as strict.
    """
    schema = answer.model_json_schema()
    try:
        strict = _strict(schema) if schema.get("type") == "object" else None
    except _Inexpressible:
        strict = None
    form: dict[str, Any] = {"name": answer.__name__[:64], "schema": schema if strict is None else strict}
    return {"type": "json_schema", "json_schema": form if strict is None else {**form, "strict": True}}


_DROPPED: Final = frozenset({"title", "default", "examples", "minLength", "maxLength", "uniqueItems", "discriminator"})
"""keywords that strict mode refuses"""
_TYPED: Final = frozenset({"type", "anyOf", "enum", "const"})


class _Inexpressible(Exception):
    """Strict mode does not know a part of the schema."""


def _strict(schema: Any, *, named: bool = False) -> Any:
    """Return *schema*, or the schemas that are *named* in it, as strict mode wants them."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if named or not isinstance(schema, dict):
        return {name: _strict(each) for name, each in schema.items()} if named else schema
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    if len(schema.get("allOf", ())) == 1:
        return _strict(schema["allOf"][0])
    kept = {"anyOf" if key == "oneOf" else key: schema[key] for key in schema if key not in _DROPPED}
    strict = {key: _strict(value, named=key in {"properties", "$defs"}) for key, value in kept.items()}
    open_ended = strict.get("type") == "object" and ("properties" not in strict or strict.get("additionalProperties"))
    if open_ended or not strict.keys() & _TYPED or strict.keys() & {"prefixItems", "patternProperties"}:
        raise _Inexpressible
    return strict | (
        {"required": [*strict["properties"]], "additionalProperties": False} if "properties" in strict else {}
    )


def _is_null(message: Message) -> bool:
    return bool(message.get("tool_calls")) and message.get("content") is None


def _instruct(messages: Sequence[Message], answer: "type[BaseModel]") -> list[Message]:
    """Return *messages* with the schema in words, for a server that takes no schema.

    If the first message is the system's, the words go there: not every model takes a system message further behind.
    """
    schema = json.dumps(answer.model_json_schema(), ensure_ascii=False, separators=(",", ":"))
    instruction = f"Answer with one JSON object and nothing else. It has this JSON schema: {schema}"
    first = messages[0] if messages else {}
    if first.get("role") in {"system", "developer"} and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
