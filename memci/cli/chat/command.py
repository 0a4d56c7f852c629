"""`memci chat`: a conversation with a model, kept in a store.

On a terminal it streams. From a pipe each line is a message, and its answer goes to standard output, or a line of JSON
about it.
"""

import logging
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from typing import Annotated

from typer import Option

from ...errors import MemciError
from ..options import WINDOW, BaseUrl, Int, NewStore, Str, named_model, tokens
from ..printer import Printer, Result
from ..stores import choose, find_context, open_store
from .display import Display
from .input import messages_of, read_typed
from .slash_commands import Talk, is_command

_WINDOW = 32_000  # tokens of a new context's window, if none is named: most models have as many
_NAME = "me"  # id of the first context of a new store


def run_chat(
    store: NewStore,
    *,
    id: Annotated[Str, Option("--id", "-c", metavar="ID", help="The context; it is made if there is none.")] = None,  # noqa: A002
    owner: Annotated[Str, Option(metavar="NAME", help="Owner of the context and its memory; default: the ID.")] = None,
    model: Annotated[Str, Option(metavar="NAME", help="The model; default: MEMCI_MODEL.")] = None,
    base_url: BaseUrl = None,
    window: Annotated[Int, tokens(*WINDOW, help="The context length; default: 32000.")] = None,
    system: Annotated[Str, Option(metavar="TEXT", help="The system prompt, which is stored with the context.")] = None,
    role: Annotated[str, Option(metavar="TEXT", help="The role of the model in this conversation.")] = "",
    no_analysis: Annotated[
        bool, Option("--no-analysis", help="Search for the message itself; saves a call of the model.")
    ] = False,
    no_search: Annotated[bool, Option("--no-search", help="Do not search the memory before an answer.")] = False,
    no_memory_model: Annotated[bool, Option("--no-memory-model", help="Do not use the model for the memory.")] = False,
    printer: Printer,
) -> Iterator[Result]:
    """Talk with a model that has a memory. From a pipe, each line is a message."""
    from ...companion import Companion
    from ...context.context import Context

    with named_model(model, base_url) as chat, open_store(store, write=True, make=True) as storage:
        ids = [record.id for record in storage.contexts(owner=owner)]
        name = id or (choose("--id", None, ids, what="context", path=store) if ids else _NAME)
        new = find_context(storage, name, owner) is None
        context = Context.open(
            storage,
            id=name,
            owner=owner,
            new=owner is not None,
            system=system,
            model=model or (chat.model if new else None),
            window=window or (_WINDOW if new else None),
            chat=None if no_memory_model else chat,
        )
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(errors="replace")
        with context:
            talk = Talk(store, storage, context, chat.ledger)
            at_terminal = sys.stdin.isatty() and sys.stdout.isatty() and not printer.json
            display = Display(printer, talk, at_terminal=at_terminal)
            companion = Companion(
                context, chat, role=role, analysis=not no_analysis, search=not no_search, on_tool=display.tool
            )
            # a warning in the middle of an answer is noise: /memory shows what went wrong in the background
            logging.getLogger("memci").addHandler(logging.NullHandler())
            yield display.welcome(chat.model)
            for text in read_typed(printer.console) if at_terminal else messages_of(sys.stdin):
                try:
                    if is_command(text):
                        if (result := display.command(text)) is None:
                            break
                    else:
                        message = text.removeprefix("/") if text.startswith("//") else text
                        result = display.answer(message, companion.stream(message))
                except MemciError as error:
                    result = display.failed(text, error)
                yield result
            yield display.farewell()
