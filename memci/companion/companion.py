"""Companion: a conversation with a model that has a memory, over a context.

    1  analysis    the last turns and the message ──▶ a query for the memory, a fact to keep
    2  search      the memory ──▶ the memory prompt, in front of the question
    3  answer      role, memory prompt, the window, the question, tools ──▶ the answer
    4  append      the whole turn is stored; then the memory learns the fact

Steps 1 and 2 can be switched off.
"""

import logging
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Unpack

from ..context.context import Context
from ..context.loop import Function
from ..context.report import Receipt
from ..errors import HandlePoisoned, InvalidSetting, StorageError, brief
from ..llm.model import ChatModel, check_chat
from ..memory.backend import Recollection
from ..memory.tiers.rules import DEFAULTS
from ..messages import Message, text_of
from ..text.interface import LANGUAGES, Language, section
from ..text.language.sentences import main_language
from ..tools.search_memory import LONGEST_QUERY
from .answers import AnswerStream, CompanionAnswer, MessageFacts, MeteredChat, SavedMemory
from .memory_prompt import MemoryPrompt
from .query_planning import TURNS, AnalysisResult, analyse
from .turn import FRAMING, CompanionTools, Turn

SHARE = 8  # the memory prompt may cost a budget divided by this: an eighth leaves the conversation most of the room
MEMORY_TOKENS = 4_000
"""tokens that the memory prompt costs at most: it changes each turn, so no prompt cache makes it cheaper"""
LEAST_TOKENS = 100  # tokens that the memory prompt may always cost: fewer hold no line beside its frame

_LOG = logging.getLogger(__name__)


