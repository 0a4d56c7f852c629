"""A scripted server, a chat over it, and a clock that is set by hand."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memci.llm import Chat
from memci.testing.llm import ModelServer

HI = [{"role": "user", "content": "Hi"}]


class Clock:
    """The time in seconds, as a test sets it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MEMCI_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def chat_over(clock: Clock) -> Iterator[Callable[..., Chat]]:
    """Give what makes a chat over a server; all of them are closed at the end."""
    made: list[Chat] = []

    def make(server: ModelServer, **settings: Any) -> Chat:
        given = {"base_url": server.base_url, "clock": clock, **settings}
        made.append(Chat("test-model", **given))
        return made[-1]

    yield make
    for chat in made:
        chat.close()


@pytest.fixture
def chat(server: ModelServer, chat_over: Callable[..., Chat]) -> Chat:
    return chat_over(server)
