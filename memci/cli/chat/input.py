r"""Input of a conversation: a message is one line, or several if each but the last ends in a backslash.

    > First line,\
    … second line.          ──▶  "First line,\nsecond line."

On a terminal the lines can be edited, and the arrow keys bring earlier ones back.
"""

import signal
from collections.abc import Iterable, Iterator
from itertools import chain

from rich.console import Console

PROMPT, MORE = "> ", ". "  # before a message, and before its further lines


def read_typed(console: Console) -> Iterator[str]:
    """Yield the messages typed at a prompt on *console*, until Ctrl-D or Ctrl-C."""
    plain = console.no_color or console.is_dumb_terminal or console.color_system is None
    try:
        import readline  # noqa: F401 -- input() edits lines once it is loaded
    except ImportError:
        plain = True
    styled = "{}" if plain else "\001\033[1;36m\002{}\001\033[0m\002"  # the marks tell readline what takes no room

    def asked() -> Iterator[str]:
        prompt = PROMPT
        while True:
            line = input(styled.format(prompt))
            prompt = MORE if _goes_on(line) else PROMPT
            yield line

    try:
        yield from messages_of(asked())
    except (EOFError, KeyboardInterrupt):
        end_whole()
        console.print()


def end_whole() -> None:
    """Ignore Ctrl-C from now on: the program is closing already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def messages_of(lines: Iterable[str]) -> Iterator[str]:
    """Yield the messages in *lines*; lines without text are left out."""
    begun = ""
    for line in chain(lines, [""]):
        begun += line.rstrip("\r\n")
        if _goes_on(line.rstrip("\r\n")):
            begun = begun[:-1] + "\n"
        else:
            if text := begun.strip():
                yield text
            begun = ""


def _goes_on(line: str) -> bool:
    """Return whether *line* ends in a backslash that no other backslash escapes."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1
