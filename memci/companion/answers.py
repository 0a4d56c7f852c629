"""Answers: what a companion returns for a message.

    answer.text                "You land at 09:40."
    answer.recollection        what the memory found          answer.analysis     the analysis before the search
    answer.usage.prompt        tokens of all its calls        answer.receipt      where the turn is stored

This module knows nothing of how an answer is made.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypedDict

from ..context.report import Receipt
from ..llm.model import ChatModel, Pieces, Reply, Usage, checked_reply
from ..memory.backend import Recollection
from ..messages import Message
from ..text.sanitize import unframe, unframe_pieces
from .query_planning import AnalysisResult


class MessageFacts(TypedDict, total=False):
    """What a companion may be told of a message, besides its text."""

    relationship: str
    """what the user is to the assistant, in a word (default: "friend")"""
    metadata: Mapping[str, object] | None
    """more facts: where the message came from, the user's city"""
    at: datetime | None
    """its time, in UTC if it has no zone; default: now. The model is told to mind it."""


@dataclass(frozen=True, slots=True)
class CompanionAnswer:
    """The answer to one message of the user, stored."""

    text: str
    """all text of the answer, as it was streamed"""
    receipt: Receipt
    messages: tuple[Message, ...]
    """what was appended: the user's message, tool calls and their results, the answer"""
    recollection: Recollection | None = None
    """what the memory found; None if it was not searched"""
    analysis: AnalysisResult | None = None
    """None if it is switched off, or if it failed"""
    usage: Usage = field(default_factory=Usage)
    """of all calls of the model, the analysis included"""
    calls: int = 0
    """calls of the model, the analysis included"""
    stopped: bool = False
    """whether it was stopped before its end"""


class AnswerStream(Pieces):
    """The pieces of an answer, as they come. If it is closed before its end, it stores the message and the text so far.

    Iterate over it, best in a `with` block, which closes it in any case; then `answer` is there.
    """

    def __init__(self, run: Callable[["AnswerStream"], Generator[str, None, None]]) -> None:
        super().__init__(run(self))
        self.answer: CompanionAnswer | None = None
        """the answer, once the last piece was taken or the stream was closed; None before"""


class MeteredChat:
    """A `ChatModel` that counts the calls and tokens of one answer."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.ledger: object = getattr(chat, "ledger", None)
        """the model's ledger, which also counts rejected answers"""
        self.calls = 0
        self.usage = Usage()

    def __call__(self, messages: Sequence[Message], /, **options: Any) -> Reply:
        """Ask the model, and count the cost."""
        self.calls += 1
        reply = checked_reply(self._chat(messages, **options), str(options.get("step", "chat")))
        self.usage += reply.usage
        return reply

    def pieces(
        self, messages: Sequence[Message], *, step: str, tools: Sequence[Message], streamed: bool
    ) -> Iterator[str | Reply]:
        """Yield the pieces of the reply, then the reply; if it is not streamed, or can't be, its text is one piece.

        A text that imitates a frame of the program is made harmless first.
        """
        stream = getattr(self._chat, "stream", None)
        if not streamed or stream is None:
            reply = _unframed(self(messages, step=step, tools=tools))
            yield reply.text
            yield reply
            return
        self.calls += 1
        open_stream = stream(messages, step=step, tools=tools)
        try:
            yield from unframe_pieces(open_stream)
            reply = checked_reply(open_stream.reply, step)
            self.usage += reply.usage
            yield _unframed(reply)
        finally:
            with suppress(Exception):  # of the connection: the answer is whole by now, or the rest is not wanted
                getattr(open_stream, "close", lambda: None)()


def _unframed(reply: Reply) -> Reply:
    content = reply.message.get("content")
    if isinstance(content, str):
        content = unframe(content)
    elif isinstance(content, list):
        texts = [each.get("text") if isinstance(each, dict) else None for each in content]
        content = [
            {**each, "text": unframe(text)} if isinstance(text, str) else each
            for each, text in zip(content, texts, strict=True)
        ]
    return replace(reply, message={**reply.message, "content": content}) if content else reply
