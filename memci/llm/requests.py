"""The parameters of a request, in the words that the server knows.

    max_tokens            ──▶  max_completion_tokens      where the first is refused (OpenAI's reasoning models)
    json_schema           ──▶  json_object  ──▶  nothing  where a response_format is refused
    stream_options        ──▶  nothing                    where it is refused
    encoding_format       ──▶  float                      where base64 is refused

The first column is asked for first: `max_tokens` is known everywhere but to models that say so when they refuse it,
while servers that do not know `max_completion_tokens` ignore it in silence. What a server refuses with 400 or 422 is
said in the next words, and remembered when these are accepted. This module knows nothing of sockets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..messages import Message
from .errors_of_servers import Failure
from .schema import instruction, response_format

if TYPE_CHECKING:
    from pydantic import BaseModel

_FORMATS = ("json_schema", "json_object", "")
_SIGNS = {
    "limit": ("max_tokens", "max_completion_tokens"),
    "usage": ("stream_options", "include_usage"),
    "format": ("response_format", "json_schema", "json_object", "structured output", "grammar"),
    "encoding": ("encoding_format", "base64"),
}
_TOO_LONG = ("context_length", "context length", "maximum context", "context window", "too long")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The words that a server is known to accept."""

    limit: str = "max_tokens"
    format: str = "json_schema"
    usage: bool = True
    encoding: str = "base64"

    def learned(self, before: "Dialect", after: "Dialect") -> "Dialect":
        """Return it with the words that a request changed: others may have learned other ones meanwhile."""
        names = [each.name for each in fields(Dialect)]
        return replace(self, **{n: getattr(after, n) for n in names if getattr(after, n) != getattr(before, n)})


class Draft:
    """A request for a completion, said anew where the server does not know a word of it."""

    def __init__(
        self,
        messages: Sequence[Message],
        *,
        model: str,
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        stream: bool = False,
        max_tokens: int | None = None,
        temperature: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        self.dialect = Dialect()
        self._messages = list(messages)
        self._answer = answer
        self._stream = stream
        self._max_tokens = max_tokens
        self._fixed: dict[str, Any] = {"model": model}
        if tools:
            self._fixed["tools"] = list(tools)
        if temperature is not None:
            self._fixed["temperature"] = temperature
        if extra:
            self._fixed["extra_body"] = dict(extra)

    def parameters(self) -> dict[str, Any]:
        """Return the request as the client takes it."""
        given = {"messages": self._messages, **self._fixed}
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
                given["messages"] = _told(self._messages, instruction(self._answer))
            if self.dialect.format == "json_object":
                given["response_format"] = {"type": "json_object"}
        return given

    def reworded(self, failure: Failure) -> bool:
        """Return whether there are other words for what the server refused, and take them."""
        if failure.status not in {400, 422} or any(sign in failure.named for sign in _TOO_LONG):
            return False
        words = {
            "format": replace(self.dialect, format=_next_format(self.dialect.format)),
            "usage": replace(self.dialect, usage=False),
            "limit": replace(self.dialect, limit="max_completion_tokens"),
        }
        left = {word: said for word, said in words.items() if said != self.dialect and self._uses(word)}
        meant = [word for word in left if any(sign in failure.named for sign in _SIGNS[word])]
        if not meant and failure.parameter is not None:
            return False
        for word in [*meant, *left]:
            self.dialect = left[word]
            return True
        return False

    def _uses(self, word: str) -> bool:
        uses = {"format": self._answer is not None, "usage": self._stream, "limit": self._max_tokens is not None}
        return uses[word]


class EmbeddingDraft:
    """A request for embeddings, likewise."""

    def __init__(self, texts: Sequence[str], *, model: str, extra: Mapping[str, Any] | None = None) -> None:
        self.dialect = Dialect()
        self._fixed: dict[str, Any] = {"model": model, "input": list(texts)}
        if extra:
            self._fixed["extra_body"] = dict(extra)

    def parameters(self) -> dict[str, Any]:
        """Return the request as the client takes it."""
        return {**self._fixed, "encoding_format": self.dialect.encoding}

    def reworded(self, failure: Failure) -> bool:
        """Return whether there are other words for what the server refused, and take them."""
        known = failure.status in {400, 422} and self.dialect.encoding == "base64"
        if not known or not any(sign in failure.named for sign in _SIGNS["encoding"]):
            return False
        self.dialect = replace(self.dialect, encoding="float")
        return True


def _next_format(name: str) -> str:
    return _FORMATS[min(_FORMATS.index(name) + 1, len(_FORMATS) - 1)]


def _told(messages: Sequence[Message], instruction: str) -> list[Message]:
    """Return *messages* with the instruction in the first, the system's: not every model takes another one later."""
    first = messages[0] if messages else {}
    if first.get("role") in {"system", "developer"} and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]
