"""What is replayed: conversations that can begin elsewhere, and what is needed of them.

    rotated    a b c d   ─▶   c d a b         where there are few compactions, the mean over several says more

This module knows nothing of what manages them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from .. import conversation as recorded
from ..conversation import Conversation, Message
from ..recall import tasks

NAMES = ("airline", "dialogues", "chats", "coding", "terminal", "repair")
TASKS = NAMES[-2:]
"""single tasks, each with a context of its own"""


@dataclass(frozen=True, slots=True)
class Part:
    """A run, a dialogue or a chat: its sessions, and for each question the messages in it that answer it."""

    sessions: tuple[tuple[Message, ...], ...]
    questions: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True)
class Replay:
    """A conversation, and the part in which each of its sessions is."""

    conversation: Conversation
    parts: tuple[Part, ...]

    def rotated(self, phase: int, phases: int) -> "Replay":
        """Return the same parts, the first of which are now the last: *phase* of so many *phases*."""
        cut = len(self.parts) * phase // phases
        return _replay(self.conversation, (*self.parts[cut:], *self.parts[:cut]))

    def first(self, runs: int | None) -> "Replay":
        """Return the first *runs* parts; None: all."""
        return self if runs is None else _replay(self.conversation, self.parts[:runs])


def replay_of(name: str) -> Replay | None:
    """Return the conversation of *name*; None if it is not here."""
    whole: Conversation | None = getattr(recorded, name)()
    if whole is None:
        return None
    bounds = sorted({*whole.starts, 0, len(whole.messages)})
    sessions = [whole.messages[begin:end] for begin, end in pairwise(bounds)]
    talks: Sequence[tasks.Talk] = {"dialogues": lambda: tasks.dialogues("transcript"), "chats": tasks.chats}.get(
        name, list
    )()
    if not talks:
        return _replay(whole, tuple(Part((session,)) for session in sessions))
    parts = []
    for talk in talks:
        taken: list[tuple[Message, ...]] = []
        while sum(map(len, taken)) < len(talk.lines):
            taken.append(sessions.pop(0))
        parts.append(Part(tuple(taken), tuple(question.evidence for question in talk.questions)))
    return _replay(whole, tuple(parts))


def _replay(whole: Conversation, parts: tuple[Part, ...]) -> Replay:
    sessions = [session for part in parts for session in part.sessions]
    starts = accumulate(map(len, sessions), initial=0)
    messages = tuple(message for session in sessions for message in session)
    return Replay(replace(whole, messages=messages, starts=frozenset(starts)), parts)
