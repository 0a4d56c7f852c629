"""A turn: the question, the calls of tools, the answer, and the one append that stores them.

    render(question, …) ──▶ model ──▶ calls, results ──▶ render(question, calls, results, …) ──▶ model ──▶ answer
    append_turn(question, calls, results, answer)

What is appended is what happened:

    an answer                          all of it
    somebody stops it                  the question, what ran, what was said so far, and a mark that says so
    the model fails                    nothing: the same message can be sent again; but if a function of the caller's
                                       ran, what happened so far, since its effects are there, and a mark that says so

The request is the window, with what the companion says added to the system message and what is remembered in front of
the question; both count against the budget. This module knows nothing of analysis or search.
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
from .answers import Counted
from .context_view import Surroundings
from .tool_runner import Toolbox, tidy, unanswered

ROUNDS = 8
"""how often tools may be called in one turn; then the model is asked to answer without"""
STOPPED = "[the user stopped the answer here]"
FAILED = "[no answer came: the model failed]"
CLOSING = (
    "This is a note of the program, not of the user: no more tools can be called for this message. Answer it now with "
    "what you have."
)

_LOG = logging.getLogger("memci")
_T = TypeVar("_T")


class Turn:
    """One question on its way to its answer.

    Args:
        context: Where it is asked.
        around: What is around it there.
        chat: Who answers.
        toolbox: What may be called.
        text: The user's message.
        at: When it was said.
        system: What is added to the system message.
    """

    def __init__(
        self,
        context: Context,
        around: Surroundings,
        chat: Counted,
        toolbox: Toolbox,
        text: str,
        *,
        at: datetime,
        system: str,
    ) -> None:
        self._context, self._around, self._chat, self._toolbox = context, around, chat, toolbox
        self._at, self._system = at, system
        self._op_id = f"companion-{uuid.uuid4().hex}"
        self._usage: Usage | None = None
        """of the last request, if the provider said so"""
        self._acted = False
        """whether a function of the caller's was called"""
        self.messages: list[Message] = [{"role": "user", "content": text}]
        self._said: list[str] = []
        """what the model said, a text per reply, those without text left out"""
        self._partial = ""
        """what it said of a reply that is not there yet"""

    @property
    def text(self) -> str:
        """All that was said so far, as it was yielded."""
        return "\n\n".join([*self._said, *([self._partial] if self._partial else [])])

    def pieces(self, remembered: str, *, stream: bool) -> Iterator[str]:
        """Yield the answer as it comes, and call what the model calls; *remembered* stands in front of the question.

        Raises:
            ModelError: If the model does not answer.
            BudgetExceeded: If the question does not fit the window.
        """
        for number in range(ROUNDS + 1):
            last = number == ROUNDS
            reply = yield from self._asked(remembered, last=last, stream=stream)
            message = tidy(reply.message)
            if last:
                message.pop("tool_calls", None)
            if not tool_calls(message):
                if not reply.text.strip() and not message.get("refusal"):
                    raise AnswerRejected("chat", f"the answer is empty (it ended with {reply.finish!r:.40})")
                self.messages.append(message)
                return
            self.messages.append(message)
            self._acted = self._acted or self._toolbox.acts(message)
            for result in self._toolbox.answers(message):
                self.messages.append(result)

    def stored(self) -> Receipt:
        """Append the turn, with what the provider reported of the last request.

        Raises:
            StorageError: If it could not be stored; nothing was.
        """
        usage = {"prompt_tokens": self._usage.prompt} if self._usage is not None and self._usage.prompt else None
        return self._append(self.messages, usage)

    def stored_as_stopped(self) -> Receipt:
        """Append what happened until somebody stopped the answer."""
        said = f"{self._partial}\n{STOPPED}" if self._partial else STOPPED
        message = {"role": "assistant", "content": said}
        self.messages += [*unanswered(self.messages), message]
        return self._append(self.messages, None)

    def stored_as_failed(self) -> Receipt | None:
        """Append what happened until the model failed, if it can't be undone by forgetting it; else nothing."""
        if not self._acted:
            return None
        self.messages += [*unanswered(self.messages), {"role": "assistant", "content": FAILED}]
        return self._append(self.messages, None)

    def _asked(self, remembered: str, *, last: bool, stream: bool) -> Generator[str, None, Reply]:
        """Yield what the model says as it comes, and return its reply."""
        request = self._request(remembered, [CLOSING] if last else [])
        tools = [] if last else self._toolbox.schemas
        self._usage = None
        if stream:
            replies = self._chat.pieces(request, step="chat", tools=tools)
        else:
            replies = whole(self._chat(request, step="chat", tools=tools))
        for piece in replies:
            if isinstance(piece, Reply):
                self._usage = piece.usage
                self._said += [self._partial] if self._partial else []
                self._partial = ""
                return piece
            if piece:
                before = "\n\n" if self._said and not self._partial else ""
                self._partial += piece
                yield before + piece
        raise AssertionError("a model's pieces end with its reply")

    def _request(self, remembered: str, notes: Sequence[str]) -> list[Message]:
        """Return the messages of the next request; what is remembered is left out if there is no room for it.

        Raises:
            BudgetExceeded: If the question does not fit the window.
        """
        if remembered:
            try:
                return self._rendered([remembered], notes)
            except BudgetExceeded as error:
                _LOG.debug("no room for what is remembered: %d tokens are too few", error.budget)
        return self._rendered([], notes)

    def _rendered(self, remembered: Sequence[str], notes: Sequence[str]) -> list[Message]:
        """Return the window with the turn so far, what is *remembered* in front of the question, *notes* behind it.

        All that is said beside the conversation is rendered as pending behind it, so that it is counted, and is moved
        to its place then. As messages of the assistant they open no page, so that what is clipped of the turn itself
        names the page that it will be on.
        """
        system = halved(self._system, self._around.count, self._around.largest)
        extra = [{"role": "assistant", "content": text} for text in (*remembered, *notes, *system)]
        view = self._fresh(lambda: self._context.render(*self.messages, *extra, tools=self._toolbox.own))
        if view[-len(extra) :] != extra:
            raise BudgetExceeded(self._around.budget, {"beside the conversation": self._around.largest})
        del view[-len(extra) :]
        first = view[0] if view and view[0]["role"] == "system" else None
        prompt = self._system if first is None else f"{first['content']}\n\n{self._system}"
        question = len(view) - len(self.messages)
        return [
            {"role": "system", "content": prompt},
            *view[0 if first is None else 1 : question],
            *({"role": "user", "content": text} for text in remembered),
            *view[question:],
            *({"role": "user", "content": text} for text in notes),
        ]

    def _append(self, messages: Sequence[Message], usage: object) -> Receipt:
        return self._fresh(lambda: self._context.append_turn(*messages, op_id=self._op_id, usage=usage, at=self._at))

    def _fresh(self, act: Callable[[], _T]) -> _T:
        """Return what *act* returns; if another one wrote the context meanwhile, read it anew first."""
        try:
            return act()
        except WriteConflict:
            self._context.refresh()
            return act()


def whole(reply: Reply) -> Iterator[str | Reply]:
    """Yield the text of *reply*, and then itself."""
    yield reply.text
    yield reply


def halved(text: str, count: Callable[[str], int], most: int) -> list[str]:
    """Return *text* in parts of at most *most* tokens. O(characters · log parts)."""
    if len(text) < 2 or count(text) <= most:
        return [text]
    half = len(text) // 2
    return halved(text[:half], count, most) + halved(text[half:], count, most)
