"""The names of the commands, in the order of the help, and the module of each.
So `--help`, `--version` and shell completion load no module of a command.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

GROUPS = {
    "Begin": {
        "demo": ("replay.demo", "Watch a window of 8,000 tokens at work, over 200 turns."),
        "replay": ("replay.command", "See what a window does with a recorded conversation."),
        "chat": ("chat.command", "Talk with a model that has a memory."),
    },
    "Look": {
        "inspect": ("look", "List the contexts of a store, or show one, or its memory."),
        "show": ("look", "Print a page, or write a conversation as one HTML file."),
        "instructions": ("facts", "List the lasting instructions of the user, or drop some."),
        "facts": ("facts", "List what a memory knows, or learn, correct or forget a fact."),
        "search": ("memory.search", "Find pages and facts in the memory."),
        "ui": ("servers", "Look inside a store with a browser."),
        "files": ("look", "Write the pages as files that coding agents search."),
    },
    "Keep": {
        "verify": ("health", "Read everything in a store, and say what is wrong with it."),
        "doctor": ("doctor", "Check this machine, and how a store is kept on it."),
        "salvage": ("health", "Save what can be read of a damaged store into a new one."),
        "consolidate": ("memory.consolidate", "Feed memories the pages that wait for them: for cron."),
        "export": ("transfer", "Write contexts as lines of JSON."),
        "import": ("transfer", "Read an export back, or the chat of another program."),
        "copy": ("transfer", "Copy all contexts of a store to another one, exactly."),
        "backup": ("transfer", "Copy a store that is in use, whole and verified."),
        "rotate": ("erase", "Change the key of an encrypted store."),
        "erase": ("erase", "Erase a page, a context or all of an owner, for good."),
    },
    "Serve": {
        "serve": ("servers", "Keep the windows of agents whose code is not yours: a gateway."),
        "mcp": ("servers", "Serve a store to programs that speak MCP."),
    },
}
"""The commands as the help shows them: the module of each, and the first sentence of its own help."""

COMMANDS = {name: each for group in GROUPS.values() for name, each in group.items()}


def load(name: str) -> Callable[..., Any]:
    """Return the function of the command *name*, `run_NAME` of its module."""
    run: Callable[..., Any] = getattr(import_module(f".{COMMANDS[name][0]}", __package__), f"run_{name}")
    return run