class Companion:
    """A conversation in *context*, answered by *chat*. One turn at a time.

    Args:
        context: The conversation; its system prompt is sent, too.
        chat: A model, such as `memci.llm.Chat`. If it has a method `stream`, answers come in pieces.
        role: A description of the companion. It follows the context's system prompt in the same message, and is not
            stored.
        analysis: Whether a call of the model first decides what to search for and what to keep. Without it, each
            message is itself the query, and nothing is kept besides the conversation.
        search: Whether the memory is searched before the model answers.
        analyst: The model for the analysis; default: *chat*.
        tools: The schemas of tools that the model may call, in addition to those of the context.
        functions: The functions by the names in the schemas, asynchronous ones too. They get the arguments as keywords
            and return a text or a JSON value. The model reads an error that one raises.
        language: The language of what is added to a request: "en", "zh", "ja" or "ko". Default: that of most of the
            user's last messages; for the rules in the system message, that of the system prompt and the role.
        memory_tokens: The largest cost of the memory prompt; default: an eighth of a request's budget, at most 4,000.
        on_tool: Called with each call of a tool and its result.
        on_save: Called with what the analysis found worth saving (`SavedMemory`), after the turn was stored. An error
            that it raises reaches the caller.
        clock: Returns the time of messages that have none, in seconds since 1970.

    Raises:
        InvalidSetting: If an argument has no valid value.
    """

    def __init__(
        self,
        context: Context,
        chat: ChatModel,
        *,
        role: str = "",
        analysis: bool = True,
        search: bool = True,
        analyst: ChatModel | None = None,
        tools: Sequence[Message] = (),
        functions: Mapping[str, Function] | None = None,
        language: Language | None = None,
        memory_tokens: int | None = None,
        on_tool: Callable[[Message, Message], None] | None = None,
        on_save: Callable[[SavedMemory], None] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not isinstance(context, Context):
            raise InvalidSetting("context", f"expected a Context, got {brief(context)}: Companion(context, chat)")
        for name, model in (("chat", chat), ("analyst", analyst or chat)):
            check_chat(name, model)
        if not isinstance(role, str):
            raise InvalidSetting("role", f"expected a text, got {brief(role)}")
        if memory_tokens is not None and (type(memory_tokens) is not int or memory_tokens < LEAST_TOKENS):
            expected = f"expected a number of tokens (an int from {LEAST_TOKENS})"
            raise InvalidSetting("memory_tokens", f"{expected}, got {brief(memory_tokens)}")
        if language not in {None, *LANGUAGES}:
            raise InvalidSetting("language", f"expected one of {', '.join(LANGUAGES)}, got {brief(language)}")
        self.context = context
        self.role = role
        self.analysis = analysis
        self.search = search
        self._chat, self._analyst = chat, analyst or chat
        self._memory_tokens, self._language = memory_tokens, language
        self._clock, self._on_save = clock, on_save
        self._tools = CompanionTools(context, tools, functions or {}, on_tool)

    def respond(self, text: str, **facts: Unpack[MessageFacts]) -> CompanionAnswer:
        """Store the turn, and return the answer to *text*, the user's message.

        Raises:
            InvalidSetting: If there is no text, or a fact has no valid value.
            ModelError: If the model does not answer. Nothing is stored, and the message can be sent again. Only if one
                of *functions* was called, the turn so far is stored, and a note on the error names its page.
            BudgetExceeded: If the message does not fit the window.
            StorageError: If the turn could not be stored.
        """
        stream = self._stream(text, streamed=False, **facts)
        for _ in stream:
            pass
        assert stream.answer is not None, "a turn that ends has an answer"
        return stream.answer

    def stream(self, text: str, **facts: Unpack[MessageFacts]) -> AnswerStream:
        """Return a stream of the answer to *text*; its `answer` is set after the last piece.

        The first request is sent when the first piece is taken. If the stream is closed early, or Ctrl-C stops it, the
        message and the text so far are stored with a mark that says so. Iterating raises the errors of `respond`.
        """
        return self._stream(text, streamed=True, **facts)

    def _stream(
        self,
        text: str,
        *,
        streamed: bool,
        relationship: str | None = None,
        metadata: Mapping[str, object] | None = None,
        at: datetime | None = None,
    ) -> AnswerStream:
        if not isinstance(text, str) or not text.strip():
            raise InvalidSetting("text", f"expected the user's message (a str that is not empty), got {brief(text)}")
        if at is not None and not isinstance(at, datetime):
            raise InvalidSetting("at", f"expected a datetime, got {brief(at)}")
        now = datetime.fromtimestamp(self._clock()).astimezone() if at is None else at
        now = now if now.tzinfo is not None else now.replace(tzinfo=UTC)  # as in the store
        rules, language = (self._language,) * 2 if self._language else self._languages(text)
        near = section("companion", language)["friend"] if relationship is None else relationship
        prompt = MemoryPrompt(now, near, metadata or {}, language=language)
        return AnswerStream(lambda stream: self._pieces(text, prompt, rules, stream, streamed=streamed))

    def _languages(self, text: str) -> tuple[str, str]:
        """Return the language of the rules, and that of what is different in each turn. O(messages in the window).

        That of the rules stays, so that the provider's cache keeps them: it is that of the text in front of them.
        """
        turns = self.context.turns(sys.maxsize)
        said = [text_of(message) for turn in turns for message in turn if message["role"] == "user"] + [text]
        written = f"{self.context.system or ''} {self.role}".strip()
        return main_language([written or said[0]]), main_language(said[: -TURNS - 1 : -1])

    def _pieces(
        self, text: str, prompt: MemoryPrompt, rules: str, stream: AnswerStream, *, streamed: bool
    ) -> Generator[str, None, None]:
        chat = MeteredChat(self._chat)
        analyst = chat if self._analyst is self._chat else MeteredChat(self._analyst)
        instructions = section("companion", rules)["instructions"]
        system = f"{self.role}\n\n{instructions}" if self.role else instructions
        turn = Turn(self.context, chat, self._tools, text, at=prompt.now, system=system, language=prompt.language)
        analysis: AnalysisResult | None = None
        found: Recollection | None = None

        def finish(receipt: Receipt, *, stopped: bool = False) -> None:
            usage, calls, messages = chat.usage, chat.calls, tuple(turn.messages)
            if analyst is not chat:
                usage, calls = usage + analyst.usage, calls + analyst.calls
            stream.answer = CompanionAnswer(turn.text, receipt, messages, found, analysis, usage, calls, stopped)
            self._learn(analysis, receipt, prompt.now)

        try:
            query: str | None = text[:LONGEST_QUERY]
            if self.analysis:
                analysis, query = analyse(analyst, text, self.context, role=self.role, language=prompt.language)
            found = self._found(query)
            yield from turn.pieces(self._memory_text(prompt, found), stream=streamed)
        except Exception as error:
            if (kept := turn.store_failed()) is not None:
                error.add_note(f"what the tools did until then is stored: page #{kept.page}")
            raise
        except BaseException:  # Ctrl-C, or the stream was closed
            try:
                finish(turn.store_stopped(), stopped=True)
            except HandlePoisoned:
                _LOG.debug("an answer was stopped after its context was closed: it is not stored")
            raise
        finish(turn.store())

    def _found(self, query: str | None) -> Recollection | None:
        """Search the memory for *query*; return None without a query, or if the memory can't be read now."""
        if not self.search or query is None or not query.strip():
            return None
        try:
            rules = getattr(self.context.memory, "rules", None) or DEFAULTS
            return self.context.search_memory(query, k=rules.found_pages, budget=self._room())
        except StorageError as error:
            _LOG.warning("the answer is made without the memory: %s", type(error).__name__)
            return None

    def _memory_text(self, prompt: MemoryPrompt, found: Recollection | None) -> str:
        from ..memory.tiered_memory import TieredMemory

        memory = self.context.memory
        profile = strategy = ""
        if isinstance(memory, TieredMemory):
            with suppress(StorageError):
                known = memory.session.tiers().profile  # one small query
                profile, strategy = known.text, known.strategy
        if not profile and found is not None:
            profile = found.profile
        return replace(prompt, profile=profile, strategy=strategy, found=found).text(self.context, self._room())

    def _room(self) -> int:
        """Return the tokens that the memory prompt may cost."""
        wanted = self._memory_tokens or min(MEMORY_TOKENS, self.context.budget // SHARE)
        return max(LEAST_TOKENS, min(wanted, self.context.clip_limit - FRAMING))

    def _learn(self, analysis: AnalysisResult | None, receipt: Receipt, at: datetime) -> None:
        fact = analysis.fact if analysis is not None else None
        if analysis is None or analysis.memory_to_save is None or fact is None:
            return
        learn, name, page = getattr(self.context.memory, "learn", None), self.context.id, receipt.page
        kind, kept = analysis.memory_to_save.type, learn is not None
        try:
            if learn is not None:
                learn(fact, context=name, index=page, about="user", at=at.timestamp(), kind=kind)
        except StorageError as error:  # the turn itself is stored, and the memory reads it like any other turn
            kept = False
            _LOG.warning("a fact of page #%d is not kept: %s", page, type(error).__name__)
        if self._on_save is not None:
            self._on_save(SavedMemory(kind, fact, name, page, kept))
