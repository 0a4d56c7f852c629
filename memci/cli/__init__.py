"""The command line: `memci demo`, `memci replay FILE`, `memci inspect STORE`, `memci verify STORE`.

    $ memci demo
    $ memci replay conversation.json --window 8000

Nothing of the package imports it, so that typer and rich stay an extra. This module knows nothing of the commands.
"""

import sys

MISSING = "memci: the command line needs typer and rich: pip install 'memci[cli]'"


def main() -> None:
    """Run the command that was typed."""
    try:
        from .app import app  # noqa: PLC0415 -- what it imports may not be installed
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.stderr.write(f"{MISSING}\n")
        raise SystemExit(2) from None
    app(prog_name="memci")
