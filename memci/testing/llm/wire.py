"""OpenAI's API as JSON: completions, streams of them, embeddings.

`ModelServer` sends them.
"""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...llm import Reply, Usage
from ...memory.retrieval.embedders import Embedder
from ...messages import text_of
from .scripted import words

_MADE = 1_700_000_000
"""the creation time of every object, in seconds since 1970 UTC: it is constant, so that bytes can be compared"""


def completion(reply: Reply, model: str, *, usage: bool = True) -> dict[str, Any]:
    """Return a whole completion."""
    choice = {"index": 0, "message": reply.message, "finish_reason": reply.finish, "logprobs": None}
    whole = _made("chat.completion", model, choice)
    return {**whole, "usage": usage_fields(reply.usage)} if usage else whole


def stream(reply: Reply, model: str, *, usage: bool) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a streamed completion; with *usage*, the last one has the usage."""

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return _made("chat.completion.chunk", model, {"index": 0, "delta": delta, "finish_reason": finish})

    yield piece({"role": "assistant", "content": ""})
    for key, value in reply.message.items():
        if key not in {"role", "content", "tool_calls"}:
            yield from (piece({key: part}) for part in (words(value) if isinstance(value, str) else [value]))
    yield from (piece({"content": part}) for part in words(text_of(reply.message)))
    for index, call in enumerate(reply.message.get("tool_calls") or []):
        body = call["function"]
        yield piece({"tool_calls": [{**call, "index": index, "function": {**body, "arguments": ""}}]})
        for part in words(body["arguments"]):
            yield piece({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield piece({}, reply.finish)
    if usage:
        yield {**piece({}), "choices": [], "usage": usage_fields(reply.usage)}


def _made(kind: str, model: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": _MADE, "model": model, "choices": [choice]}


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return *usage* in the fields of OpenAI's API."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def embeddings(body: dict[str, Any], embedder: Embedder) -> dict[str, Any]:
    """Return the vectors of *embedder* that the request *body* asks for."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list(given or [])
    rows: list[Any] = np.asarray(embedder(texts), "<f4").tolist()
    if body.get("encoding_format") == "base64":
        rows = [base64.b64encode(np.asarray(row, "<f4").tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def models() -> dict[str, Any]:
    """Return the list of models. Requests may name any other model, too."""
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "created": _MADE, "owned_by": "memci"}]}


def written(value: object) -> bytes:
    """Return the JSON of *value*."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
