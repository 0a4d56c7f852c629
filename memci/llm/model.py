"""The protocol of a chat model: a callable from messages to a reply.

`memci.llm.Chat` is one, over any OpenAI-compatible server. A function of your own with this signature is one, too. A
model that does not answer raises a `memci.errors.ModelError`.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from ..errors import AnswerRejected, InvalidSetting, brief
from ..messages import Message, text_of

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a call in tokens, as the provider reported it; zeros where it reported nothing."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0  # tokens of the prompt that came from the provider's cache

    @property
    def total(self) -> int:
        """Prompt and completion."""
        return self.prompt + self.completion

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.prompt + other.prompt, self.completion + other.completion, self.cached + other.cached)


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of a model."""

    message: Message
    """ready to be appended to a context: role "assistant", content, tool_calls, and the provider's other fields"""
    usage: Usage = field(default_factory=Usage)
    finish: str = "stop"  # the provider's reason for the end of the answer: "stop", "length", "tool_calls", …
    model: str = ""  # the name of the model, as the provider gives it

    @property
    def text(self) -> str:
        """The text of the answer, "" if there is none."""
        return text_of(self.message)


def checked_reply(value: object, step: str) -> Reply:
    """Return *value*, the result of a model for *step*, if it is a reply with a message and a usage.

    AnswerRejected if it is not.
    """
    if not isinstance(value, Reply):
        raise AnswerRejected(step, f"the model returned a value of type {type(value).__name__}, not a memci.llm.Reply")
    usage = value.usage
    if not isinstance(usage, Usage) or not all(type(tokens) is int for tokens in astuple(usage)):
        raise AnswerRejected(step, "the usage of the reply is no memci.llm.Usage with whole numbers")
    if not isinstance(value.message, dict):
        raise AnswerRejected(step, f"the message of the reply is of type {type(value.message).__name__}, not a dict")
    return value


class Pieces:
    """The pieces of text of an answer, as they arrive; iterate over them once. Closing it gives up the rest."""

    def __init__(self, pieces: Generator[str, None, None]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Stop reading. It may be closed twice."""
        self._pieces.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class Call:
    """One call, as `on_call` gets it: its step, its duration and its end. It holds no text of a message."""

    step: str
    model: str
    seconds: float  # with all tries and the waits between them; for a stream, until its last piece
    usage: Usage = field(default_factory=Usage)
    attempt: int = 0  # 0 for the first request; 1 or more if the answers before this one were rejected
    tries: int = 1  # how often the request was sent so far
    error: str | None = None  # the type of the error; None: there was an answer
    status: int | None = None  # the HTTP status of a failure, if there was one
    finish: str = ""  # the provider's reason for the end of the answer; "" if there was none


OnCall = Callable[[Call], None]


@runtime_checkable
class ChatModel(Protocol):
    """Any callable that answers messages. It must work in any thread."""

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: "type[BaseModel] | None" = None,
        attempt: int = 0,
        max_tokens: int | None = None,
    ) -> Reply:
        """Return the answer to *messages*.

        Args:
            messages: In the format of Chat Completions; a system message may be among them.
            step: The purpose of the call, in one word. Ledgers and `on_call` report it.
            tools: The schemas of tools that the model may call.
            answer: The type of the JSON object that is wanted. The caller validates the answer (`memci.llm.ask`).
            attempt: 0 for the first time. A model may use it as a seed, so that a repeated call gives another answer.
            max_tokens: The most tokens that the answer may have, ample for what is wanted. None: no bound.

        Raises:
            ModelError: If there is no answer.
        """


def check_chat(name: str, model: object) -> None:
    """Raise InvalidSetting for the argument *name* unless *model* can be called, and answers without being awaited."""
    if not callable(model) or isinstance(model, type):
        raise InvalidSetting(name, f"expected a model to call, as memci.llm.Chat, got {brief(model)}")
    if iscoroutinefunction(model) or iscoroutinefunction(type(model).__call__):
        raise InvalidSetting(name, f"{type(model).__name__} is asynchronous, and nothing awaits it here: give a Chat")
