"""Transcripts: recorded conversations, read from a file and joined end to end into one conversation.

    trip.json    {"messages": [system, user, assistant, …]}   ──▶   system="…", steps: user, assistant, …
    log.jsonl    a message per line                           ──▶   the same

A file may be JSON or JSON lines; `formats` finds which conversations it holds. The first system message becomes
the system prompt; later ones with the same text are skipped. This module knows nothing of windows or of the terminal.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from ...errors import InvalidMessage, InvalidSetting
from ...messages import Message, text_of
from ..source import Source
from .formats import Step, conversations, steps, tools_of


@dataclass(frozen=True, slots=True)
class Transcript:
    """A conversation, ready to be played."""

    name: str
    steps: tuple[Step, ...]
    system: str | None = None
    tools: tuple[Message, ...] = ()
    left_out: int = 0
    """later system messages that differ from the first: a context has one system prompt"""

    @property
    def turns(self) -> int:
        """How many turns it has."""
        return sum(1 for _ in self.openings())

    def openings(self) -> Iterator[int]:
        """Yield the position of each step that opens a page."""
        for position, step in enumerate(self.steps):
            if position == 0 or (step.opens_page and step.message["role"] == "user"):
                yield position

    def pages(self) -> list[list[Message]]:
        """Return its messages, turn by turn. O(messages)."""
        starts = [*self.openings(), len(self.steps)]
        return [[step.message for step in self.steps[start:end]] for start, end in pairwise(starts)]

    def first(self, turns: int) -> "Transcript":
        """Return its first *turns* turns.

        Raises:
            InvalidSetting: If it does not have so many.
        """
        starts = [*self.openings(), len(self.steps)]
        if not 1 <= turns < len(starts):
            raise InvalidSetting("--at", f"{self.name} has the turns 1 to {len(starts) - 1:,}, not {turns:,}")
        return replace(self, steps=self.steps[: starts[turns]])


def read(file: str, *, dialogue: int | None = None) -> Transcript:
    """Return the conversations in *file* ("-": standard input), or only number *dialogue*, counted from 1.

    Raises:
        InvalidSetting: If the file can't be read, is not JSON, or holds no conversation; it says what and where.
        InvalidMessage: If a message is not one that a provider would accept; it says which.
    """
    source = Source(file)
    name = source.name
    try:
        found = list(conversations(_values("".join(source.lines()), name)))
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


def _values(text: str, name: str) -> Any:
    """Return the value of the JSON *text*; the values of JSON lines as {line number: value}."""
    if not text.strip():
        raise InvalidSetting(name, "is empty: expected a conversation in JSON or JSON lines")
    try:
        return json.loads(text)
    except ValueError as error:
        if not str(error).startswith("Extra data"):
            raise _invalid(name, error) from None
    values = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                values[number] = json.loads(line)
            except ValueError as error:
                raise _invalid(name, error, number) from None
    return values


def _invalid(name: str, error: ValueError, line: int | None = None) -> InvalidSetting:
    """Return what says why the file, or only this *line* of it, is not JSON."""
    if isinstance(error, json.JSONDecodeError):
        place, reason = f"line {line or error.lineno:,}, column {error.colno:,}: ", f"not valid JSON: {error.msg}"
    else:
        place, reason = f"line {line:,}: " if line else "", f"not a JSON that can be read: {error}"
    return InvalidSetting(name, f"{place}{reason}{'; expected a value per line' if line else ''}")
