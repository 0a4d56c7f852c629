"""What a model may call of an open context, and a program as well: its pages, and its memory.

    reply ──▶ context.answers(reply) ──▶ [{"role": "tool", "content": "<memci:recall …> …"}]
              context.recall_page(42)      context.search_memory("Oslo")

This module knows nothing of rendering or appending.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime

from ..errors import InvalidSetting
from ..history.page_reader import page_text
from ..memory.backend import Recollection
from ..messages import Message, call_name, plain, tool_calls
from ..tools import search_memory as searching
from ..tools.recall_page import functions
from .lifetime import Lifetime


class Calls(Lifetime):
    """An open context, as far as a model may use it."""

    @property
    def tools(self) -> list[Message]:
        """The schemas of the tools that the model may call; constant bytes. [] without the notice."""
        return copy.deepcopy(self._wanted.tools) if self._parts.window.settings.notice else []

    @property
    def functions(self) -> dict[str, Callable[..., str]]:
        """The same tools as Python functions, for a text protocol such as `memci.tools.attp`."""

        def text(arguments: object) -> str:
            with self._usable():
                return self._parts.answerer.text(arguments)

        def found(arguments: object) -> str:
            with self._usable():
                return self._parts.answerer.found(arguments)

        return functions(text) | (searching.functions(found) if self._wanted.searchable else {})

    def handles(self, call: object) -> bool:
        """Tell whether *call* (a tool call of a reply) is for a tool of the context."""
        return call_name(plain(call, "call")) in self._parts.window.tools

    def answer(self, call: object) -> Message:
        """Return the tool message that answers one *call*; a model's mistake is answered, never raised.

        A page that is stored but can't be read is answered as that, never as one that does not exist.

        Raises:
            HandlePoisoned: If the store has to be opened again.
        """
        with self._usable():
            return self._parts.answerer.answers([plain(call, "call")])[0]

    def answers(self, reply: object) -> list[Message]:
        """Return a tool message for each call in *reply* (an assistant's message) that is for the context, else []."""
        with self._usable():
            return self._parts.answerer.answers(
                [call for call in tool_calls(plain(reply, "reply")) if self.handles(call)]
            )

    def recall_page(self, index: int, entry: int | None = None) -> list[Message]:
        """Return the messages of page *index*, whole and exact, or its one *entry*. O(messages of the page).

        Counts as a use of the page, once per turn, if it is not in the window.

        Raises:
            PageNotFound: If no page has this index, or it has no such entry; `Undone` if it was taken back, `Erased` if
                it was erased.
        """
        with self._usable():
            page = page_text(self._parts.window, self._parts.reader, index, entry)
            chosen = [message for found, message in page.entries if entry is None or found.ordinal == entry]
            if not page.in_window:
                self._parts.writer.recalled(page.index)
            return chosen

    def search_memory(
        self,
        query: str,
        *,
        k: int = 5,
        budget: int | None = None,
        since: datetime | str | float | None = None,
        until: datetime | str | float | None = None,
    ) -> Recollection:
        """Return what is known of *query*: all that was ever said and is not in the window, and what came of it.

        A page of this context says its index, which `recall_page` takes; one of another context of the same owner says
        whose it is. What was found counts as used, and stays warm.

        Args:
            query: In the words of whoever asks.
            k: How many pages at most.
            budget: Tokens that the texts of the pages may cost in all; default: no bound.
            since: Only pages from then on: a datetime, ISO 8601, or seconds since 1970; a page that was appended
                without `at` is not among them.
            until: Only pages until then; a date is its end.

        Raises:
            InvalidSetting: If an argument makes no sense.
            StorageError: If the memory can't be read; never an empty answer then.
        """
        if not isinstance(query, str) or not query.strip():
            raise InvalidSetting("query", f"expected what to look for (a str that is not empty), got {query!r:.60}")
        for name, value in (("k", k), ("budget", budget)):
            if value is not None and (type(value) is not int or value < 1):
                raise InvalidSetting(name, f"expected a number from 1 (an int), got {value!r:.60}")
        first, last = searching.timestamp(since, "since"), searching.timestamp(until, "until", ends=True)
        with self._usable():
            return self._remembering.search(searching.SearchQuery(query, first, last), k=k, budget=budget)
