"""Sight: whether what is needed stands in a request, word for word, on a line of the manager's own, or not at all.

    needed              an argument of the next call that was said before, a message that answers a question
    verbatim            in a message that is sent as it was said
    line                in what the manager wrote itself: a summary, a contents page, what is left of a clipped message
    listed              on a page that has a line of its own on memci's contents page, from which it can be recalled
    none                nowhere

The rules are the same for all: what is not, message for message, what was said, is the manager's own. A message
counts as on a line if half of its long words stand on one. What is listed is counted apart: a comparison may take it
for evidence or not. This module knows nothing of managers.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

from ..conversation import Message, texts

PLACES = ("verbatim", "line", "listed", "none")
Listed = Callable[[str], bool]
_WORD = re.compile(r"\w{4,}")
_HALF = 0.5
_LEAST, _DIGITS = 4, 3
"""characters of an argument, and digits of a number, that are looked for"""


def unlisted(_key: str) -> bool:
    return False


def key(message: Message) -> str:
    """Return what two messages have in common that say the same, however their arguments are spaced."""
    calls = message.get("tool_calls")
    if not calls:
        return f"{message['role']}|{message.get('content')}"
    said = [(call["function"]["name"], _values(call["function"]["arguments"])) for call in calls]
    return f"{message['role']}|{message.get('content') or ''}|{said}"


@lru_cache(maxsize=10_000)
def _values(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)


@dataclass(slots=True)
class Sight:
    """Counts where the needed stood."""

    system: str
    said: set[str] = field(default_factory=set)
    """all messages, as they were said"""
    run: list[Message] = field(default_factory=list)
    """the messages since the last pause"""
    found: Counter[str] = field(default_factory=Counter)

    def take(self, turn: Sequence[Message], *, paused: bool) -> None:
        """Add *turn*."""
        if paused:
            self.run = []
        self.said.update(map(key, turn))
        self.run += turn

    def own(self, view: Sequence[Message]) -> list[int]:
        """Return which messages of *view* the manager wrote itself."""
        return [at for at, message in enumerate(view) if key(message) not in self.said]

    def called(self, call: Message, view: Sequence[Message], own: Sequence[int], listed: Listed = unlisted) -> None:
        """Count the arguments of *call* that were said in this run, where *view* is what the model had."""
        whole = lines = None
        for leaf in leaves(call):
            sources = [message for message in self.run if any(leaf in text for text in texts(message))]
            if leaf in self.system or not sources:
                continue
            if whole is None or lines is None:
                whole, lines = _parts(view, own)
            if leaf in whole:
                self.found["verbatim"] += 1
            elif leaf in lines:
                self.found["line"] += 1
            else:
                self.found["listed" if any(listed(key(message)) for message in sources) else "none"] += 1

    def asked(
        self,
        questions: Iterable[Sequence[Message]],
        view: Sequence[Message],
        own: Sequence[int],
        listed: Listed = unlisted,
    ) -> None:
        """Count which messages that answer one of *questions* would be found in *view*."""
        mine = set(own)
        whole = {key(message) for at, message in enumerate(view) if at not in mine}
        lines = [set(_WORD.findall(line)) for line in _parts(view, own)[1].splitlines()]
        for message in chain.from_iterable(questions):
            words = set(_WORD.findall(message["content"] or ""))
            if key(message) in whole:
                self.found["verbatim"] += 1
            elif words and any(len(words & line) >= _HALF * len(words) for line in lines):
                self.found["line"] += 1
            else:
                self.found["listed" if listed(key(message)) else "none"] += 1


def _parts(view: Sequence[Message], own: Sequence[int]) -> tuple[str, str]:
    mine = set(own)
    parts: tuple[list[str], list[str]] = [], []
    for at, message in enumerate(view):
        parts[at in mine].extend(texts(message))
    return "\n".join(parts[0]), "\n".join(parts[1])


def leaves(call: Message) -> Iterator[str]:
    """Yield the texts and numbers among the arguments of the calls in *call*."""
    left: list[Any] = [json.loads(each["function"]["arguments"]) for each in call.get("tool_calls") or ()]
    while left:
        value = left.pop()
        if isinstance(value, dict | list):
            left += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value) >= _LEAST:
            yield value
        elif type(value) in {int, float} and sum(map(str.isdigit, str(value))) >= _DIGITS:
            yield str(value)


def orphans(view: Sequence[Message]) -> int:
    """Return how many results in *view* have no call before them, and calls before its last turn no result."""
    open_calls: set[str] = set()
    lost = 0
    for message in view:
        if message["role"] == "tool":
            lost += message["tool_call_id"] not in open_calls
            open_calls.discard(message["tool_call_id"])
            continue
        lost += len(open_calls)
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    return lost
