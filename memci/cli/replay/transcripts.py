"""Transcripts: recorded conversations, read from a file and joined end to end into what a context is fed.

    trip.json    {"messages": [system, user, assistant, …]}   ──▶   system="…", steps: user, assistant, …
    log.jsonl    a message per line                           ──▶   the same

A file may be JSON or JSON lines; which conversations it holds is found by `formats`. The first system message becomes
the system prompt; later ones that say the same are skipped. This module knows nothing of windows or of the terminal.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...errors import InvalidMessage, InvalidSetting
from ...messages import Message, text_of
from .formats import Step, conversations, steps, tools_of

SIGNATURES = {
    b"SQLite format 3\0": "a SQLite file, not a conversation: if it is a store, look at it with memci inspect",
    b"\x1f\x8b": "compressed: unpack it first",
    b"PK\x03\x04": "a zip archive: unpack it first",
    b"%PDF": "a PDF, not a conversation in JSON",
}


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, ready to be played."""

    name: str
    steps: tuple[Step, ...]
    system: str | None = None
    tools: tuple[Message, ...] = ()
    left_out: int = 0
    """later system messages that say something else than the first: a context has one system prompt"""

    @property
    def turns(self) -> int:
        """How many interactions it has."""
        return sum(1 for _ in self.openings())

    def openings(self) -> Iterator[int]:
        """Yield the position of each step that opens a page."""
        for position, step in enumerate(self.steps):
            if position == 0 or (step.opens_page and step.message["role"] == "user"):
                yield position

    def first(self, turns: int) -> "Transcript":
        """Return the first *turns* interactions.

        Raises:
            InvalidSetting: If there are not so many.
        """
        starts = [*self.openings(), len(self.steps)]
        if not 1 <= turns < len(starts):
            raise InvalidSetting("--at", f"{self.name} has the turns 1 to {len(starts) - 1:,}, not {turns:,}")
        return replace(self, steps=self.steps[: starts[turns]])


def read(path: Path, *, dialogue: int | None = None) -> Transcript:
    """Return the conversations in *path* ("-": standard input), or only number *dialogue*, counted from 1.

    Raises:
        InvalidSetting: If the file can't be read, is not JSON, or holds no conversation; it says what and where.
        InvalidMessage: If a message is not one that a provider would accept; it says which.
    """
    name = "standard input" if str(path) == "-" else path.name
    try:
        found = list(conversations(_values(_text(path, name), name)))
        if dialogue is not None:
            if not 1 <= dialogue <= len(found):
                raise InvalidSetting("--dialogue", f"{name} has the dialogues 1 to {len(found):,}, not {dialogue:,}")
            found = [found[dialogue - 1]]
        placed = [item for conversation in found for item in conversation]
        taken = [step for where, value in placed for step in steps(value, where)]
        tools = next((tools for _, value in placed if (tools := tools_of(value))), ())
    except InvalidMessage as error:
        raise InvalidMessage(f"{name}: {error.path}", error.reason) from None
    except RecursionError:
        raise InvalidSetting(name, "its values are nested too deeply for a conversation") from None
    return joined(name, taken, tools)


def joined(name: str, taken: Sequence[Step], tools: Sequence[Message] = ()) -> Transcript:
    """Return *taken* as a transcript, the system messages taken out of it.

    Raises:
        InvalidSetting: If nothing is left.
    """
    system: str | None = None
    kept, left_out = [], 0
    for step in taken:
        if step.message["role"] not in {"system", "developer"}:
            kept.append(step)
            continue
        text = text_of(step.message)
        if system is None:
            system = text
        left_out += text != system
    if not kept:
        raise InvalidSetting(name, "holds no messages: expected at least one of a user, an assistant or a tool")
    return Transcript(name, tuple(kept), system, tuple(tools), left_out)


def _text(path: Path, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except FileNotFoundError:
        raise InvalidSetting(str(path), "there is no such file: check the path") from None
    except IsADirectoryError:
        raise InvalidSetting(str(path), "is a folder: name one file in it") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InvalidSetting(str(path), f"can't be read: {reason}") from None
    for signature, what in SIGNATURES.items():
        if raw.startswith(signature):
            raise InvalidSetting(name, f"is {what}")
    if not raw.strip():
        raise InvalidSetting(name, "is empty: expected a conversation in JSON or JSON lines")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidSetting(
            name, f"is not text in UTF-8 (byte {error.start:,} is 0x{raw[error.start]:02x}): save it as UTF-8"
        ) from None


def _values(text: str, name: str) -> Any:
    """Return what the JSON *text* says; the values of JSON lines as {line number: value}."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            raise InvalidSetting(
                name, f"line {error.lineno:,}, column {error.colno:,}: not valid JSON: {error.msg}"
            ) from None
    except ValueError as error:
        raise InvalidSetting(name, f"not a JSON that can be read: {error}") from None
    values = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values[number] = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidSetting(
                name, f"line {number:,}, column {error.colno:,}: not valid JSON: {error.msg}; expected a value per line"
            ) from None
        except ValueError as error:
            raise InvalidSetting(name, f"line {number:,}: not a JSON that can be read: {error}") from None
    return values
