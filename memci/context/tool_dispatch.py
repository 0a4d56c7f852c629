r"""Answering: the calls that a model makes of the context's tools.

    {"id": "c7", "function": {"name": "recall_page", "arguments": "{\"index\": 42, …}"}}
        ──▶  {"role": "tool", "tool_call_id": "c7", "content": "<memci:recall …> … </memci:recall …>"}

A recall is counted as a use of the page, which keeps its line alive. This module knows nothing of providers.
"""

from collections.abc import Callable, Sequence

from ..history.page_reader import page_text
from ..history.reader import Reader
from ..history.writer import Writer
from ..memory.backend import Recollection
from ..messages import Message, call_body, call_name
from ..text.sanitize import quoted
from ..tools.recall_page import RECALL_PAGE, Answer, answer
from ..tools.search_memory import SEARCH_MEMORY
from ..tools.search_memory import answer as found_answer
from ..window.window import Window

RECALL, SEARCH = (str(tool["function"]["name"]) for tool in (RECALL_PAGE, SEARCH_MEMORY))


class ToolDispatch:
    """Answers calls from the pages of one context."""

    def __init__(self, window: Window, reader: Reader, writer: Writer, search: Callable[..., Recollection]) -> None:
        self._window = window
        self._reader = reader
        self._writer = writer
        self._search = search
        """searches the memory for a `SearchQuery`, for pages of at most `budget` tokens"""

    def answers(self, calls: Sequence[Message]) -> list[Message]:
        """Return a tool message for each of *calls*, which share the room that there is."""
        own = max(1, sum(call_name(call) in self._window.tools for call in calls))
        answers = []
        for call in calls:
            name, arguments = call_name(call), call_body(call).get("arguments")
            media: tuple[Message, ...] = ()
            if name == RECALL:
                text, _, media = self._recalled(arguments, own, shows=True)
            elif name == SEARCH and SEARCH in self._window.tools:
                text = self.found(arguments, own)
            else:
                text = f"error: there is no tool {quoted(name[:60])} here"
            call_id = call.get("id")
            id_ = call_id if isinstance(call_id, str) else ""
            content = [{"type": "text", "text": text}, *media] if media else text
            answers.append({"role": "tool", "tool_call_id": id_, "content": content})
        return answers

    def text(self, arguments: object, parts: int = 1) -> str:
        """Return the text that answers a recall with *arguments* (JSON), one of *parts* that share the room."""
        return self._recalled(arguments, parts, shows=False).text

    def _recalled(self, arguments: object, parts: int, *, shows: bool) -> Answer:
        """Return what answers a recall; with media if the answer *shows* them."""
        window = self._window
        found = answer(
            arguments,
            lambda asked: page_text(window, self._reader, asked.index, asked.entry),
            room=window.answer_room // parts,
            count=window.count,
            nonce=window.state.nonce,
            media_room=window.media_room // parts,
            weigh=window.weigh if shows else None,
        )
        if found.page is not None and found.page not in window.rows:
            self._writer.recalled(found.page)
        return found

    def found(self, arguments: object, parts: int = 1) -> str:
        """Return the text that answers a search with *arguments* (JSON), one of *parts* that share the room."""
        window = self._window
        room = window.answer_room // parts
        return found_answer(
            arguments,
            lambda wanted: self._search(wanted, budget=room),
            context=window.record.id,
            room=room,
            count=window.count,
            nonce=window.state.nonce,
        )
