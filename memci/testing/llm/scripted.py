"""A model with scripted answers, without a server: for fast tests; `ModelServer` answers over a real socket."""

import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

from pydantic import BaseModel

from ...errors import ModelUnavailable
from ...llm import Ledger, Reply, Spent, Usage
from ...llm.chat import Stream
from ...messages import Message, text_of


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of one call."""

    messages: tuple[Message, ...]
    step: str
    tools: tuple[Message, ...]
    answer: type[BaseModel] | None
    attempt: int
    max_tokens: int | None = None

    @property
    def text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1]) if self.messages else ""


ScriptedAnswer = str | Mapping[str, object] | BaseModel | Reply | Exception
"""a text; a message, if it has a role; another object, which is written as JSON; or an error to be raised"""


class ScriptedChat:
    """A `memci.llm.ChatModel` with given answers. Thread-safe."""

    def __init__(self, answers: Iterable[ScriptedAnswer] | Callable[[Asked], ScriptedAnswer] = ()) -> None:
        """Set the answers: one per call, in their order, after which a call raises ModelUnavailable; or a function."""
        self.calls: list[Asked] = []
        """all calls, in order"""
        self.ledger = Ledger()
        self._answers = answers if callable(answers) else iter(answers)
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
        max_tokens: int | None = None,
    ) -> Reply:
        """Return the next answer, or raise it."""
        asked = Asked(tuple(messages), step, tuple(tools), answer, attempt, max_tokens)
        with self._lock:
            self.calls.append(asked)
            given = None if callable(self._answers) else next(self._answers, None)
        if callable(self._answers):
            given = self._answers(asked)
        if given is None:
            given = ModelUnavailable(step, "the script has no more answers")
        if isinstance(given, Exception):
            self.ledger.add(step, Spent(calls=1, failed=1))
            raise given
        reply = reply_of(given, asked.messages)
        self.ledger.add(step, Spent(1, reply.usage.prompt, reply.usage.completion, cached=reply.usage.cached))
        return reply

    def stream(self, messages: Sequence[Message], *, step: str = "chat", tools: Sequence[Message] = ()) -> Stream:
        """Return the next answer word by word, as `memci.llm.Chat.stream`."""

        def pieces() -> Generator[str, None, Reply]:
            reply = self(messages, step=step, tools=tools)
            yield from words(reply.text)
            return reply

        return Stream(step, pieces())


def words(text: str) -> list[str]:
    """Cut *text* into pieces, each up to a blank and at most 8 characters long."""
    return re.findall("[^ ]{0,7} |[^ ]{1,8}", text)


def reply_of(given: ScriptedAnswer, messages: Sequence[Message]) -> Reply:
    """Return *given* as a reply. Its cost is a token for four characters of the texts."""
    if isinstance(given, Reply):
        return given
    if isinstance(given, Mapping) and ("role" in given or "tool_calls" in given):
        message = {"role": "assistant", "content": None, **given}
    elif isinstance(given, BaseModel):
        message = {"role": "assistant", "content": given.model_dump_json()}
    else:
        text = json.dumps(given, ensure_ascii=False) if isinstance(given, Mapping) else str(given)
        message = {"role": "assistant", "content": text}
    prompt = sum(len(text_of(each)) // 4 + 4 for each in messages)
    usage = Usage(prompt, len(text_of(message)) // 4 + 1)
    return Reply(message, usage, "tool_calls" if message.get("tool_calls") else "stop", "scripted")
