"""A memory of one's own, in RAM: it finds the messages that have most words of a query.

context = Context.open("agent.db", "alice", window=32_000, memory=WordMemory())
"""

import re
from collections.abc import Collection
from math import inf
from typing import Any

from memci.memory.backend import Forgotten, FoundPage, PageRecord, Recollection, Scope, Shown
from memci.messages import text_of


class WordMemory:
    """A memory of one owner. Each call of a dict is one step, so that threads may use it at once."""

    def __init__(self) -> None:
        self._pages: dict[tuple[str, int], PageRecord] = {}

    def observe(self, page: PageRecord) -> None:
        """Make a page searchable."""
        self._pages[page.key] = page

    admit = observe

    def acknowledged(self, context: str) -> int:
        """Return the highest index of *context*, so that only later pages are sent."""
        pages = [page for page in self._pages.copy().values() if page.context == context]
        return max((page.index for page in pages if not page.open), default=0)

    def search(
        self, query: str, *, k: int = 5, budget: int | None = None, since: float | None = None,
        until: float | None = None, exclude: Collection[Shown] = (), skip: int = 0, **_more: Any,
    ) -> Recollection:  # fmt: skip
        """Return the messages that have most words of *query*."""
        words, left, hits = set(re.findall(r"\w+", query)), inf if budget is None else budget, []
        first, last = -inf if since is None else since, inf if until is None else until
        for page in self._pages.copy().values():
            for entry, message in page.entries:
                text, at = text_of(message), page.at_of(entry)
                places = [hit.start() for word in words if (hit := re.search(re.escape(word), text, re.IGNORECASE))]
                timely = since is until is None or (at is not None and first <= at <= last)
                shown = entry in page.quotes or page.key in exclude or (*page.key, entry) in exclude
                if places and timely and not shown:
                    hits.append((len(places) / len(words), min(places), page, entry, message, text, at))
        found = []
        for score, start, page, entry, message, text, at in sorted(hits, key=lambda hit: -hit[0])[skip : skip + k]:
            told = text[start : int(min(left + start, len(text)))]  # a token has at least one character
            left -= len(told)
            name = message.get("name") or ""
            if told:
                found.append(FoundPage(*page.key, entry, score, told, message["role"], page.turn, at, name, start))
        return Recollection(query, tuple(found))

    def erase(self, scope: Scope) -> Forgotten:
        """Remove the pages in *scope*."""
        named = [key for key in self._pages.copy() if scope.context in {None, key[0]}]
        gone = [key for key in named if scope.pages is None or key[1] in scope.pages]
        return Forgotten(sum(self._pages.pop(key, None) is not None for key in gone))

    def maintain(self, now: float | None = None) -> int:  # noqa: ARG002
        """Do nothing: nothing is derived."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing is open."""
