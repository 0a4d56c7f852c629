"""What goes before a question: memories that are told a dialogue, and give notes for a question.

    none      nothing: what a model guesses
    sliding   the newest lines that fit the budget
    full      all lines, clipped from the old end where they don't fit the model's window
    memci     a context on SQLite: the lines in its window, and what `search_memory` finds within the rest of the budget
    vectors   memci with a sentence model, if there is one
    memoryos  a reimplementation, in `memoryos`

All of them get the same lines and give lines in the same form, in the order in which they were said. Questions change
nothing: their order and a run that is taken up again make no difference. This module knows nothing of prompts or
scores.
"""

import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from memci import Context, Policy, SQLiteStorage
from memci.llm import ChatModel
from memci.memory import Recollection, TieredMemory
from memci.memory.retrieval.embedders import Embedder
from memci.tokens import counter_for

from .dialogues import Dialogue, Said

count = counter_for("gpt-4o")

BUDGET = 4_000
WINDOW = 128_000

_SHARE = 0.25
"""of memci's budget, for the lines that are still in its window"""
_BESIDE = 100
"""tokens of memci's window for what is no line: the system prompt and frames"""
_SMALLEST = 500
"""tokens of a window that has room for any message of a talk"""
_MANY = 300
"""pages that are asked for: more than fit"""
_FACTS = 20
_DAY = 86_400.0
_AGAIN = 6
"""how often a memory's model is given time for what is left"""


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a system gives for a question."""

    notes: str
    clipped: bool = False
    """whether the window was too small for what belongs into it"""


class System(Protocol):
    """A memory under test."""

    def tell(self, dialogue: Dialogue) -> None:
        """Take in all of a dialogue."""
        ...

    def recall(self, question: str) -> Recalled:
        """Return the notes for a question. It changes nothing."""
        ...

    def details(self) -> dict[str, Any]:
        """Return what else is to be told of the memory, as JSON."""
        ...

    def close(self) -> None:
        """Let go of the dialogue."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What a system may use."""

    budget: int = BUDGET
    """tokens of notes"""
    window: int = WINDOW
    """tokens of the answering model, with 1,000 of them for the question and the answer"""
    embedder: Embedder | None = None
    """a sentence model"""
    chat: ChatModel | None = None
    """a model for the memory's own work"""


@dataclass(slots=True)
class _Plain:
    """The newest lines within a number of tokens."""

    tokens: int
    owed: bool = False
    """whether all lines belong there, so that it is told when some do not fit"""
    _notes: Recalled = field(default=Recalled(""))

    def tell(self, dialogue: Dialogue) -> None:
        kept = fitting((line.line for line in reversed(dialogue.lines)), self.tokens, gaps=False)
        self._notes = Recalled("\n".join(reversed(kept)), self.owed and len(kept) < len(dialogue.lines))

    def recall(self, question: str) -> Recalled:  # noqa: ARG002
        return self._notes

    def details(self) -> dict[str, Any]:
        return {}

    def close(self) -> None:
        self._notes = Recalled("")


