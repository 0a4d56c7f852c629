"""Replay: a recorded chat goes into a context as an agent would send it.

    user, tool …  ──▶ append_turn        assistant  ──▶ render (a call of the model), then append_turn

After every message it yields how far it has come.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...errors import InvalidSetting
from ...storage import SQLiteStorage, Storage
from ..stores import open_store

if TYPE_CHECKING:
    from ...context.context import Context
    from ...history.plain_chat import PlainChat

NONCE = "5eed0001"
"""random word of temporary contexts, fixed so that the same conversation always costs the same tokens"""


@dataclass(slots=True)
class ReplayProgress:
    """How far a replay has come."""

    turns: int  # of the whole chat
    total: int  # messages of the whole chat
    turn: int = 0  # turns begun
    messages: int = 0
    said: int = 0  # tokens of all messages so far, with the system prompt
    sizes: list[int] = field(default_factory=list)  # tokens of the request, per call of the model: a rendering

    @property
    def largest(self) -> int:
        """Tokens of the largest request."""
        return max(self.sizes, default=0)


def play(context: "Context", chat: "PlainChat", *, model: str | None = None) -> Iterator[ReplayProgress]:
    """Feed *chat* to *context*; yield the progress, which is one object, after every message.

    Before each message of the assistant the context is rendered, as it is before a call of the model. Where an answer
    was not recorded, it is rendered before the next turn.
    """
    from ...tokens import counter_for, message_tokens

    count = counter_for(model, None)
    openings = set(chat.openings())
    progress = ReplayProgress(len(openings), len(chat.messages))
    if chat.system is not None:
        progress.said = message_tokens({"role": "system", "content": chat.system}, count, model)
    waiting = False
    for position, message in enumerate(chat.messages):
        answers = message["role"] == "assistant"
        if answers or (waiting and position in openings):
            _call(context, chat, progress)
        chat.append(context.append_turn, position)
        waiting = not answers
        progress.turn += position in openings
        progress.messages += 1
        progress.said += message_tokens(message, count, model)
        if waiting and progress.messages == progress.total:
            _call(context, chat, progress)
        yield progress


@contextmanager
def replay_store(path: str | None, context: str) -> Iterator[Storage]:
    """Yield the store at *path* for a new context *context*; without a path, a temporary store."""
    if path is None:
        with (
            TemporaryDirectory(prefix="memci-", ignore_cleanup_errors=True) as folder,
            # a temporary store need not survive a power cut
            closing(SQLiteStorage(Path(folder, "memci.db"), durability="fast")) as storage,
        ):
            yield storage
        return
    with open_store(path, write=True, make=True) as kept:
        if kept.load(context) is not None:
            raise InvalidSetting("--store", f"{path!r} holds a context {context!r} already: name another store")
        yield kept


def _call(context: "Context", chat: "PlainChat", progress: ReplayProgress) -> None:
    # a call whose result is missing was recorded like that, and must not stop the replay
    context.render(tools=chat.tools, strict=False)
    progress.sizes.append(context.report().total)
