"""The answer of a companion to one message."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, TypedDict

from ..context.report import Receipt
from ..llm.model import ChatModel, Pieces, Reply, Usage, checked_reply
from ..memory.backend import Recollection
from ..messages import Message
from ..text.sanitize import unframe, unframe_pieces
from .query_planning import AnalysisResult


class MessageFacts(TypedDict, total=False):
    """Facts about a message, besides its text."""

    relationship: str
    """the user's relationship to the assistant, in a word (default: "friend", in the language of the talk)"""
    metadata: Mapping[str, object] | None
    """further facts, such as the user's city or the channel of the message"""
    at: datetime | None
    """the time of the message, in UTC if it has no zone; default: now. The model is asked to respect it."""


class SavedMemory(NamedTuple):
    """What a companion saved of a turn, on the word of its analysis."""

    kind: Literal["fact", "relationship"]
    """whether it is about the user, or about how the user and the assistant stand to each other"""
    text: str
    """one sentence"""
    context: str
    page: int
    """the page that says it"""
    kept: bool
    """whether the memory stores it; else only the application may"""


@dataclass(frozen=True, slots=True)
class CompanionAnswer:
    """The answer to one message of the user, stored."""

    text: str
    """all text of the answer, as it was streamed"""
    receipt: Receipt
    messages: tuple[Message, ...]
    """the appended messages: the user's, tool calls and their results, the answer"""
    recollection: Recollection | None = None
    """the memory's results; None if it was not searched"""
    analysis: AnalysisResult | None = None
    """None if it is switched off, or if it failed"""
    usage: Usage = field(default_factory=Usage)
    """the usage of all calls of the model, including the analysis"""
    calls: int = 0
    """the number of calls of the model, including the analysis"""
    stopped: bool = False
    """whether the user stopped it before its end"""


class AnswerStream(Pieces):
    """The pieces of an answer as they come. Closing it early stores the message and the text so far.

    Iterate over it, preferably in a `with` block, which closes it. Afterwards `answer` is set.
    """

    def __init__(self, run: Callable[["AnswerStream"], Generator[str, None, None]]) -> None:
        super().__init__(run(self))
        self.answer: CompanionAnswer | None = None
        """the answer; None until the last piece was taken or the stream was closed"""


class MeteredChat:
    """A `ChatModel` that counts the calls and tokens of one answer."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self.ledger: object = getattr(chat, "ledger", None)
        """the ledger of the model, which also counts rejected answers"""
        self.calls = 0
        self.usage = Usage()

    def __call__(self, messages: Sequence[Message], /, **options: Any) -> Reply:
        """Ask the model, and add its usage."""
        self.calls += 1
        reply = checked_reply(self._chat(messages, **options), str(options.get("step", "chat")))
        self.usage += reply.usage
        return reply

    def pieces(
        self, messages: Sequence[Message], *, step: str, tools: Sequence[Message], streamed: bool
    ) -> Iterator[str | Reply]:
        """Yield the pieces of the reply, then the reply. If it is not streamed, its text is one piece.

        Text that imitates a frame of memci is made harmless first.
        """
        stream = getattr(self._chat, "stream", None)
        if not streamed or stream is None:
            reply = _unframe_reply(self(messages, step=step, tools=tools))
            yield reply.text
            yield reply
            return
        self.calls += 1
        open_stream = stream(messages, step=step, tools=tools)
        try:
            yield from unframe_pieces(open_stream)
            reply = checked_reply(open_stream.reply, step)
            self.usage += reply.usage
            yield _unframe_reply(reply)
        finally:
            with suppress(Exception):  # an error of the connection: the answer is complete, or its rest is not wanted
                getattr(open_stream, "close", lambda: None)()


def _unframe_reply(reply: Reply) -> Reply:
    content = reply.message.get("content")
    if isinstance(content, list):
        texts = [each.get("text") if isinstance(each, dict) else None for each in content]
        pairs = zip(content, texts, strict=True)
        content = [{**each, "text": unframe(text)} if isinstance(text, str) else each for each, text in pairs]
    elif isinstance(content, str):
        content = unframe(content)
    return replace(reply, message={**reply.message, "content": content}) if content else reply
