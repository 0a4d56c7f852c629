"""What `memci chat` is: a conversation with a model, kept in a store.

    $ memci chat agent.db --id alice --model gpt-4.1-mini
    > Book me a flight to Oslo.
    When do you want to go?
    > /pages

On a terminal it streams; from a pipe each line is a message, and its answer goes to standard output, or a line of JSON
about it. This module knows nothing of how an answer or a command is printed.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper

from ...companion import Companion
from ...context.context import Context
from ...errors import InvalidSetting, MemciError
from ...llm import Chat
from ...storage import Storage
from ..model_option import named_model
from ..output import Output
from ..stores import writable
from .input import messages_of, typed
from .output import JsonShown, PlainShown, Shown, TerminalShown
from .slash_commands import Talk, commanded, is_command

WINDOW = 32_000
"""tokens of a new context's window, if none is named"""
NAME = "me"
"""of the first context of a new store"""


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `memci chat`."""

    id: str | None = None
    model: str | None = None
    base_url: str | None = None
    window: int | None = None
    system: str | None = None
    role: str = ""
    analysis: bool = True
    search: bool = True
    memory_model: bool = True


def chatted(output: Output, path: str, wishes: Wishes) -> bool:
    """Lead a conversation in the store at *path*, which is made if there is none; return whether all was answered.

    Raises:
        InvalidSetting: If no model is configured, or an option makes no sense.
        StorageError: If the store can't be used.
    """
    with (
        named_model(wishes.model, wishes.base_url) as chat,
        writable(path, make=True) as storage,
        _context(storage, wishes, chat) as context,
    ):
        shown = _shown(output, context)
        companion = Companion(
            context,
            chat,
            role=wishes.role,
            analysis=wishes.analysis,
            search=wishes.search,
            on_tool=shown.tool,
        )
        talk = Talk(output, path, storage, context, chat.ledger)
        # a warning in the middle of an answer helps nobody: /memory tells what went wrong in the background
        logging.getLogger("memci").addHandler(logging.NullHandler())
        with _readable_input():
            if not isinstance(shown, TerminalShown):
                return _lead(talk, companion, shown, messages_of(sys.stdin))
            shown.welcome(path, context, chat.model)
            _lead(talk, companion, shown, typed(output.console))
            shown.farewell(path, context)
            return True


def _lead(talk: Talk, companion: Companion, shown: Shown, messages: Iterator[str]) -> bool:
    """Answer *messages*, one after another; return whether each had its answer."""
    well = True
    for text in messages:
        try:
            if is_command(text):
                if not shown.command(talk, text, commanded):
                    break
                continue
            said = text.removeprefix("/") if text.startswith("//") else text
            well = shown.answer(said, companion.stream(said)) and well
        except MemciError as error:
            shown.failed(text, error)
            well = False
    return well


def _shown(output: Output, context: Context) -> Shown:
    if output.json:
        return JsonShown(output, context.id)
    if sys.stdin.isatty() and sys.stdout.isatty():
        return TerminalShown(output)
    return PlainShown(output)


def _context(storage: Storage, wishes: Wishes, chat: Chat) -> Context:
    """Open the context that is wished for, or make it."""
    ids = [record.id for record in storage.contexts()]
    name = wishes.id or (NAME if not ids else ids[0])
    if wishes.id is None and len(ids) > 1:
        known = ", ".join(repr(each)[:60] for each in ids[:5])
        raise InvalidSetting("--id", f"name one: the store has {known}")
    new = name not in ids
    return Context.open(
        storage,
        id=name,
        system=wishes.system,
        model=wishes.model or (chat.model if new else None),
        window=wishes.window or (WINDOW if new else None),
        chat=chat if wishes.memory_model else None,
    )


@contextmanager
def _readable_input() -> Iterator[None]:
    """Take what is no text on standard input as marks, instead of failing."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="replace")
    yield
