"""Sight: whether what is needed stands in a request, word for word, on a line of the manager's own, or not at all.

    needed              an argument of the next call that was said before, or an identifier in it; a message that
                        answers a question
    verbatim            in a message that is sent as it was said, or in 200 characters and more of its whole lines
    line                in what the manager wrote itself: a summary, a contents page, what is left of a clipped message
    listed              on a page that has a line of its own on memci's contents page, from which it can be recalled
    none                nowhere

The rules are the same for all: what is not, message for message, what was said, is the manager's own. A message
counts as on a line if half of its long words stand on one. What is listed is counted apart: a comparison may take it
for evidence or not. This module knows nothing of managers.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from memci.text.language.identifiers import needed

from ..conversation import Message, texts

PLACES = ("verbatim", "line", "listed", "none")
Listed = Callable[[str], bool]
_WORD = re.compile(r"\w{4,}")
_HALF = 0.5
_PIECE = 200
"""characters of whole lines of one message that count as verbatim"""


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
    lines: defaultdict[str, set[tuple[int, int]]] = field(default_factory=lambda: defaultdict(set))
    """where each line was said: the text, and the line in it"""
    texts: int = 0
    """how many texts were said"""
    pieces: dict[str, tuple[str, str]] = field(default_factory=dict)
    """of texts that the manager sent: what of it is verbatim, and the rest"""
    run: list[Message] = field(default_factory=list)
    """the messages since the last pause"""
    found: Counter[str] = field(default_factory=Counter)

    def take(self, turn: Sequence[Message], *, paused: bool) -> None:
        """Add *turn*."""
        if paused:
            self.run = []
        self.said.update(map(key, turn))
        self.run += turn
        for text in (text for message in turn for text in texts(message)):
            for at, line in enumerate(text.splitlines()):
                self.lines[line].add((self.texts, at))
            self.texts += 1

    def own(self, view: Sequence[Message]) -> list[int]:
        """Return which messages of *view* the manager wrote itself."""
        return [at for at, message in enumerate(view) if key(message) not in self.said]

    def called(self, call: Message, view: Sequence[Message], own: Sequence[int], listed: Listed = unlisted) -> bool:
        """Count what *call* needs of what was said in this run, where *view* is what the model had.

        Return whether something needed is not verbatim in *view*.
        """
        whole = lines = None
        missed = False
        for leaf in needs(call):
            sources = [message for message in self.run if any(leaf in text for text in texts(message))]
            if leaf in self.system or not sources:
                continue
            if whole is None or lines is None:
                whole, lines = self._parts(view, own)
            missed |= leaf not in whole
            if leaf in whole:
                self.found["verbatim"] += 1
            elif leaf in lines:
                self.found["line"] += 1
            else:
                self.found["listed" if any(listed(key(message)) for message in sources) else "none"] += 1
        return missed

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
        lines = [set(_WORD.findall(line)) for at in own for text in texts(view[at]) for line in text.splitlines()]
        for message in chain.from_iterable(questions):
            words = set(_WORD.findall(message["content"] or ""))
            if key(message) in whole:
                self.found["verbatim"] += 1
            elif words and any(len(words & line) >= _HALF * len(words) for line in lines):
                self.found["line"] += 1
            else:
                self.found["listed" if listed(key(message)) else "none"] += 1

    def _parts(self, view: Sequence[Message], own: Sequence[int]) -> tuple[str, str]:
        """Return the text in *view* that is verbatim, and the rest."""
        mine = set(own)
        parts: tuple[list[str], list[str]] = [], []
        for at, message in enumerate(view):
            for text in texts(message):
                if at in mine:
                    for part, piece in zip(parts, self._pieces(text), strict=True):
                        part.append(piece)
                else:
                    parts[0].append(text)
        return "\n".join(parts[0]), "\n".join(parts[1])

    def _pieces(self, text: str) -> tuple[str, str]:
        """Return what of *text* is verbatim, `_PIECE` characters and more of whole lines of a message, and the rest."""
        if text in self.pieces:
            return self.pieces[text]
        lines, found, at = text.splitlines(), ([], []), 0
        while at < len(lines):
            places, end = self.lines.get(lines[at], set()) if lines[at].strip() else set(), at
            while places and end < len(lines):
                end += 1
                after = self.lines.get(lines[end], set()) if end < len(lines) else set()
                places = {(said, line + 1) for said, line in places} & after
            piece = "\n".join(lines[at : max(end, at + 1)])
            found[end == at or len(piece) < _PIECE].append(piece)
            at = max(end, at + 1)
        self.pieces[text] = "\n".join(found[0]), "\n".join(found[1])
        return self.pieces[text]


def needs(call: Message) -> set[str]:
    """Return what is looked for in earlier messages: values among the arguments of *call*, and identifiers in them."""
    return {name for each in call.get("tool_calls") or () for name in needed(each["function"]["arguments"])}


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
