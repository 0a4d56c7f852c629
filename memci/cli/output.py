r"""Where a command prints to, and how.

    Output(console, json=True).print_json({"well": True})
    Output(console).line("title: \x1b[2J")                     prints   title: \x1b[2J, as seven harmless characters

The text of a conversation may hold anything: `visible` keeps it from controlling the terminal. This module knows
nothing of what is printed.
"""

import codecs
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from ..errors import InvalidSetting, StorageFull

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_ASCII = dict(zip("█▓▒░·╱━─–…✓✗", "#=+-./=--.vx", strict=True))

PLAIN = "memci-plain"
"""the name of a codec's error handler: how text is written where the encoding has no bars or marks"""


@dataclass(frozen=True, slots=True)
class Output:
    """A console, and how a command uses it."""

    console: Console
    json: bool = False
    """print one JSON object, and nothing else"""
    live: bool = False
    """draw a picture that changes while the command runs"""

    def print_json(self, value: dict[str, Any]) -> None:
        """Print *value* as JSON, in ASCII: it is the same on every terminal."""
        self.console.file.write(json.dumps(value, indent=2) + "\n")

    def line(self, text: str, style: str = "") -> None:
        """Print *text*, control characters escaped; the terminal wraps it where it is too long."""
        self.console.print(Text(visible(text), style=style), soft_wrap=True)

    def proof(self, well: bool, text: str) -> None:
        """Print *text* behind a mark that says whether it is well."""
        self.line(f"{'✓' if well else '✗'} {text}", "green" if well else "red")

    @contextmanager
    def progress(self, unit: str, sizes: Mapping[str, int]) -> Iterator[Callable[[str, int], None]]:
        """Show a bar while the block runs, if the output is live.

        It counts *unit*, of which each name in *sizes* has so many; what is yielded is called with a name and how many
        of its own are done.
        """
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
        with Progress(*columns, console=self.console, transient=True, disable=not self.live) as progress:
            task = progress.add_task("", total=sum(sizes.values()))
            yield lambda name, done: progress.update(task, description=visible(name)[:30], advance=done)


def terminal(*, json: bool = False, no_live: bool = False) -> Output:
    """Return what a command prints to: standard output, live if it is a terminal and neither option forbids it."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=PLAIN)
    console = Console(highlight=False, markup=False)
    still = json or no_live or console.is_dumb_terminal
    return Output(console, json, live=not still and sys.stdout.isatty())


def many(count: int, noun: str) -> str:
    """Return *count* with the *noun* that it counts: "1 page", "2,000 pages"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def visible(text: str) -> str:
    """Return *text* with escapes for characters that control a terminal or can't be written. O(characters)."""
    shown = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()


@contextmanager
def new_file(target: str) -> Iterator[BinaryIO]:
    """Yield the new file *target*, which only its owner may read; it is removed if writing it fails."""
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise InvalidSetting(target, "is there already, and was left as it is: name a new file") from None
    except (OSError, ValueError) as error:
        raise InvalidSetting(target, f"can't be made: {error}") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException as error:
        with suppress(OSError):
            Path(target).unlink()
        if isinstance(error, OSError) and not hasattr(error, "retryable"):
            raise StorageFull(f"{target!r} can't be written: {error}") from error
        raise


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "the handler is used for writing only"
    return "".join(_ASCII.get(each, "?") for each in error.object[error.start : error.end]), error.end


codecs.register_error(PLAIN, _plain)
