"""The command line.

    $ memci demo
    $ memci replay conversation.json --window 8000
    $ memci inspect agent.db        … verify, export, import, erase, doctor

Nothing of the package imports it, so that typer and rich stay an extra. Only the command that is run is loaded.
"""

import signal
import sys
import warnings
from types import FrameType

MISSING = "memci: the command line needs typer and rich: pip install 'memci[cli]'"


def main() -> None:
    """Run the command that was typed."""
    try:
        from .app import app
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"{MISSING}\n")
        raise SystemExit(2) from None
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # not every system has both
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _exit)
    warnings.formatwarning = lambda message, *_place: f"memci: {message}\n"
    app(prog_name="memci")


def _exit(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # so that a temporary store goes, which may hold a conversation
