"""OpenAI's API as JSON: completions, streams of them, embeddings.

    completion(reply, "m")      {"object": "chat.completion", "choices": [{"message": …}], "usage": …}
    stream(reply, "m")          b'data: {"object": "chat.completion.chunk", …}', …, b"data: [DONE]"

This module knows nothing of sockets or scripts.
"""

import base64
import hashlib
import json
import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...llm import Reply, Usage
from ...messages import text_of
from .scripted import words

_MADE = 1_700_000_000
"""the creation time of every object, in seconds since 1970 UTC: tests see the same bytes each time"""

_DIMENSION = 16
"""how many numbers a vector has"""

Vector = Callable[[str], Sequence[float]]


def completion(reply: Reply, model: str, *, usage: bool = True) -> dict[str, Any]:
    """Return a whole completion."""
    choice = {"index": 0, "message": reply.message, "finish_reason": reply.finish, "logprobs": None}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": _MADE, "model": model, "choices": [choice]}
    return {**whole, "usage": usage_fields(reply.usage)} if usage else whole


def stream(reply: Reply, model: str, *, usage: bool) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a streamed completion, the last one with its usage if *usage*."""

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": _MADE,
            "model": model,
            "choices": [choice],
        }

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


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return the fields of a usage."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def embeddings(body: dict[str, Any], vector: Vector) -> dict[str, Any]:
    """Return the vectors that the request *body* asks for."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list(given or [])
    rows: list[Any] = [list(vector(text)) for text in texts]
    if body.get("encoding_format") == "base64":
        rows = [base64.b64encode(array("f", row).tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def word_vector(text: str) -> list[float]:
    """Return a vector of length 1. Texts with the same words have the same one; texts that share words are near."""
    row = [0.0] * _DIMENSION
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.sha256(word.encode("utf-8", "replace")).digest()
        for place in range(0, 8, 2):
            row[int.from_bytes(digest[place * 2 : place * 2 + 3], "big") % _DIMENSION] += 1 if digest[place] & 1 else -1
    length = math.sqrt(sum(number * number for number in row))
    return [number / length for number in row] if length else [1.0, *row[1:]]


def models() -> dict[str, Any]:
    """Return the list of models: requests may name any other one, too."""
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "created": _MADE, "owned_by": "memci"}]}


def written(value: object) -> bytes:
    """Return the JSON of *value*."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
