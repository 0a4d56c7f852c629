"""The answer of a server, read: from the bytes of a completion to a reply.

    b'{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": {…}}'  ──▶  Reply({…}, Usage(…))

The client's own models are not used: they accept any JSON without a check. A message keeps all that the provider put
into it, except fields that are null. What is no completion is `Unusable`. This module knows nothing of sockets.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import InvalidMessage
from ..messages import Message, check
from .model import Reply, Usage
from .server_errors import Unusable

LARGEST = 16_000_000
"""bytes of an answer, at most"""


def whole(chunks: Iterable[bytes], seconds: float, clock: Callable[[], float]) -> bytes:
    """Return the bytes of a whole answer, which takes at most *seconds* in all.

    A read timeout of the connection never ends an answer whose server keeps the connection alive by sending blanks.
    """
    until = clock() + seconds
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > LARGEST:
            raise Unusable(f"the answer is larger than {LARGEST:,} bytes")
        if clock() > until:
            raise TimeoutError
    return bytes(body)


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
    """Return an assistant's *message* in the form that a context accepts."""
    kept = {key: value for key, value in message.items() if value is not None and key != "role"}
    if not kept.get("tool_calls"):
        kept.pop("tool_calls", None)
    content = kept.pop("content", None if "tool_calls" in kept else "")
    complete = {"role": "assistant", "content": content, **kept}
    try:
        check(complete)
        json.dumps(complete, allow_nan=False, ensure_ascii=False).encode()
    except (InvalidMessage, ValueError, RecursionError) as error:
        raise Unusable("the message of the answer is none that a context accepts") from error
    return complete


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
    return int(value) if isinstance(value, int | float) and 0 < value < 1e12 else 0
