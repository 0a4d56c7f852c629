"""The memory page: what the memory found for the open turn, shown before it.

    system | contents | closed pages | [memory page] | open page, pending

It is off by default, since a provider bills everything from the memory page on again in each turn. It takes a small
share of the window, and only free room: it never makes a page leave. Its text is stored with the turn for which it was
found, so that a context that is opened again renders the same.
"""

from collections.abc import Callable
from dataclasses import replace

from ..errors import StorageError
from ..history.writer import Writer
from ..memory.backend import FoundPage, Recollection, Statement
from ..messages import Message, text_of
from ..text.language.change import shares_words
from ..tools.search_memory import LONGEST_QUERY, SearchQuery, memory_text
from ..window.draft import Draft
from ..window.state import WindowState
from ..window.window import Window

SHARE = 0.03  # of the window at most, since it is billed again in each turn
LEAST_ROOM = 200  # tokens in a small window: the frame takes some 80, and without a message it says nothing
LEAST_SCORE = 0.5  # of a page that is shown: most turns need none, and a wrong page misleads
PAGES = 4  # pages that are shown at most: more than the share has room for in a small window


class MemoryPage:
    """Finds, stores and places the memory page of one window.

    *search* searches the memory; *removals* returns what changes once the memory has forgotten pages.
    """

    def __init__(
        self, window: Window, writer: Writer, search: Callable[..., Recollection], removals: Callable[[], object]
    ) -> None:
        self._window, self._writer, self._search, self._removals = window, writer, search, removals
        self._found: tuple[str, str, object] | None = None
        """the latest query, what was found for it, and the removals before"""
        self.behind = 0
        """messages of the last rendering from the memory page on; 0: it was not shown"""
        self.tokens = 0
        """what it costs in the last rendering"""

    def keep(self, state: WindowState, draft: Draft) -> WindowState:
        """Return *state* with what was found for the page that *draft* opens, if it opens one."""
        opened = next((each for each in reversed(draft.messages) if each.opens), None)
        if opened is None:
            return state
        found = self._found if self._knows(_query(opened.node.message)) else None
        return state._replace(recollection=(opened.place[0], found[1]) if found is not None else None)

    def place(self, view: list[Message], pending: list[Message], predicted: int) -> list[Message]:
        """Return the rendering *view*, which costs *predicted* tokens, with the memory page in it if there is room.

        *pending*: the messages at its end that are not appended yet.
        """
        window, opened = self._window, self._window.active.open
        asked = next((each for each in reversed(pending) if each.get("role") == "user"), None)
        text = self._find(_query(asked)) if asked is not None else self._of_open_page()
        start = asked if asked is not None else opened.head.view if opened is not None and opened.head else None
        at = next((at for at in range(len(view) - 1, -1, -1) if view[at] is start), None)
        message: Message = {"role": "user", "content": text}
        cost = window.weigh(message) if text else 0
        if not text or at is None or predicted + cost > window.limits.budget:
            self.tokens = self.behind = 0
            return view
        self.tokens, self.behind = cost, len(view) - at + 1
        return [*view[:at], message, *view[at:]]

    def _of_open_page(self) -> str:
        """Return what was found for the open page; searches now if no search has run for it."""
        window, opened = self._window, self._window.active.open
        if opened is None or opened.head is None or opened.head.message["role"] != "user":
            return ""
        kept = window.state.recollection
        if kept is not None and kept[0] == opened.index:
            return kept[1]
        text = self._find(_query(opened.head.message))
        if not self._writer.read_only:
            self._writer.store_state(window.state._replace(recollection=(opened.index, text)))
        return text

    def _find(self, query: str) -> str:
        """Return the text of what is found for *query*; "" if nothing fits, or the memory can't be read just now."""
        if not query.strip():
            return ""
        if self._found is None or not self._knows(query):
            text = self._search_for(query)
            self._found = query, text, self._forgotten()
        return self._found[1]

    def _knows(self, query: str) -> bool:
        """Return whether *query* was the latest, and nothing was forgotten since."""
        return self._found is not None and self._found[0] == query and self._found[2] == self._forgotten()

    def _forgotten(self) -> object:
        try:
            return self._removals()
        except StorageError:
            return None

    def _search_for(self, query: str) -> str:
        window = self._window
        room = max(LEAST_ROOM, int(window.settings.window * SHARE))
        try:
            found = self._search(SearchQuery(query), k=PAGES, budget=room)
        except StorageError:
            return ""
        sure = [page for page in found.pages if page.score >= LEAST_SCORE]
        if not sure:
            return ""
        # what a person or a tool said later may hold what counts now, in words that answer less well
        first = min(map(_when, sure))
        later = [page for page in found.pages if page.role != "assistant" and _when(page) > first]
        pages = tuple(
            page for page in found.pages if page in sure or (page in later and shares_words(page.text, query))
        )
        statements = (Statement("strategy", found.strategy, 1.0),) if found.strategy else ()
        found = replace(found, query=query[:80], pages=pages, statements=statements)
        found = replace(found, user_facts=(), assistant_facts=(), concepts=())
        return memory_text(found, context=window.record.id, room=room, count=window.count, nonce=window.state.nonce)


def _when(page: FoundPage) -> tuple[float, int]:
    return page.at or 0.0, page.turn


def _query(message: Message) -> str:
    return text_of(message)[:LONGEST_QUERY]
