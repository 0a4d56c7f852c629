"""Calls of a model: counted, and kept in a file, so that a run that is taken up again pays for none of them twice.

    chat = Kept(Chat("…"), Path("calls.jsonl"), model="…")
    meter = Meter(chat)                   # one per memory: what its work cost
    meter(messages, step="topic")
    meter.spent                           {"topic": {"calls": 1, "prompt": 220, "completion": 31, "failed": 0}}

Kept is the answer to the same messages for the same step and attempt; a failure is not. Who asks the same twice in a
run gets two answers, and in the next run those two again. This module knows nothing of memories.
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from memci.errors import ModelError
from memci.llm import ChatModel, Reply, Usage
from memci.messages import Message

_WRITING = threading.Lock()


class Kept:
    """A model whose answers are remembered in a file of JSON lines, which several may share. Thread-safe."""

    def __init__(self, chat: ChatModel, file: Path, *, model: str) -> None:
        self._chat = chat
        self._file = file
        self._model = model
        self._asked: Counter[str] = Counter()
        self._known = {each["call"]: each for each in lines(file) if "call" in each}

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
        return self.timed(messages, step=step, tools=tools, answer=answer, attempt=attempt, max_tokens=max_tokens)[0]

    def timed(
        self,
        messages: Sequence[Message],
        *,
        step: str = "chat",
        tools: Sequence[Message] = (),
        answer: type[BaseModel] | None = None,
        attempt: int = 0,
        max_tokens: int | None = None,
    ) -> tuple[Reply, float]:
        """Return the answer, and the seconds that it took when it was given."""
        schema = None if answer is None else answer.model_json_schema()
        asked = json.dumps([self._model, step, attempt, list(messages), list(tools), schema], sort_keys=True)
        name = sha256(asked.encode()).hexdigest()[:32]
        with _WRITING:
            self._asked[name] += 1
            name = f"{name}-{self._asked[name]}"
        if (known := self._known.get(name)) is not None:
            return Reply(known["message"], Usage(*known["usage"]), known["finish"], known["model"]), known["seconds"]
        began = time.perf_counter()
        reply = self._chat(messages, step=step, tools=tools, answer=answer, attempt=attempt, max_tokens=max_tokens)
        seconds = round(time.perf_counter() - began, 3)
        usage = [reply.usage.prompt, reply.usage.completion, reply.usage.cached]
        row: dict[str, Any] = {
            "call": name,
            "step": step,
            "message": reply.message,
            "usage": usage,
            "finish": reply.finish,
        }
        row |= {"model": reply.model, "seconds": seconds}
        self._known[name] = row
        append(self._file, row)
        return reply, seconds


class Meter:
    """A model whose calls are counted by step. Thread-safe."""

    def __init__(self, chat: ChatModel) -> None:
        self._chat = chat
        self._lock = threading.Lock()
        self.spent: dict[str, dict[str, int]] = {}

    def __call__(self, messages: Sequence[Message], /, *, step: str = "chat", **options: Any) -> Reply:
        try:
            reply = self._chat(messages, step=step, **options)
        except ModelError:
            self._count(step, Usage(), failed=1)
            raise
        self._count(step, reply.usage)
        return reply

    @property
    def totals(self) -> dict[str, int]:
        """What all steps cost together."""
        names = ("calls", "prompt", "completion", "failed")
        with self._lock:
            return {name: sum(step[name] for step in self.spent.values()) for name in names}

    def _count(self, step: str, usage: Usage, *, failed: int = 0) -> None:
        with self._lock:
            row = self.spent.setdefault(step, {"calls": 0, "prompt": 0, "completion": 0, "failed": 0})
            row["calls"] += 1
            row["prompt"] += usage.prompt
            row["completion"] += usage.completion
            row["failed"] += failed


def lines(file: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines, [] if it is not there; a last line that was cut off is no row."""
    if not file.is_file():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").split(
        "\n"
    ):  # not splitlines: a text may hold other ends of lines
        try:
            rows.append(json.loads(line))
        except ValueError:
            continue
    return [row for row in rows if isinstance(row, dict)]


def append(file: Path, row: dict[str, Any]) -> None:
    """Write *row* to the end of a file of JSON lines; behind a line that was cut off it begins a new one."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with _WRITING, file.open("ab+") as written:
        if written.tell():
            written.seek(-1, 2)
            cut = written.read(1) != b"\n"
        else:
            cut = False
        written.write((b"\n" if cut else b"") + json.dumps(row, ensure_ascii=False).encode() + b"\n")
