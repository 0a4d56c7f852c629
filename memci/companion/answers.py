"""Answers: what a companion gives back for a message.

    answer.text                "You land at 09:40."
    answer.recollection        what was found for it          answer.analysis     what was thought before searching
    answer.usage.prompt        tokens of all its calls        answer.receipt      where the turn is stored

This module knows nothing of how an answer comes about.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from pydantic import BaseModel

from ..context.report import Receipt
from ..llm.model import ChatModel, Reply, Usage
from ..memory.backend import Recollection
from ..messages import Message
from .query_planning import AnalysisResult


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one message of the user."""

    text: str
    """all that was said, as it was streamed"""
    receipt: Receipt
    messages: tuple[Message, ...]
    """what was appended: the user's message, tool calls and their results, the answer"""
    recollection: Recollection | None = None
    """what was found in the memory; None if it was not searched"""
    analysis: AnalysisResult | None = None
    """None if there was none, or if it failed"""
    usage: Usage = field(default_factory=Usage)
    """of all calls of the model, the analysis with them"""
    calls: int = 0
    """of the model, the analysis with them"""
    stopped: bool = False
    """whether somebody stopped it before its end"""


class AnswerStream:
    """The pieces of an answer, as they come. Closed before its end, it stores what was said so far.

    Iterate it, best in a `with` block, which closes it whatever happens; then `answer` is there.
    """

    def __init__(self, pieces: Iterator[str], outcome: "Outcome") -> None:
        self._pieces = pieces
        self._outcome = outcome

    @property
    def answer(self) -> Answer | None:
        """The answer, once its last piece was taken or the stream was closed; None before."""
        return self._outcome.answer

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def close(self) -> None:
        """Stop the answer, and store the user's message with what was said so far. Closing twice is fine."""
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


@dataclass(slots=True)
class Outcome:
    """What a stream leaves behind when it ends."""

    answer: Answer | None = None


class Counted:
    """A model whose calls are counted, for one answer; a `ChatModel` itself."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.ledger: object = getattr(chat, "ledger", None)
        """that of the model, which adds up what is rejected as well"""
        self.calls = 0
        self.usage = Usage()

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
        """Ask the model, and count what it cost."""
        self.calls += 1
        reply = self._chat(messages, step=step, tools=tools, answer=answer, attempt=attempt)
        self.usage += reply.usage
        return reply

    def pieces(self, messages: Sequence[Message], *, step: str, tools: Sequence[Message]) -> Iterator[str | Reply]:
        """Yield the texts of the reply as they come, then the reply; a model that can't stream gives one text."""
        stream = getattr(self._chat, "stream", None)
        if stream is None:
            reply = self(messages, step=step, tools=tools)
            yield from [reply.text] if reply.text else []
            yield reply
            return
        self.calls += 1
        open_stream = stream(messages, step=step, tools=tools)
        try:
            yield from open_stream
            self.usage += open_stream.reply.usage
            yield open_stream.reply
        finally:
            with suppress(Exception):  # the connection: the answer is whole by now, or nobody wants the rest
                getattr(open_stream, "close", lambda: None)()
