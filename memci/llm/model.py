"""What a model is to memci: a callable from messages to a reply.

    reply = chat([{"role": "user", "content": "Hi"}], step="chat")
    reply.text                          "Hello!"
    reply.usage                         Usage(prompt=8, completion=3, cached=0)

`memci.llm.Chat` is one over any OpenAI-compatible server; a function of your own with this signature is one, too. A
model that does not answer raises a `memci.errors.ModelError`. This module knows nothing of servers, prompts or retries.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from ..messages import Message, text_of

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost, in tokens, as the provider reported it; zeros where it reported nothing."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    """of the prompt's tokens, those that came from the provider's cache"""

    @property
    def total(self) -> int:
        """Prompt and completion."""
        return self.prompt + self.completion

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered."""

    message: Message
    """as it is appended to a context: role "assistant", content, tool_calls, and whatever else the provider sent"""
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"
    """why it ended: "stop", "length", "tool_calls", … as the provider says"""
    model: str = ""
    """which model answered, as the provider says"""

    @property
    def text(self) -> str:
        """The text of the answer, "" if there is none."""
        return text_of(self.message)


@runtime_checkable
class ChatModel(Protocol):
    """Whatever answers messages. Called from any thread."""

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
    ) -> Reply:
        """Return the answer to *messages*.

        Args:
            messages: Of Chat Completions, a system message among them.
            step: What the call is for, in one word: names it in ledgers and traces.
            tools: The schemas of tools that it may call.
            answer: The answer is to be a JSON object of this type; who calls validates it (`memci.llm.ask`).
            attempt: 0 for the first time; a model may seed its sampling with it, so that a repeated call differs.

        Raises:
            ModelError: If there is no answer.
        """
        ...
