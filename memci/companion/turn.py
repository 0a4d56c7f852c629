"""A turn: the question, the calls of tools, the answer, and the one append that stores them.

    render(question, …) ──▶ model ──▶ calls, results ──▶ render(question, calls, results, …) ──▶ model ──▶ answer
    append_turn(question, calls, results, answer)

How a turn ends decides what is stored:

    the model answers                  all of it
    the user stops the answer          the question, the calls that ran, the text so far, and a mark that says so
    the model fails                    nothing, and the same message can be sent again; but if a function of the caller
                                       ran, its effects are real: the turn so far, and a mark that says so

The companion's rules and the memory prompt count against the budget. The steps are those of `memci.context.loop`.
"""

import logging
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from ..context.context import Context
from ..context.loop import (
    STOPPED_CALL,
    Function,
    Toolbox,
    ToolCalls,
    answer,
    answer_own_calls,
    find_unanswered,
)
from ..context.report import Receipt
from ..errors import AnswerRejected, BudgetExceeded, InvalidMessage, InvalidSetting, LimitExceeded, WriteConflict, brief
from ..formats.envelope import CallIds, as_result
from ..formats.usage import CallsCost
from ..llm.model import Reply, Usage
from ..messages import Message, call_name, calls_of, check, tool_calls
from ..storage.codec import encode
from ..text.interface import section
from .answers import MeteredChat

ROUNDS = 8
"""rounds of tool calls in one turn, since the user waits; afterwards the model is asked to answer without tools"""
FRAMING = 8  # tokens that a message costs at most besides its text

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

Request = tuple[list[Message], Sequence[Message]]  # messages and the schemas of tools


class CompanionTools(Toolbox):
    """The tools of one companion: functions and their schemas; *watch* is called with each call and its result."""

    def __init__(
        self,
        context: Context,
        schemas: Sequence[Message],
        functions: Mapping[str, Function],
        watch: Callable[[Message, Message], None] | None,
    ) -> None:
        for schema in schemas:
            name = call_name(schema) if isinstance(schema, dict) else ""
            if not name:
                expected = "expected the schemas of functions in OpenAI's form"
                raise InvalidSetting("tools", f"{expected}, got {brief(schema)}")
            if context.handles(schema):
                raise InvalidSetting("tools", f"{name!r} is a tool of the context: leave it out, or rename yours")
            if not callable(functions.get(name)):
                raise InvalidSetting("functions", f"{name!r} has a schema and no function: functions={{{name!r}: …}}")
        if not isinstance(functions, Mapping) or (functions and not schemas):
            expected = "expected a dict by name, and the schemas of the functions as tools="
            raise InvalidSetting("functions", f"{expected}, got {brief(functions)}")
        super().__init__(context, functions)
        self.schemas = list(schemas)
        self.watch = watch


