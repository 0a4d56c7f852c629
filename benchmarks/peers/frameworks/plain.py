"""What needs no framework: plain windows, and what agents of the makers do, as they describe it.

    full history, sliding window      everything; the newest messages that fit
    drop and forget, half, a tenth    above the budget the window is cut to a share of it
    a new thread per task             where the data say that a task begins, all before it is gone
    users' messages kept              Codex, OpenAI's compaction: above 0.9 of the room a summary replaces all but the
                                      last group and the users' newest messages (20,000 tokens, 0.4 of the room)
    context editing                   Anthropic's clear_tool_uses with its defaults: above 100,000 tokens all results
                                      of tools but the last three are a placeholder
    compact                           Claude Code: above 0.92 of the room a summary of up to 2,000 tokens replaces all
                                      but the last group; its prompt is the request before, which the cache has

This module knows nothing of prices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...cache.manager import Manager, Setting
from ...conversation import Message, texts


@dataclass(slots=True)
class Full:
    """Everything, always."""

    setting: Setting
    messages: list[Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        return list(self.messages)


@dataclass(slots=True)
class Window:
    """The newest messages that fit; above the budget they are cut to a *share* of it, and begin with no result."""

    setting: Setting
    share: float = 1.0
    messages: list[Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        costs = [self.setting.cost(message) for message in self.messages]
        size, cut = sum(costs), 0
        goal = self.setting.room if size <= self.setting.room else self.share * self.setting.room
        while cut < len(costs) - 1 and size > goal:
            size -= costs[cut]
            cut += 1
        while cut and cut < len(costs) - 1 and self.messages[cut]["role"] == "tool":
            cut += 1
        del self.messages[:cut]
        return list(self.messages)


_SUMMARY = "Summary of what was said before:\n"


@dataclass(slots=True)
class Thread(Window):
    """A window that begins anew with each task."""

    def begin(self) -> None:
        """Begin another task."""
        self.messages = []


@dataclass(slots=True)
class Summarized:
    """A summary of all but the last group, with the users' newest messages if they are *kept*."""

    setting: Setting
    trigger: float
    length: int
    kept: int = 0
    """tokens of the users' messages that stay"""
    cached: bool = False
    """whether the prompt of the summary is the request before, which the cache has"""
    messages: list[Message] = field(default_factory=list)

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        if sum(map(self.setting.cost, self.messages)) > self.trigger * self.setting.room:
            self._compact()
        return list(self.messages)

    def _compact(self) -> None:
        cut = max(at for at, each in enumerate(self.messages) if each["role"] != "tool")
        old, last = self.messages[:cut], self.messages[cut:]
        users, left = [], self.kept
        for message in reversed(old):
            if message["role"] == "user" and not (message["content"] or "").startswith(_SUMMARY):
                left -= self.setting.cost(message)
                if left < 0:
                    break
                users.append(message)
        text = self.setting.script.write("\n".join(map(_said, old)), length=self.length, cached=self.cached)
        self.messages = [*reversed(users), {"role": "user", "content": _SUMMARY + text}, *last]


def _said(message: Message) -> str:
    return f"{message['role']}: " + "\n".join(texts(message))


@dataclass(slots=True)
class Edited(Full):
    """The whole history, whose old results of tools are cleared."""

    trigger: int = 100_000
    results: int = 3

    def call(self, turn: Sequence[Message]) -> list[Message]:
        """Take *turn*."""
        self.messages += turn
        if sum(map(self.setting.cost, self.messages)) <= self.trigger:
            return list(self.messages)
        old = [at for at, message in enumerate(self.messages) if message["role"] == "tool"][: -self.results]
        cleared = set(old)
        return [
            {**message, "content": "[cleared to save context]"} if at in cleared else message
            for at, message in enumerate(self.messages)
        ]


PEERS: dict[str, Callable[[Setting], Manager]] = {
    "full history": Full,
    "sliding window": Window,
    "drop and forget, half": lambda setting: Window(setting, 0.5),
    "drop and forget, a tenth": lambda setting: Window(setting, 0.1),
    "a new thread per task": lambda setting: Thread(setting, 0.5),
    "users' messages kept": lambda setting: Summarized(setting, 0.9, 600, kept=min(20_000, int(0.4 * setting.room))),
    "context editing": Edited,
    "compact": lambda setting: Summarized(setting, 0.92, 2_000, cached=True),
}
