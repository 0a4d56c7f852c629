"""A driver runs one framework with memci; the user's text says what its scripted model does.

    "look up a, b"        calls the tool `lookup` for each key, in one message, then answers
    "step 12 x"           calls it twelve times, one after the other, for x1 to x12
    "recall 3"            calls recall_page(3)
    "search zebra"        calls search_memory("zebra")
    anything else         is answered at once

The drivers of all frameworks play the same texts.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from ...context.context import Context
from ...formats.envelope import function_call
from ...messages import Message, text_of
from ..llm.server import Request

PROMPT = "You are the agent of a test."  # the framework's system prompt
_WORDS = 120


def lookup(key: str) -> str:
    """Return a long text about *key*, always the same."""
    return f"{key}: " + " ".join(f"{key}{number % 17}" for number in range(_WORDS))


class Driver(ABC):
    """One framework with memci in it, with one agent: the system prompt `PROMPT`, the tool `lookup` and memci's tools.

    Its model calls go to the server at *url*, in the form of Chat Completions. All conversations are stored in *store*.
    """

    lacks: ClassVar[Mapping[str, str]] = {}
    """why the framework can't pass a check, by the name of the check without `test_`"""
    has: ClassVar[frozenset[str]] = frozenset()  # tools that the framework adds by itself

    @staticmethod
    def play(request: Request) -> Message:
        """Return the model's answer; a framework with its own form of calls or answers overrides this."""
        return played(request)

    def __init__(self, store: Path, url: str, window: int) -> None:
        self.store, self.url, self.window = store, url, window

    @abstractmethod
    async def say(self, conversation: str, text: str) -> str:
        """Run the agent for the user's *text*, and return its final answer."""

    @abstractmethod
    def say_sync(self, conversation: str, text: str) -> str:
        """Do the same with the framework's blocking calls."""

    @abstractmethod
    async def stream(self, conversation: str, text: str) -> str:
        """Do the same with streamed answers of the model."""

    @abstractmethod
    def context(self, conversation: str) -> Context:
        """Return the context of a conversation."""

    memci: Any = None
    """the adapter's object with its `conversations`"""

    def conversations(self, conversation: str) -> Any:
        """Return the adapter's `Conversations` that has *conversation*."""
        del conversation
        return self.memci.conversations

    def kinds(self) -> Sequence[Any]:
        """Return messages of every kind that the framework has: media, thoughts, marks, results of all sorts."""
        return ()

    def same(self, message: Any) -> object:
        """Return what of a framework's *message* must not change."""
        return message

    def message(self, role: str, text: str, *, marked: bool = False) -> Any:
        """Return a message of the framework; it is *marked* for the cache, if the framework has such marks."""
        raise NotImplementedError

    async def say_last(self, conversation: str, text: str) -> None:
        """Do what `say` does with an agent whose run ends with the result of `lookup`, if the framework has that."""
        await self.say(conversation, text)

    def told(self, conversation: str) -> list[Message]:
        """Return the messages of a conversation, without those that the framework adds."""
        return [*self.context(conversation).messages()]

    @abstractmethod
    def close(self) -> None:
        """Close the contexts."""


def played(request: Request) -> Message:
    """Return the scripted model's answer to *request*."""
    return answered(request.messages)


def answered(messages: Sequence[Message]) -> Message:
    """Return the scripted model's answer to *messages*."""
    at = max(at for at, message in enumerate(messages) if message["role"] == "user" and _command(message))
    command, rest = _command(messages[at]).split(" ", 1)
    results = [text_of(message) for message in messages[at:] if message["role"] == "tool"]
    done = len(results)
    calls: list[tuple[str, dict[str, Any]]] = []
    if command == "step":
        many, name = rest.split()
        found = re.search(rf"{re.escape(name)}(\d+):", results[-1]) if results else None  # it may stand within JSON
        done = int(found[1]) if found else 0
        calls = [("lookup", {"key": f"{name}{done + 1}"})] if done < int(many) else []
    elif command == "look" and not done:
        calls = [("lookup", {"key": key}) for key in rest.removeprefix("up ").split(", ")]
    elif command == "recall" and not done:
        calls = [("recall_page", {"index": int(rest), "entry": None, "last": None, "offset": None})]
    elif command == "search" and not done:
        calls = [("search_memory", {"query": rest, "since": None, "until": None, "skip": None})]
    if not calls:
        return {"role": "assistant", "content": f"Answer to {command} {rest}."}
    made = [
        function_call(
            "call_" + sha256(f"{command} {rest} {name} {arguments}".encode()).hexdigest()[:20], name, arguments
        )
        for name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def _command(message: Message) -> str:
    """Return the last line of *message* in which the user asks something, "" if there is none.

    A framework may join messages of the user, as the first one and the contents behind it.
    """
    lines = reversed(text_of(message).strip().split("\n"))
    return next((line for line in lines if line.split(" ", 1)[0] in _COMMANDS and " " in line), "")


_COMMANDS = frozenset({"look", "step", "recall", "search", "say"})