class Turn:
    """The `Exchange` of one question; *system* is added to the system message. Notes are in *language*."""

    def __init__(
        self,
        context: Context,
        chat: MeteredChat,
        tools: CompanionTools,
        text: str,
        *,
        at: datetime,
        system: str,
        language: str,
    ) -> None:
        self._context, self._chat, self._tools = context, chat, tools
        self._at, self._system, self._words = at, system, section("companion", language)
        self._op_id = f"companion-{uuid.uuid4().hex}"
        self._usage = Usage()
        """of the last request; zeros if the provider did not report it"""
        self._acted = False
        """whether a function of the caller was called"""
        self._memory = ""
        self._streamed = False
        self.messages: list[Message] = [{"role": "user", "content": text}]
        self._texts: list[str] = []
        """the text of each reply of the model that has text"""
        self._partial = ""
        """the text so far of the current reply"""

    @property
    def text(self) -> str:
        """All text so far, as it was yielded."""
        return "\n\n".join([*self._texts, *([self._partial] if self._partial else [])])

    def pieces(self, memory: str, *, stream: bool) -> Generator[str, None, None]:
        """Yield the answer as it comes, and run the tools that the model calls.

        The memory prompt *memory* comes in front of the question; "" for none.
        """
        self._memory, self._streamed = memory, stream
        return answer(self, self._ask, self._tools, most=ROUNDS + 1)

    def request(self, *, last: bool) -> Request:
        """Return the next request; the memory prompt is left out if there is no room for it."""
        notes, tools = ([self._words["closing"]], []) if last else ([], [*self._tools.schemas, *self._context.tools])
        if self._memory:
            try:
                return self._render([self._memory], notes), tools
            except BudgetExceeded as error:
                _LOG.debug("no room for the memory prompt: %d tokens are too few", error.budget)
        return self._render([], notes), tools

    def shorten(self, error: Exception) -> bool:
        """Return whether *error* says that the request was too long; then the next one is shorter."""
        return self._context.overflowed(error)

    def keep(self, reply: Reply, *, last: bool) -> ToolCalls | None:
        """Keep the message of *reply*; return its calls, None if it is the answer."""
        message = tidy(reply.message)
        if last:
            message.pop("tool_calls", None)
        calls = tool_calls(message)
        if not calls and not reply.text.strip() and not message.get("refusal"):
            raise AnswerRejected("chat", f"the answer is empty (it ended with {reply.finish!r:.40})")
        self.messages.append(message)
        if not calls:
            return None
        self._acted = self._acted or any(call_name(call) in self._tools.functions for call in calls)
        return answer_own_calls(self._context, calls)

    def add(self, call: Message, result: Message) -> None:
        """Keep the *result* of *call*."""
        self.messages.append(result)
        if self._tools.watch is not None:
            self._tools.watch(call, result)

    def store(self) -> Receipt:
        """Append the turn, with the usage that the provider reported for the last request."""
        used = self._usage
        return self._append(CallsCost(1, used.prompt, used.cached, 0, used.completion) if used.prompt else None)

    def store_stopped(self) -> Receipt:
        """Append the turn so far, which the user stopped."""
        stopped = self._words["stopped"]
        return self._end(f"{self._partial}\n{stopped}" if self._partial else stopped)

    def store_failed(self) -> Receipt | None:
        """Append the turn so far, since the model failed; do nothing if no function of the caller ran."""
        return self._end(self._words["failed"]) if self._acted else None

    def _end(self, text: str) -> Receipt:
        self.messages += [as_result(call["id"], STOPPED_CALL) for call in find_unanswered(self.messages)]
        self.messages.append({"role": "assistant", "content": text})
        return self._append(None)

    def _ask(self, request: Request) -> Generator[str | Reply, None, None]:
        """Yield the text of the model as it comes, then its reply."""
        messages, tools = request
        self._usage = Usage()
        for piece in self._chat.pieces(messages, step="chat", tools=tools, streamed=self._streamed):
            if isinstance(piece, Reply):
                self._usage = piece.usage
                self._texts += [self._partial] if self._partial else []
                self._partial = ""
                yield piece
            elif piece:
                before = "\n\n" if self._texts and not self._partial else ""
                self._partial += piece
                yield before + piece

    def _render(self, memory: Sequence[str], notes: Sequence[str]) -> list[Message]:
        """Return the window with the turn so far, *memory* in front of the question and *notes* behind it.

        Texts that are not part of the conversation are first rendered as pending messages behind it, so that they are
        counted, and then moved to their places. They are assistant messages, because those open no page: if a message
        of the turn is clipped, its marker must name the page on which the turn will be stored.
        """
        system = split_to_fit(self._system, self._context.count, self._context.clip_limit - FRAMING)
        extra = [{"role": "assistant", "content": text} for text in (*memory, *notes, *system)]
        shown = (*self.messages, *extra)
        rendered = self._fresh(lambda: self._context.render(*shown, tools=self._tools.schemas, at=self._at))
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
        """Call *act* and return its result; if another writer was first, refresh the context and call it again."""
        try:
            return act()
        except WriteConflict:
            self._context.refresh()
            return act()


def split_to_fit(text: str, count: Callable[[str], int], most: int) -> list[str]:
    """Return *text* in parts of at most *most* tokens. O(characters · log parts)."""
    if len(text) < 2 or count(text) <= most:
        return [text]
    half = len(text) // 2
    return split_to_fit(text[:half], count, most) + split_to_fit(text[half:], count, most)


def tidy(message: Message) -> Message:
    """Return a model's *message* ready to be appended: with the role "assistant", and a unique id for each call."""
    tidied = {**message, "role": "assistant"}
    try:
        if calls := calls_of(message):
            ids = CallIds(plain=False)
            named = [(call, call.get("id")) for call in calls]
            tidied["tool_calls"] = [
                {**each, "id": ids.of_call(id_ if isinstance(id_, str) else "")} for each, id_ in named
            ]
        else:
            tidied.pop("tool_calls", None)
        check(tidied)
        encode(tidied)
    except (InvalidMessage, LimitExceeded) as error:
        raise AnswerRejected("chat", f"a context does not accept the message of the answer: {error}") from error
    return tidied
