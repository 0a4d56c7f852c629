r"""What a user types: a message is one line, or several lines that end in a backslash, but for the last.

    > First line,\
    … second line.          ──▶  "First line,\nsecond line."

On a terminal the lines can be edited, and the arrow keys bring earlier ones back. This module knows nothing of what is
typed.
"""

import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import find_spec

from rich.console import Console

PROMPT, MORE = "> ", ". "


def typed(console: Console) -> Iterator[str]:
    """Yield what is typed at a prompt on *console*, until Ctrl-D or Ctrl-C ends it."""
    plain = console.no_color or console.is_dumb_terminal or console.color_system is None
    edited = find_spec("readline") is not None
    if edited:
        with suppress(ImportError):
            import readline  # noqa: F401 -- input() edits lines once it is loaded

    def prompted(prompt: str) -> str:
        if plain or not edited:
            return input(prompt)
        return input(f"\001\033[1;36m\002{prompt}\001\033[0m\002")  # the marks tell readline what takes no room

    try:
        while True:
            lines = [prompted(PROMPT)]
            while _goes_on(lines[-1]):
                lines[-1] = lines[-1][:-1]
                lines.append(prompted(MORE))
            if text := "\n".join(lines).strip():
                yield text
    except (EOFError, KeyboardInterrupt):
        end_whole()
        console.print()


def end_whole() -> None:
    """Ignore Ctrl-C from now on: the program is closing already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def messages_of(lines: Iterable[str]) -> Iterator[str]:
    """Yield the messages in *lines*; lines without text are left out."""
    begun: list[str] = []
    for line in lines:
        begun.append(line.rstrip("\r\n"))
        if _goes_on(begun[-1]):
            begun[-1] = begun[-1][:-1]
            continue
        if text := "\n".join(begun).strip():
            yield text
        begun = []
    if text := "\n".join(begun).strip():
        yield text


def _goes_on(line: str) -> bool:
    """Return whether *line* ends in a backslash that no other backslash escapes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
