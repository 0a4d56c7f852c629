"""The scripted model over a real socket, so that a scripted run goes the way that a paid one goes.

    with served(Oracle(dialogues)) as address: …      "http://127.0.0.1:…/v1"

It reports as usage what `memci.tokens` counts. This module knows nothing of what is answered.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from memci.llm import Reply, Usage
from memci.testing.llm import ModelServer, Request
from memci.tokens import message_tokens

from .systems import count


@contextmanager
def served(script: Callable[[Sequence[Mapping[str, Any]]], str]) -> Iterator[str]:
    """Serve *script*, and return the address."""

    def answer(request: Request) -> Reply:
        text = script(request.messages)
        asked = sum(message_tokens(message, count, "gpt-4o") for message in request.messages)
        return Reply({"role": "assistant", "content": text}, Usage(prompt=asked, completion=count(text)))

    with ModelServer(answer) as server:
        yield server.base_url
