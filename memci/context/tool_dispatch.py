r"""Answers to the calls that a model makes of the context's tools.

    {"id": "c7", "function": {"name": "recall_page", "arguments": "{\"index\": 42, …}"}}
        ──▶  {"role": "tool", "tool_call_id": "c7", "content": "<memci:recall …> … </memci:recall …>"}

A recall counts as a use of the page, which keeps its line in the Contents Page.
"""

from collections.abc import Callable, Sequence
from datetime import date
from functools import partial

from ..history.page_reader import page_text
from ..history.reader import Reader
from ..history.writer import Writer
from ..memory.backend import Recollection
from ..messages import Message, call_body, call_name
from ..text.sanitize import quote
from ..tools import search_memory
from ..tools.recall_page import RECALL_PAGE, Answer, PageRequest, RecalledPage, answer
from ..window.window import Window

RECALL, SEARCH = (str(tool["function"]["name"]) for tool in (RECALL_PAGE, search_memory.SEARCH_MEMORY))


class ToolDispatch:
    """Answers calls from the pages of one context. *search* searches its memory, *today* returns the day."""

    def __init__(
        self,
        window: Window,
        reader: Reader,
        writer: Writer,
        search: Callable[..., Recollection],
        today: Callable[[], date | None],
    ) -> None:
        self._window, self._reader, self._writer, self._search = window, reader, writer, search
        self._today = today

    def answers(self, calls: Sequence[Message]) -> list[Message]:
        """Return a tool message for each of *calls*, which share the room that there is."""
        own = max(1, sum(call_name(call) in self._window.tools for call in calls))
        messages = []
        for call in calls:
            found = self._answer(call_name(call), call_body(call).get("arguments"), own, shows=True)
            content = [{"type": "text", "text": found.text}, *found.media] if found.media else found.text
            id_ = call.get("id")
            messages.append({"role": "tool", "tool_call_id": id_ if isinstance(id_, str) else "", "content": content})
        return messages

    def text(self, name: str, arguments: object) -> str:
        """Return the text that answers a call of the tool *name* with *arguments* (JSON, or an object)."""
        return self._answer(name, arguments, 1, shows=False).text

    def _answer(self, name: str, arguments: object, parts: int, *, shows: bool) -> Answer:
        """Return one of *parts* answers, which share the room; with media if the answer *shows* them."""
        window = self._window
        room, count, nonce = window.answer_room // parts, window.count, window.state.nonce
        if name == SEARCH and SEARCH in window.tools:
            text = search_memory.answer(
                arguments,
                partial(self._search, budget=room),
                context=window.record.id,
                room=room,
                count=count,
                nonce=nonce,
                now=self._today(),
            )
            return Answer(text)
        if name != RECALL:
            return Answer(f"error: there is no tool {quote(name[:60])} here")
        found = answer(
            arguments,
            self._read,
            room=room,
            count=count,
            nonce=nonce,
            media_room=window.media_room // parts,
            weigh=window.weigh if shows else None,
        )
        if found.page is not None and found.page not in window.rows:
            self._writer.count_recall(found.page)
        return found

    def _read(self, asked: PageRequest) -> RecalledPage:
        """Return the page that is *asked* for, as it is stored now: WriteConflict if another writer was first."""
        self._writer.check_revision()
        return page_text(self._window, self._reader, asked.index, asked.entry)
