"""Strict checkers of requests, one for each provider: what its published grammar refuses, as sentences.

    from memci.testing.formats import problems

    assert problems("anthropic", context.request(format="anthropic")) == []

Each module has a function `problems(request)`. It takes the keyword arguments of the call of the provider's client and
yields every violation with its path, none for a request that is accepted. Each rule names the page of the provider's
documentation that states it. The checkers need no SDK and no network.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import anthropic, gemini, openai_chat, openai_responses

CHECKERS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]] = {
    "openai_chat": openai_chat.problems,
    "openai_responses": openai_responses.problems,
    "anthropic": anthropic.problems,
    "gemini": gemini.problems,
}
"""the checker of each format"""


def problems(format: str, request: Mapping[str, Any]) -> list[str]:  # noqa: A002 -- as in `Context.request`
    """Return what the provider of *format* would refuse in *request*, [] if nothing. O(request)."""
    return list(CHECKERS[format](request))


__all__ = ["CHECKERS", "problems"]
