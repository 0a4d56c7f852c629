"""Where a command prints to, and how.

    Output(console, json=True).print_json({"well": True})

Texts of a conversation may hold anything: `visible` keeps them from steering the terminal. This module knows nothing of
what is printed.
"""

import codecs
import json
import re
from dataclasses import dataclass
from typing import Any

from rich.console import Console

_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_ASCII = dict(zip("█▓▒░·╱━─–…✓✗", "#=+-./=--.vx", strict=True))

PLAIN = "memci-plain"
"""How text is written where the encoding knows no bars: the name of a codec's error handler."""


@dataclass(frozen=True, slots=True)
class Output:
    """A console, and what it is used for."""

    console: Console
    json: bool = False
    """one JSON object, nothing else"""
    live: bool = False
    """a picture that changes while the command runs"""

    def print_json(self, value: dict[str, Any]) -> None:
        """Print *value* as JSON, in ASCII: it is the same on every terminal."""
        self.console.file.write(json.dumps(value, indent=2) + "\n")


def visible(text: str) -> str:
    """Return *text* with what would steer a terminal, or could not be written, as escapes."""
    shown = _STEERING.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return shown.encode("utf-8", "backslashreplace").decode()


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "it is named for writing only"
    return "".join(_ASCII.get(each, "?") for each in error.object[error.start : error.end]), error.end


codecs.register_error(PLAIN, _plain)
