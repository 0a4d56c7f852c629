"""The command line.

    $ memci demo
    $ memci replay conversation.json --window 8000
    $ memci inspect agent.db        … verify, export, import, erase, doctor

Nothing of the package imports it, so that typer and rich stay an extra. Only the command that is run is loaded. This
module knows nothing of what the commands do.
"""

import signal
import sys
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

MISSING = "memci: the command line needs typer and rich: pip install 'memci[cli]'"

COMMANDS = {
    "demo": "demo.command",
    "chat": "chat.command",
    "replay": "replay.command",
    "inspect": "inspect",
    "show": "show",
    "search": "memory.search",
    "consolidate": "memory.consolidate",
    "verify": "inspect",
    "salvage": "salvage",
    "doctor": "doctor",
    "files": "files",
    "mcp": "mcp",
    "export": "transfer",
    "import": "transfer",
    "copy": "copying",
    "rotate": "rotation",
    "erase": "erase",
    "serve": "serve",
    "ui": "ui",
}
"""The module of each command."""


def loaded(name: str = "") -> "Typer":
    """Return the program with the command *name*, or with all commands if there is none of this name."""
    from .app import app

    for place in [COMMANDS[name]] if name in COMMANDS else COMMANDS.values():
        import_module(f".{place}", __name__)
    app.registered_commands.sort(key=lambda each: list(COMMANDS).index(each.name or ""))
    return app


def main() -> None:
    """Run the command that was typed."""
    try:
        app = loaded(*sys.argv[1:2])
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"{MISSING}\n")
        raise SystemExit(2) from None
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _ended)
    app(prog_name="memci")


def _ended(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # so that a temporary store goes, which may hold a conversation
