"""A turn: the question, the calls of tools, the answer, and the one append that stores them.

    render(question, …) ──▶ model ──▶ calls, results ──▶ render(question, calls, results, …) ──▶ model ──▶ answer
    append_turn(question, calls, results, answer)

What is appended is what happened:

    an answer                          all of it
    the answer is stopped              the question, the calls that ran, the text so far, and a mark that says so
    the model fails                    nothing: the same message can be sent again; but if a function of the caller's
                                       ran, what happened so far, since its effects are real, and a mark that says so

The companion's rules and the memory prompt count against the budget. This module knows nothing of analysis or search.
"""

import logging
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from datetime import datetime
from typing import TypeVar

from ..context.context import Context
from ..context.report import Receipt
from ..errors import AnswerRejected, BudgetExceeded, WriteConflict
from ..llm.model import Reply, Usage
from ..messages import Message, tool_calls
from .answers import MeteredChat
from .tool_runner import Toolbox, tidy, unanswered

ROUNDS = 8
"""how often tools may be called in one turn; then the model is asked to answer without"""
FRAMING = 8
"""tokens of a message beside its text, at most"""
STOPPED = "[the user stopped the answer here]"
FAILED = "[no answer came: the model failed]"
CLOSING = (
    "This is a note of the program, not of the user: no more tools can be called for this message. Answer it now with "
    "what you have."
)

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


class Turn:
    """One question on its way to its answer; *system* is added to the system message."""

    def __init__(
        self, context: Context, chat: MeteredChat, toolbox: Toolbox, text: str, *, at: datetime, system: str
    ) -> None:
        self._context, self._chat, self._toolbox = context, chat, toolbox
        self._at, self._system = at, system
        self._op_id = f"companion-{uuid.uuid4().hex}"
        self._usage: Usage | None = None
        """of the last request, if the provider reported it"""
        self._acted = False
        """whether a function of the caller's was called"""
        self.messages: list[Message] = [{"role": "user", "content": text}]
        self._texts: list[str] = []
        """a text per reply of the model; replies without text are left out"""
        self._partial = ""
        """the text so far of a reply that is not whole yet"""

    @property
    def text(self) -> str:
        """All text so far, as it was yielded."""
        return "\n\n".join([*self._texts, *([self._partial] if self._partial else [])])

    def pieces(self, memory: str, *, stream: bool) -> Iterator[str]:
        """Yield the answer as it comes, and run the tools that the model calls.

        The memory prompt *memory* stands in front of the question; "" for none.
        """
        for number in range(ROUNDS + 1):
            last = number == ROUNDS
            reply = yield from self._asked(memory, last=last, stream=stream)
            message = tidy(reply.message)
            if last:
                message.pop("tool_calls", None)
            answers = not tool_calls(message)
            if answers and not reply.text.strip() and not message.get("refusal"):
                raise AnswerRejected("chat", f"the answer is empty (it ended with {reply.finish!r:.40})")
            self.messages.append(message)
            if answers:
                return
            self._acted = self._acted or self._toolbox.acts(message)
            for result in self._toolbox.answers(message):
                self.messages.append(result)

    def stored(self) -> Receipt:
        """Append the turn, with what the provider reported of the last request."""
        spent = self._usage
        if spent is None or not spent.prompt:
            return self._append(None)
        tokens = {"prompt_tokens": spent.prompt, "completion_tokens": spent.completion, "cached_tokens": spent.cached}
        return self._append(tokens)

    def stored_as_stopped(self) -> Receipt:
        """Append what happened until the answer was stopped."""
        return self._ended(f"{self._partial}\n{STOPPED}" if self._partial else STOPPED)

    def stored_as_failed(self) -> Receipt | None:
        """Append what happened until the model failed, if a function of the caller's ran; else nothing."""
        return self._ended(FAILED) if self._acted else None

    def _ended(self, text: str) -> Receipt:
        self.messages += [*unanswered(self.messages), {"role": "assistant", "content": text}]
        return self._append(None)

    def _asked(self, memory: str, *, last: bool, stream: bool) -> Generator[str, None, Reply]:
        """Yield the text of the model as it comes, and return its reply."""
        request = self._request(memory, [CLOSING] if last else [])
        tools = [] if last else self._toolbox.schemas
        self._usage = None
        for piece in self._chat.pieces(request, step="chat", tools=tools, streamed=stream):
            if isinstance(piece, Reply):
                self._usage = piece.usage
                self._texts += [self._partial] if self._partial else []
                self._partial = ""
                return piece
            if piece:
                before = "\n\n" if self._texts and not self._partial else ""
                self._partial += piece
                yield before + piece
        raise AssertionError("a model's pieces end with its reply")

    def _request(self, memory: str, notes: Sequence[str]) -> list[Message]:
        """Return the messages of the next request; the memory prompt is left out if there is no room for it."""
        if memory:
            try:
                return self._rendered([memory], notes)
            except BudgetExceeded as error:
                _LOG.debug("no room for the memory prompt: %d tokens are too few", error.budget)
        return self._rendered([], notes)

    def _rendered(self, memory: Sequence[str], notes: Sequence[str]) -> list[Message]:
        """Return the window with the turn so far, *memory* in front of the question and *notes* behind it.

        The texts that are not part of the conversation are first rendered as pending messages behind it, so that they
        are counted, and then moved to their places. They are messages of the assistant, because these open no page: if
        a message of the turn is clipped, its marker must name the page that the turn will be on.
        """
        system = halved(self._system, self._context.count, self._context.clip_limit - FRAMING)
        extra = [{"role": "assistant", "content": text} for text in (*memory, *notes, *system)]
        rendered = self._fresh(lambda: self._context.render(*self.messages, *extra, tools=self._toolbox.own))
        if rendered[-len(extra) :] != extra:
            raise BudgetExceeded(self._context.budget, {"beside the conversation": self._context.clip_limit - FRAMING})
        del rendered[-len(extra) :]
        first = rendered[0] if rendered and rendered[0]["role"] == "system" else None
        prompt = self._system if first is None else f"{first['content']}\n\n{self._system}"
        question = len(rendered) - len(self.messages)
        return [
            {"role": "system", "content": prompt},
            *rendered[0 if first is None else 1 : question],
            *({"role": "user", "content": text} for text in memory),
            *rendered[question:],
            *({"role": "user", "content": text} for text in notes),
        ]

    def _append(self, usage: object) -> Receipt:
        op_id, at = self._op_id, self._at
        return self._fresh(lambda: self._context.append_turn(*self.messages, op_id=op_id, usage=usage, at=at))

    def _fresh(self, act: Callable[[], _T]) -> _T:
        """Return what *act* returns; if another writer was first, read the context again and repeat it."""
        try:
            return act()
        except WriteConflict:
            self._context.refresh()
            return act()


def halved(text: str, count: Callable[[str], int], most: int) -> list[str]:
    """Return *text* in parts of at most *most* tokens. O(characters · log parts)."""
    if len(text) < 2 or count(text) <= most:
        return [text]
    half = len(text) // 2
    return halved(text[:half], count, most) + halved(text[half:], count, most)
