"""A stand-in for `openai.OpenAI()`: a function plays the model, so the tours need no network and no key."""

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class Scripted:
    """A client whose *model* gets the messages of a request and returns a text, or a `call`."""

    def __init__(self, model: Callable[[list[dict[str, Any]]], Any]) -> None:
        self.chat = SimpleNamespace(completions=self)
        self.requests: list[list[dict[str, Any]]] = []
        self._model = model

    def create(self, *, messages: list[dict[str, Any]], **_given: Any) -> dict[str, Any]:
        """Return the model's answer, as Chat Completions gives it."""
        self.requests.append(messages)
        said = self._model(messages)
        message = {"role": "assistant", **(said if isinstance(said, dict) else {"content": said})}
        return {"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Return a message that calls the tool *name*."""
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"content": None, "tool_calls": [{"id": "call", "type": "function", "function": function}]}