class Memci:
    """A context as an agent has one. With a model, its memory does all of its work before the first question."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._closing = ExitStack()
        self._folder = Path(self._closing.enter_context(tempfile.TemporaryDirectory()))

    def tell(self, dialogue: Dialogue) -> None:
        self._storage = SQLiteStorage(self._folder / "talk.db", durability="fast")
        self._closing.callback(self._storage.close)
        self._lines: dict[tuple[int, int], int] = {}
        self._told = dialogue.lines
        self._now = dialogue.lines[-1].at  # the talk's own time, not ours: a run of tomorrow finds the same
        with self._opened() as context:
            for number, line in enumerate(dialogue.lines):
                message = {"role": "user", "name": line.who, "content": line.text}
                for entry in context.append_turn(message, at=datetime.fromtimestamp(line.at, UTC)).entries:
                    self._lines[entry.page, entry.ordinal] = number
                context.render()
            context.flush()
            for _ in range(_AGAIN):
                self._details = _worked(self._memory)
                if not self._details.get("waiting"):
                    break
                self._now += _DAY  # what a model answered badly is asked for again later
                context.flush()
        self._context = self._closing.enter_context(self._opened(read_only=True))
        active = {page.index for page in self._context.pages() if page.where in {"active", "open"}}
        self._window = self._newest(number for (page, _), number in self._lines.items() if page in active)

    def recall(self, question: str) -> Recalled:
        left = self._limits.budget - sum(cost(self._told[number].line) for number in self._window)
        found = self._context.search_memory(question, k=_MANY, budget=max(left, 1))
        known = _known(found) if self._limits.chat is not None else []
        known = fitting(known, left // 4)
        left -= sum(map(cost, known))
        pieces: dict[int, list[tuple[int, str]]] = {}
        for number, start, text in self._pieces(found):
            line = Said(self._told[number].who, text, self._told[number].at).line
            if cost(line) <= left:
                left -= cost(line)
                pieces.setdefault(number, []).append((start, text))
        for number in self._window:
            pieces[number] = [(0, self._told[number].text)]
        lines = []
        for number in sorted(pieces):
            text = " … ".join(text for _, text in sorted(pieces[number]))
            lines.append(Said(self._told[number].who, text, self._told[number].at).line)
        return Recalled("\n".join([*known, *lines]))

    def details(self) -> dict[str, Any]:
        return self._details

    def close(self) -> None:
        self._closing.close()

    def _opened(self, *, read_only: bool = False) -> Context:
        given: dict[str, Any] = {
            "embedder": self._limits.embedder,
            "read_only": read_only,
            "clock": lambda: self._now,
        }
        if self._limits.chat is not None and not read_only:
            if "chat" not in signature(TieredMemory.__init__).parameters:
                raise SystemExit("this memci's memory takes no model: leave --memory-model out")
            given["chat"] = self._limits.chat
        self._memory = TieredMemory(self._storage, owner="talk", **given)
        self._closing.callback(self._memory.close)
        open_context = Context.view if read_only else Context.open
        return open_context(
            self._storage,
            id="talk",
            system="You remember.",
            window=max(int(self._limits.budget * _SHARE), _SMALLEST) + _BESIDE,
            reply=1,
            policy=Policy(notice=False, contents_tokens=1, instruction_tokens=0),
            memory=self._memory,
        )

    def _newest(self, numbers: Iterable[int]) -> list[int]:
        """Return, in order, the newest lines of these that fit the budget: nearly always all."""
        left, kept = self._limits.budget, []
        for number in sorted(numbers, reverse=True):
            left -= cost(self._told[number].line)
            if left >= 0:
                kept.append(number)
        return kept[::-1]

    def _pieces(self, found: Recollection) -> Iterable[tuple[int, int, str]]:
        for page in found.pages:
            for piece in page.pieces:
                number = self._lines[page.index, piece.entry]
                if number not in self._window:
                    yield number, piece.start, piece.text


DEFAULT = ("memci", "full", "sliding", "memoryos", "none")


def systems() -> dict[str, Callable[[Limits], System]]:
    """Return what makes each system."""
    from .memoryos import MemoryOS

    return {
        "memci": lambda limits: Memci(replace(limits, embedder=None)),
        "full": lambda limits: _Plain(limits.window - 1_000, owed=True),
        "sliding": lambda limits: _Plain(limits.budget),
        "memoryos": MemoryOS,
        "none": lambda _limits: _Plain(0),
        "vectors": Memci,
    }


def fitting(lines: Iterable[str], tokens: int, *, gaps: bool = True) -> list[str]:
    """Return the lines that fit, best first; without *gaps*, those before the first that does not."""
    kept = []
    for line in lines:
        if cost(line) <= tokens:
            tokens -= cost(line)
            kept.append(line)
        elif not gaps:
            break
    return kept


def cost(line: str) -> int:
    """Return the tokens of a line and its end."""
    return count(line) + 1


def _known(found: Recollection) -> list[str]:
    facts = [*found.user_facts, *found.assistant_facts]
    told = [f"(known) {fact.text}" for fact in sorted(facts, key=lambda fact: -fact.score)[:_FACTS]]
    return [f"(known) {found.profile}", *told] if found.profile else told


def _worked(memory: TieredMemory) -> dict[str, Any]:
    work = getattr(memory, "work", None)
    return asdict(work()) if work is not None else {}
