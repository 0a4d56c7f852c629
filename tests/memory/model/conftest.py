"""What the tests of the model's steps share: pages, and a model that says what it is told to."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from memci.llm import Reply
from memci.memory.backend import PageRecord
from memci.messages import Message

MAY = 1_714_831_200.0
"""2024-05-04 14:00 UTC, a Saturday"""


class Says:
    """A model that gives the same text each time, and keeps what it was asked."""

    def __init__(self, answer: object) -> None:
        self.text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
        self.asked: list[Sequence[Message]] = []
        self.steps: list[str] = []

    def __call__(self, messages: Sequence[Message], /, *, step: str = "chat", **_: Any) -> Reply:
        self.asked.append(messages)
        self.steps.append(step)
        return Reply({"role": "assistant", "content": self.text})

    @property
    def shown(self) -> str:
        """What the user message of the last call said."""
        return str(self.asked[-1][-1]["content"])


@pytest.fixture
def says() -> type[Says]:
    """A model that gives one answer: a text, or what becomes JSON."""
    return Says


@pytest.fixture
def page() -> Callable[..., PageRecord]:
    """A page of texts, user and assistant by turns, or of whole messages."""

    def made(*said: str | Message, index: int = 1, at: float | None = MAY, quotes: Sequence[int] = ()) -> PageRecord:
        roles = ("user", "assistant")
        entries = tuple(
            (n, {"role": roles[(n - 1) % 2], "content": each} if isinstance(each, str) else each)
            for n, each in enumerate(said, 1)
        )
        return PageRecord("alice", index, index, entries, at, frozenset(quotes))

    return made
