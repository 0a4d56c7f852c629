"""Replaying: feeding a transcript to a context as an agent would.

    user, tool …  ──▶ append_turn        assistant  ──▶ render (a call of the model), then append_turn

What happens on the way is told to a `watch`. This module knows nothing of files or of the terminal.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ...context.context import Context
from ...errors import InvalidMessage, InvalidSetting
from ...storage import SQLiteStorage, Storage
from ...storage.sqlite.connection import Durability
from ...tokens import counter_for, message_tokens
from .transcripts import Transcript

NONCE = "5eed0001"
"""Of contexts that nobody keeps: the same conversation then costs the same tokens each time."""


@dataclass(slots=True)
class Tally:
    """How far a replay has come."""

    turns: int
    """interactions of the whole transcript"""
    total: int
    """messages of the whole transcript"""
    turn: int = 0
    """interactions begun"""
    messages: int = 0
    calls: int = 0
    """of the model: renderings"""
    said: int = 0
    """tokens of all messages so far, the system prompt with them"""
    sizes: list[int] = field(default_factory=list)
    """tokens of the request, per call"""

    @property
    def largest(self) -> int:
        """Tokens of the largest request."""
        return max(self.sizes, default=0)


Watch = Callable[[Context, Tally], None]


def play(context: Context, transcript: Transcript, *, model: str | None = None, watch: Watch | None = None) -> Tally:
    """Feed *transcript* to *context* and return the tally; *watch* is called after every message.

    Before each message of the assistant the context is rendered, as it is before a call of the model. Where an answer
    was not recorded, it is rendered before the next interaction.

    Raises:
        BudgetExceeded: If something does not fit the window.
        InvalidMessage: If a message is refused; it says where that stands in its file.
    """
    count = counter_for(model, None)
    tally = Tally(transcript.turns, len(transcript.steps))
    if transcript.system is not None:
        tally.said = message_tokens({"role": "system", "content": transcript.system}, count, model)
    openings = set(transcript.openings())
    waiting = False
    for position, step in enumerate(transcript.steps):
        answers = step.message["role"] == "assistant"
        if answers or (waiting and position in openings):
            _call(context, transcript, tally)
        try:
            context.append_turn(step.message, opens_page=step.opens_page)
        except InvalidMessage as error:
            raise InvalidMessage(f"{transcript.name}: {step.where or error.path}", error.reason) from None
        waiting = not answers
        tally.turn += position in openings
        tally.messages += 1
        tally.said += message_tokens(step.message, count, model)
        if watch is not None:
            watch(context, tally)
    if waiting:
        _call(context, transcript, tally)
    return tally


@contextmanager
def store_for(path: Path | None, context: str) -> Iterator[Storage]:
    """Yield the store at *path*, in which *context* is to be made; without a path, one that vanishes afterwards.

    Raises:
        InvalidSetting: If the store has such a context already.
        StorageError: If it can't be opened.
    """
    # A power cut takes a temporary store anyway.
    durability: Durability = "fast" if path is None else "full"
    with ExitStack() as stack:
        if path is None:
            path = Path(
                stack.enter_context(TemporaryDirectory(prefix="memci-", ignore_cleanup_errors=True)), "memci.db"
            )
        storage = SQLiteStorage(path, durability=durability)
        stack.callback(storage.close)
        if storage.load(context) is not None:
            raise InvalidSetting("--store", f"{str(path)!r} holds a context {context!r} already: name another file")
        yield storage


def _call(context: Context, transcript: Transcript, tally: Tally) -> None:
    # What was recorded was sent like that: a call whose result is missing must not stop the replay.
    context.render(tools=transcript.tools, strict=False)
    tally.calls += 1
    tally.sizes.append(context.report().total)
