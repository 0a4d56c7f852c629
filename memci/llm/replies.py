"""The answer of a server, read: from the bytes of a completion to a reply.

    b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {…}}'  ──▶  Reply({…}, Usage(…))

A message keeps whatever the provider put into it, but for fields that are null. What is no completion is `Unusable`.
This module knows nothing of sockets.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from ..errors import InvalidMessage
from ..messages import Message, check
from .errors_of_servers import Unusable
from .model import Reply, Usage

LARGEST = 16_000_000
"""bytes of an answer, at most"""


class Body:
    """The bytes of an answer as they come: not too many, and not for too long."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._until = clock() + seconds
        self._clock = clock
        self._size = 0
        self._chunks: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            TimeoutError: If the answer takes too long as a whole: a server that keeps a connection alive by sending
                blanks never ends otherwise.
        """
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > LARGEST:
            raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
        if self._clock() > self._until:
            raise TimeoutError

    def whole(self) -> bytes:
        """Return what came."""
        return b"".join(self._chunks)


def parsed(body: bytes | str) -> dict[str, Any]:
    """Return the JSON object of *body*."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Unusable("the answer is no JSON") from error
    if not isinstance(value, dict):
        raise Unusable("the answer is no JSON object")
    return value


def reply_of(body: bytes) -> Reply:
    """Return the reply that the bytes of a completion hold."""
    completion = parsed(body)
    choices = completion.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    choice = first if isinstance(first, dict) else {}
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Unusable("the answer has no choice with a message")
    return Reply(sound(message), usage_of(completion), text(choice.get("finish_reason")), text(completion.get("model")))


def sound(message: Message) -> Message:
    """Return an assistant's *message* as a context takes it."""
    kept = {key: value for key, value in message.items() if value is not None and key != "role"}
    if not kept.get("tool_calls"):
        kept.pop("tool_calls", None)
    content = kept.pop("content", None if "tool_calls" in kept else "")
    whole = {"role": "assistant", "content": content, **kept}
    try:
        check(whole)
        json.dumps(whole, allow_nan=False, ensure_ascii=False).encode()
    except (InvalidMessage, ValueError, RecursionError) as error:
        raise Unusable("the message of the answer is none that a context takes") from error
    return whole


def usage_of(completion: dict[str, Any]) -> Usage:
    """Return what a completion, or the last piece of a streamed one, says that it cost."""
    usage = completion.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    return Usage(_tokens(usage.get("prompt_tokens")), _tokens(usage.get("completion_tokens")), _tokens(cached))


def text(value: object) -> str:
    """Return a short text of the provider, "" where it is something else."""
    return value[:200] if isinstance(value, str) else ""


def _tokens(value: object) -> int:
    if isinstance(value, int | float) and math.isfinite(value) and 0 < value < 1e12:
        return int(value)
    return 0
