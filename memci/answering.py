r"""Answering: the calls that a model makes of the context's tools.

    {"id": "c7", "function": {"name": "recall_page", "arguments": "{\"index\": 42, …}"}}
        ──▶  {"role": "tool", "tool_call_id": "c7", "content": "<memci:recall …> … </memci:recall …>"}

A recall is counted as a use of the page, which keeps its line alive. This module knows nothing of providers.
"""

from collections.abc import Sequence

from .frames import quoted
from .messages import Message, call_name
from .readback import page_text
from .reader import Reader
from .recall import RECALL_PAGE, answer
from .window import Window
from .writer import Writer

NAMES = frozenset({str(RECALL_PAGE["function"]["name"])})
"""The names of the context's tools."""


class Answerer:
    """Answers calls from the pages of one context."""

    def __init__(self, window: Window, reader: Reader, writer: Writer) -> None:
        self._window = window
        self._reader = reader
        self._writer = writer

    def answers(self, calls: Sequence[Message]) -> list[Message]:
        """Return a tool message for each of *calls*, which share the room that there is."""
        own = max(1, sum(call_name(call) in NAMES for call in calls))
        answers = []
        for call in calls:
            name, body = call_name(call), call.get("function") or {}
            if name in NAMES:
                text = self.text(body.get("arguments"), own)
            else:
                text = f"error: there is no tool {quoted(name[:60])} here"
            answers.append({"role": "tool", "tool_call_id": call.get("id") or "", "content": text})
        return answers

    def text(self, arguments: object, parts: int = 1) -> str:
        """Return the text that answers a recall with *arguments* (JSON), one of *parts* that share the room.

        Raises:
            HandlePoisoned: If the store has to be opened again.
        """
        window = self._window
        text, index = answer(
            arguments,
            lambda asked: page_text(window, self._reader, asked.index, asked.entry),
            room=window.answer_room // parts,
            count=window.count,
            nonce=window.memo.nonce,
        )
        if index is not None and index not in window.rows:
            self._writer.recalled(index)
        return text
