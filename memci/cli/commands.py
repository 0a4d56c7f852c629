"""The names of the commands, in the order of the help, and where each of them is.

    COMMANDS["verify"]      ("inspect", "Read everything in a store and say what is wrong with it.")
    load("verify")          memci.cli.inspect.run_verify

So the help, the version and what a shell completes need no module of a command. This module knows nothing of options.
"""

from collections.abc import Callable
from importlib import import_module

COMMANDS = {
    "demo": (
        "demo.command",
        "Watch a window at work: a conversation of 200 turns in 8,000 tokens, and a page of it recalled word for word.",
    ),
    "chat": ("chat.command", "Talk with a model that has a memory."),
    "replay": ("replay.command", "Replay a recorded conversation through a context, and see what its window does."),
    "inspect": ("inspect", "List the contexts in a store, or show one of them, or its memory."),
    "show": (
        "show",
        "Print a page, each message as it was appended, or write a conversation as one file of HTML.",
    ),
    "search": ("memory.search", "Search the memory: pages, facts, concepts."),
    "consolidate": ("memory.consolidate", "Feed memories the pages that wait for them, and let them do what is due."),
    "verify": ("inspect", "Read everything in a store and say what is wrong with it."),
    "salvage": ("salvage", "Save what can be read of a damaged store into a new one, and name what is lost."),
    "doctor": ("doctor", "Look at what memci runs on, and at how a store is kept here."),
    "files": ("files", "Write the pages as files, to be read and searched by coding agents."),
    "mcp": (
        "mcp",
        "Serve a store over MCP: recall_page, search_memory, contents, append_turn, and pages as resources.",
    ),
    "export": ("transfer", "Write a context as lines of JSON: all that is stored of it, for memci import."),
    "import": (
        "transfer",
        "Read a context back, whole or not at all: what memci export wrote, or a chat of another program.",
    ),
    "copy": ("copying", "Copy all contexts of a store to another one, exactly."),
    "rotate": ("rotation", "Wrap all data keys of an encrypted store with the first key of the environment."),
    "erase": (
        "erase",
        "Erase for good: the bytes are removed from the store's files, and from every fork that shares them.",
    ),
    "serve": ("serve", "Keep the window of agents whose code is not yours: a gateway between them and their provider."),
    "ui": ("ui", "Look inside a store with a browser: what the model saw at a turn, and why."),
}
"""The module of each command, and the first sentence of its help."""


def load(name: str) -> Callable[..., bool | None]:
    """Return the function of the command *name*, `run_NAME` of its module."""
    run: Callable[..., bool | None] = getattr(import_module(f".{COMMANDS[name][0]}", __package__), f"run_{name}")
    return run
