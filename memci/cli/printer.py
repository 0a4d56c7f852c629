r"""What a command returns, and the one printer that shows it: as text and tables, or with --json as JSON.

    Result({"store": "agents.db", "well": True}, ["✓ alice: 120 messages"])
The text of a conversation may hold anything: `visible` keeps it from controlling the terminal.
"""

import codecs
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from io import StringIO, TextIOWrapper
from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.segment import Segments
from rich.text import Text

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_ASCII = dict(zip("█▓▒░·╱━─–…✓✗", "#=+-./=--.vx", strict=True))

_PLAIN = "memci-plain"
"""name of a codec error handler: it writes bars and marks as ASCII where the encoding does not have them"""

NARROWEST = 76  # columns of a table at least: with fewer, rich leaves out the names; the terminal wraps the lines

Part = str | tuple[str | Text, str] | RenderableType
"""a line, a line and its style, or what rich draws; the terminal wraps lines, rich wraps the rest"""


@dataclass(frozen=True, slots=True)
class Result:
    """What a command found or did."""

    facts: Mapping[str, Any]  # what --json prints; dataclasses in it become objects
    view: Iterable[Part] = ()  # what people read
    well: bool = True  # False: the command ends with 1


@dataclass(frozen=True, slots=True)
class Printer:
    """Standard output, and how a command uses it."""

    console: Console
    json: bool = False  # print JSON, and nothing else
    live: bool = False  # draw pictures that change while the command runs

    def print(self, result: Result, *, indent: int | None = 2) -> None:
        """Print *result*; JSON is in ASCII, so that it is the same on every terminal."""
        if not self.json:
            self.show(*result.view)
        elif result.facts:
            self.console.file.write(json.dumps(result.facts, indent=indent, default=asdict) + "\n")
            self.console.file.flush()

    def show(self, *parts: Part) -> None:
        """Print *parts* for people, control characters in their lines escaped."""
        for part in parts:
            if isinstance(part, str | tuple):
                text, style = (part, "") if isinstance(part, str) else part
                line = text if isinstance(text, Text) else Text(visible(text), style=style)
                self.console.print(line, soft_wrap=True)
            else:
                wide = self.console.options.update_width(max(self.console.width, NARROWEST))
                self.console.print(Segments(self.console.render(part, wide)), crop=False, end="")

    def as_text(self, view: Iterable[Part]) -> str:
        """Return *view* as plain text."""
        text = StringIO()
        console = Console(file=text, width=100, color_system=None, highlight=False, markup=False)
        replace(self, console=console).show(*view)
        return text.getvalue()

    @contextmanager
    def progress(self, unit: str, sizes: Mapping[str, int]) -> Iterator[Callable[[str, int], None]]:
        """Show a bar while the block runs, if the output is live.

        It counts *unit*, of which each name in *sizes* has so many. Call the yielded function with a name and how many
        more of it are done.
        """
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
        with Progress(*columns, console=self.console, transient=True, disable=not self.live) as progress:
            task = progress.add_task("", total=sum(sizes.values()))
            yield lambda name, done: progress.update(task, description=visible(name)[:30], advance=done)


def standard_output(*, json: bool) -> Printer:
    """Return the printer of a command: live if standard output is a terminal and *json* is not asked for."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_PLAIN)
    console = Console(highlight=False, markup=False)
    return Printer(console, json, live=not json and not console.is_dumb_terminal and sys.stdout.isatty())


def proof(well: bool, text: str) -> Part:
    """Return a line with *text* behind a mark that says whether it is *well*."""
    return (f"✓ {text}", "green") if well else (f"✗ {text}", "red")


def many(count: int, noun: str) -> str:
    """Return *count* with the *noun* that it counts: "1 page", "2,000 pages"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def many_messages(count: int, erased: int | None) -> str:
    """Return "12 messages", or "12 messages, 4 of them erased"; None: that is not known."""
    if erased is None:
        return f"{many(count, 'message')}, not known how many of them erased"
    return many(count, "message") + (f", {erased:,} of them erased" if erased else "")


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of *counts*; None if one is not known."""
    known = list(counts)
    return None if None in known else sum(each or 0 for each in known)


def visible(text: str) -> str:
    """Return *text* with escapes for characters that control a terminal or can't be written. O(characters)."""
    shown = _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()


def _replace(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "the handler is used for writing only"
    return "".join(_ASCII.get(each, "?") for each in error.object[error.start : error.end]), error.end


codecs.register_error(_PLAIN, _replace)
