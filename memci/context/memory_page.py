"""The memory page: what the memory found for the turn that is open, in front of it.

    system | contents | closed pages | [memory page] | open page, pending

Off by default: whatever stands in front of the latest message is billed again each turn. It takes a small share of the
window, and only room that is left: it never makes anything else leave. Its text is stored with the turn that it was
found for, so that a context that is opened again renders the same. This module knows nothing of how things are found.
"""

from collections.abc import Callable
from dataclasses import replace

from ..chapters.messagelist import MessageNode
from ..errors import StorageError
from ..history.writer import Writer
from ..memory.backend import Recollection, Statement
from ..messages import Message, text_of
from ..tools.search_memory import LONGEST_QUERY, SearchQuery, memory_text
from ..window.draft import Draft
from ..window.state import WindowState
from ..window.window import Window

SHARE = 0.03
"""of the window that it takes at most"""
LEAST_SCORE = 0.5
"""a page that fits less is not shown: most turns need none"""
PAGES = 4


class MemoryPage:
    """Finds, keeps and places the memory page of one window."""

    def __init__(self, window: Window, writer: Writer, search: Callable[..., Recollection], *, read_only: bool) -> None:
        self._window = window
        self._writer = writer
        self._search = search
        self._read_only = read_only
        self._found: tuple[str, str] | None = None
        """the latest query and what was found for it"""
        self.behind = 0
        """messages of the last rendering from the memory page on; 0: it was not shown"""
        self.tokens = 0
        """what it costs in the last rendering"""

    def kept(self, state: WindowState, draft: Draft) -> WindowState:
        """Return *state* with what was found for the page that *draft* opens, if it opens one."""
        opened = next((each for each in reversed(draft.messages) if each.opens), None)
        if opened is None:
            return state
        found = self._found if self._found is not None and self._found[0] == _query(opened.node.message) else None
        return replace(state, recollection=(opened.place[0], found[1]) if found is not None else None)

    def placed(self, view: list[Message], pending: list[Message], predicted: int) -> list[Message]:
        """Return the rendering *view*, which costs *predicted* tokens, with the memory page in it if there is room.

        *pending*: the messages at its end that are not appended yet.
        """
        first = next((each for each in reversed(pending) if each.get("role") == "user"), None)
        text = self._for(_query(first)) if first is not None else self._of_open_page()
        at = _start(self._window, view)
        if first is not None:
            at = len(view) - len(pending) + next(at for at, each in enumerate(pending) if each is first)
        window = self._window
        message: Message = {"role": "user", "content": text}
        cost = window.weigh(message) if text else 0
        if not text or at is None or predicted + cost > window.limits.budget:
            self.tokens = self.behind = 0
            return view
        self.tokens, self.behind = cost, len(view) - at + 1
        return [*view[:at], message, *view[at:]]

    def _of_open_page(self) -> str:
        """Return what was found for the open page; it is looked for now if nobody did before."""
        window, opened = self._window, self._window.active.open
        if opened is None or opened.head is None or opened.head.message["role"] != "user":
            return ""
        kept = window.state.recollection
        if kept is not None and kept[0] == opened.index:
            return kept[1]
        text = self._for(_query(opened.head.message))
        if not self._read_only:
            self._writer.store_state(replace(window.state, recollection=(opened.index, text)))
        return text

    def _for(self, query: str) -> str:
        """Return the text of what is found for *query*; "" if nothing fits, or the memory can't be read just now."""
        if not query.strip():
            return ""
        if self._found is None or self._found[0] != query:
            self._found = query, self._made(query)
        return self._found[1]

    def _made(self, query: str) -> str:
        window = self._window
        room = int(window.settings.window * SHARE)
        try:
            found = self._search(SearchQuery(query), k=PAGES, budget=room)
        except StorageError:
            return ""
        found = replace(
            found,
            query=query[:80],
            pages=tuple(page for page in found.pages if page.score >= LEAST_SCORE),
            user_facts=(),
            assistant_facts=(),
            concepts=(),
            statements=(Statement("strategy", found.strategy, 1.0),) if found.strategy else (),
        )
        if not found.pages:
            return ""
        return memory_text(found, context=window.record.id, room=room, count=window.count, nonce=window.state.nonce)


def _query(message: Message) -> str:
    return text_of(message)[:LONGEST_QUERY]


def _start(window: Window, view: list[Message]) -> int | None:
    """Return where the open page begins in *view*. O(messages of the open page)."""
    opened = window.active.open
    head: MessageNode | None = opened.head if opened is not None else None
    if head is None:
        return None
    return next((at for at in range(len(view) - 1, -1, -1) if view[at] is head.view), None)
