"""A model that says what a test tells it to, without a server: for tests that are to be fast.

    chat = ScriptedChat(["Hello!", {"title": "Violins"}, ModelUnavailable("title", "no answer in time")])
    chat(messages).text                 "Hello!"
    ask(chat, messages, Title, step="title")        Title(title="Violins")
    chat.calls[1].step                  "title"

    chat = ScriptedChat(lambda call: {"title": call.messages[-1]["content"][:20]})

`memci.testing.server.ModelServer` says it over a real socket. This module knows nothing of prompts.
"""

import json
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from pydantic import BaseModel

from ...errors import ModelUnavailable
from ...llm import Ledger, Reply, Spent, Usage
from ...messages import Message, text_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, as a scripted model was given it."""

    messages: tuple[Message, ...]
    step: str
    tools: tuple[Message, ...]
    answer: type[BaseModel] | None
    attempt: int

    @property
    def text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1]) if self.messages else ""


Said = str | Mapping[str, object] | BaseModel | Reply | Exception
"""text as it is; a message if it has a role; else an object, said as JSON; an error is raised"""


class ScriptedChat:
    """A `memci.llm.ChatModel` whose answers are given. Thread-safe."""

    def __init__(self, answers: Iterable[Said] | Callable[[Asked], Said] = ()) -> None:
        """Take what it answers.

        Args:
            answers: One per call, in their order; when they are used up, it does not answer. Or a function.
        """
        self.calls: list[Asked] = []
        """what it was asked, in order"""
        self.ledger = Ledger()
        self._given: Callable[[Asked], Said] | None = answers if callable(answers) else None
        self._answers: Iterator[Said] = iter(()) if callable(answers) else iter(answers)
        self._lock = Lock()

    def __call__(
        self,
        messages: Sequence[Message],
        /,
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: type[BaseModel] | None = None,
        attempt: int = 0,
    ) -> Reply:
        """Return the next answer, or raise it."""
        asked = Asked(tuple(messages), step, tuple(tools), answer, attempt)
        with self._lock:
            self.calls.append(asked)
            said = next(self._answers, None) if self._given is None else None
        if self._given is not None:
            said = self._given(asked)
        if said is None:
            said = ModelUnavailable(step, "the script has no more answers")
        if isinstance(said, Exception):
            self.ledger.add(step, Spent(calls=1, failed=1))
            raise said
        reply = replied(said, asked.messages)
        self.ledger.add(step, Spent(1, reply.usage.prompt, reply.usage.completion, cached=reply.usage.cached))
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> "Streamed":
        """Return the next answer word by word, as `memci.llm.Chat.stream`."""
        return Streamed(lambda: self(messages, step=step, tools=tools), step)


class Streamed:
    """An answer in pieces, then `reply`, as `memci.llm.chat.Stream`."""

    def __init__(self, answer: Callable[[], Reply], step: str) -> None:
        self._answer, self._step = answer, step
        self._reply: Reply | None = None
        self._pieces = self._reading()

    @property
    def reply(self) -> Reply:
        """The whole answer, when all pieces were read."""
        if self._reply is None:
            raise ModelUnavailable(self._step, "the stream was not read to its end")
        return self._reply

    def __iter__(self) -> Iterator[str]:
        return self._pieces

    def __next__(self) -> str:
        return next(self._pieces)

    def __enter__(self) -> "Streamed":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """Read no more of it."""
        self._pieces.close()

    def _reading(self) -> Generator[str, None, None]:
        reply = self._answer()
        yield from words(reply.text)
        self._reply = reply


def said_message(said: Said) -> Message:
    """Return what was *said* as an assistant's message."""
    if isinstance(said, Reply):
        return said.message
    if isinstance(said, BaseModel):
        return {"role": "assistant", "content": said.model_dump_json()}
    if isinstance(said, Mapping):
        if "role" in said or "tool_calls" in said:
            return {"role": "assistant", "content": None, **said}
        return {"role": "assistant", "content": json.dumps(said, ensure_ascii=False)}
    return {"role": "assistant", "content": str(said)}


def words(text: str) -> list[str]:
    """Return *text* in pieces, each of them up to the end of a blank; joined they are the text."""
    pieces, start = [], 0
    for place, character in enumerate(text, 1):
        if character == " " or place - start >= 8:
            pieces.append(text[start:place])
            start = place
    return [*pieces, text[start:]] if text[start:] else pieces


def replied(said: Said, messages: Sequence[Message]) -> Reply:
    """Return what was *said* as a reply, at a price that follows from the texts: a token per four characters."""
    if isinstance(said, Reply):
        return said
    message = said_message(said)
    prompt = sum(len(text_of(each)) // 4 + 4 for each in messages)
    usage = Usage(prompt, len(text_of(message)) // 4 + 1)
    return Reply(message, usage, "tool_calls" if message.get("tool_calls") else "stop", "scripted")
