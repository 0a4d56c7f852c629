"""The pages of the inspector as templates with values, for the server and for the static file.

Each page reads a bounded amount: lists are shown in parts, and a picture has a fixed number of columns.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from threading import Lock
from typing import Any, Final, NamedTuple

from ...context.context import Context
from ...context.report import Report
from ...errors import BudgetExceeded, InvalidSetting, MemciError
from ...formats import FORMATS
from ...memory.inspect import overview, owners, waiting
from ...memory.tiered_memory import TieredMemory
from ...memory.tiers.graph import name_key
from ...rows import ContextRecord, PageState
from ...storage import Storage
from ...storage.protocol import CheckedStorage
from ...window.compaction import instructions_of
from ...workers import guard_lock
from ..metrics import store_text
from ..stored_context import audit_lines, figures_of, readable
from .charts import place_nodes, stack_columns
from .inspected import InspectedContext
from .page_story import PageStory, receipt
from .past_request import past_request
from .timeline import TURNS, window_sizes
from .visibility import fact_places

Query = Mapping[str, str]

LISTED: Final = 50  # conversations or pages on one page: a table that still scrolls quickly
FOUND: Final = 10  # messages that a search shows: about one screen
MEANT: Final = 3  # hits of a search that "Why not?" explains: those that a model reads first
CONCEPTS: Final = 24  # in the picture of the graph: labels of more overlap


class View(NamedTuple):
    """A template and its values."""

    template: str
    values: dict[str, Any]


class Views:
    """The pages of one store, or of its context *only* as it was when that was made. Thread-safe."""

    def __init__(
        self, storage: Storage, *, only: InspectedContext | None = None, turns: int = TURNS, place: str = ""
    ) -> None:
        self._storage, self._only, self._turns, self._place = storage, only, turns, place
        self._one_memory = guard_lock(Lock())

    def conversations(self, query: Query) -> View:
        """Return the list of conversations: all, of one owner, or those whose id begins with a text. O(those shown)."""
        owner, prefix, after = query.get("owner") or None, query.get("q", "").strip(), query.get("after") or None
        start = after
        found: list[ContextRecord] = []
        if prefix and after is None:
            loaded = self._storage.load(prefix)
            found = [loaded[0]] if loaded is not None and owner in {None, loaded[0].owner} else []
            start = prefix
        listed = self._storage.contexts(owner=owner, after=start, limit=LISTED + 1)
        found += [record for record in listed if record.id.startswith(prefix)]
        more = found[LISTED - 1].id if len(found) > LISTED else None
        values = {"rows": [figures_of(record) for record in found[:LISTED]], "more": more, "after": after}
        return View("conversations.html", {**values, "q": prefix, "owner": owner})

    def window(self, query: Query) -> View:
        """Return one conversation: its window over time, and where its tokens are now."""
        context = self._context(query)
        last = _number(query, "last", context.last_turn, most=context.last_turn)
        first = max(0, last - self._turns + 1)
        sizes = window_sizes(context, first, last)
        budget = context.window.limits.budget
        top = max([budget, *(size.total for size in sizes)])
        parts = [
            {"system": size.system, "contents": size.contents, "active": size.active, "open": size.open}
            for size in sizes
        ]
        report = self.report(context.record)
        return View(
            "window.html",
            {
                **self._shared(context, "window"),
                "sizes": list(zip(sizes, stack_columns(parts, top), strict=True)),
                "first": first,
                "last": last,
                "earlier": first - 1 if first else None,
                "later": min(context.last_turn, last + TURNS) if last < context.last_turn else None,
                "budget": budget,
                "top": top,
                "report": report,
                "contents": context.window.contents.blocks,
                "instructions": instructions_of(context.window),
            },
        )

    def request(self, query: Query) -> View:
        """Return the request as of a turn, in a format, beside that of the turn before."""
        context = self._context(query)
        turn = _number(query, "turn", context.last_turn, most=context.last_turn)
        form = query.get("format") if query.get("format") in FORMATS else None
        problem, found, left = "", None, []
        try:
            found = past_request(context, turn, form)
            left = receipt(context, turn)
        except (BudgetExceeded, InvalidSetting) as error:
            problem = str(error)
        form = found.format if found is not None else (form or FORMATS[0])
        values = {"turn": turn, "formats": FORMATS, "format": form, "request": found, "problem": problem}
        values["left"] = left
        return View("request.html", {**self._shared(context, "request"), **values})

    def pages(self, query: Query) -> View:
        """Return pages of a conversation, newest first. O(those shown)."""
        context = self._context(query)
        last = _number(query, "last", context.last_page, most=context.last_page)
        first = max(1, last - LISTED + 1)
        rows = [(page, context.title(page)) for page in context.pages(first=first, last=last)][::-1]
        older = first - 1 if first > 1 else None
        newer = min(context.last_page, last + LISTED) if last < context.last_page else None
        return View("pages.html", {**self._shared(context, "pages"), "rows": rows, "older": older, "newer": newer})

    def page(self, query: Query) -> View:
        """Return one page: every message, its place now, and its history."""
        context = self._context(query)
        index = _number(query, "n", context.last_page, most=context.last_page, least=1)
        page, row = context.page(index), context.row(index)
        if page is None or row is None:
            raise InvalidSetting("page", f"{context.id!r:.60} has no page #{index}")
        story = PageStory(context, row)
        erased = row.state is PageState.ERASED
        return View(
            "page.html",
            {
                **self._shared(context, "pages"),
                "page": page,
                "title": "" if erased else context.title(page),
                "entries": [] if erased else [(entry, readable(entry.message)) for entry in context.entries_of(row)],
                "events": story.events(),
                "tokens": story.tokens,
                "now": story.at(context.record.head),
                "older": index - 1 if index > 1 else None,
                "newer": index + 1 if index < context.last_page else None,
            },
        )

    def raw(self, query: Query) -> str:
        """Return one page as JSON: a list of its messages, exact."""
        context = self._context(query)
        row = context.row(_number(query, "n", context.last_page, most=context.last_page, least=1))
        entries = context.entries_of(row) if row is not None else []
        return json.dumps([entry.message for entry in entries], ensure_ascii=True, indent=2)

    def metrics(self, query: Query) -> str:  # noqa: ARG002 -- as all pages
        """Return locks, queues and disk for Prometheus."""
        return store_text(self._storage, self._place)

    def search(self, query: Query) -> View:
        """Return search results from the memory of the owner, with scores and reasons. It does not count as use."""
        context = self._context(query)
        text = query.get("q", "").strip()
        found, behind = None, 0
        if text:
            with self._memory(context.owner) as memory:
                found = memory.search(text, k=FOUND)
                behind = waiting(memory, context.id)
        return View("search.html", {**self._shared(context, "search"), "q": text, "found": found, "waiting": behind})

    def why(self, query: Query) -> View:
        """Return why a fact was not visible at a turn: the pages that say it, and the lines that replaced them."""
        context = self._context(query)
        fact = query.get("q", "").strip()
        turn = _number(query, "turn", context.last_turn, most=context.last_turn)
        found, places = None, []
        if fact:
            with self._memory(context.owner) as memory:
                found = memory.search(fact, k=FOUND)
            places = fact_places(context, fact, turn, found.pages[:MEANT])
        ranks = {(page.context, page.index): at for at, page in reversed([*enumerate(found.pages if found else (), 1)])}
        shared = self._shared(context, "why")
        return View("why.html", {**shared, "q": fact, "turn": turn, "places": places, "found": found, "ranks": ranks})

    def costs(self, query: Query) -> View:
        """Return the cost of the last calls of the model, and their cached share. O(calls)."""
        context = self._context(query)
        calls = deque(self._storage.calls(context.id), maxlen=TURNS)
        top = max((call.input for call in calls), default=0)
        parts = [
            {"cached": call.cached_read, "written": call.cached_written,
             "fresh": max(0, call.input - call.cached_read - call.cached_written)}
            for call in calls
        ]  # fmt: skip
        report = self.report(context.record)
        pairs = list(zip(calls, stack_columns(parts, top), strict=True))
        sizes = window_sizes(context, calls[0].turn, calls[-1].turn) if calls else []
        last = {call.turn: call.revision for call in calls}
        closed = {last[size.turn]: size for size in sizes if size.turn in last}
        values = {"calls": pairs, "closed": closed, "top": top, "report": report}
        return View("costs.html", {**self._shared(context, "costs"), **values})

    def memory(self, query: Query) -> View:
        """Return the contents of the memory of an owner, tier by tier. O(all of it)."""
        owner = query.get("owner", "")
        with self._memory(owner) as memory:
            held = overview(memory)
            graph = memory.session.tiers().graph
            keys = [name for name, _ in graph.most_stated(CONCEPTS)]
            edges = {
                (graph.name(edge.source), edge.kind, graph.name(edge.target)): edge.weight
                for name in keys
                for edge in graph.relations(name_key(name), 8)
            }
        weights = {name: sum(weight for (a, _, b), weight in edges.items() if name in {a, b}) for name in keys}
        nodes = place_nodes(weights)
        drawn = [
            (nodes[source], kind, nodes[target], weight)
            for (source, kind, target), weight in edges.items()
            if source in nodes and target in nodes
        ]
        return View("memory.html", {"owner": owner, "held": held, "nodes": list(nodes.values()), "edges": drawn})

    def health(self, query: Query) -> View:
        """Return the locks, the waiting jobs and the audit log; with `check`, also damage of the files."""
        damage = None
        if query.get("check") and isinstance(self._storage, CheckedStorage):
            damage = self._storage.damage()
        work = []
        for name in islice(owners(self._storage), LISTED):
            with self._memory(name) as memory:
                work.append((name, memory.work()))
        values = {"tickets": list(self._storage.tickets()), "log": audit_lines(self._storage)[: -LISTED - 1 : -1]}
        return View("health.html", {**values, "work": work, "damage": damage})

    def report(self, record: ContextRecord) -> Report | None:
        """Return the report of the context of *record*, None if it can't be read."""
        try:
            with Context.view(self._storage, record.id, owner=record.owner) as context:
                return context.report()
        except MemciError:
            return None

    def _context(self, query: Query) -> InspectedContext:
        id_ = query.get("id", "")
        if not id_:
            raise InvalidSetting("id", "name a conversation")
        return self._only or InspectedContext(self._storage, id_)

    def _shared(self, context: InspectedContext, tab: str) -> dict[str, Any]:
        return {"context": context, "tab": tab, "owner": context.owner}

    @contextmanager
    def _memory(self, owner: str) -> Iterator[TieredMemory]:
        """Yield the memory of *owner*; one at a time, since a store has one sidecar."""
        if not owner:
            raise InvalidSetting("owner", "name the owner of the memory")
        with self._one_memory, closing(TieredMemory(self._storage, owner=owner, read_only=True)) as memory:
            yield memory


def _number(query: Query, name: str, default: int, *, most: int, least: int = 0) -> int:
    """Return the number *name* of a query between *least* and *most*; *default* if there is none."""
    text = query.get(name, "")
    return max(least, min(most, int(text))) if text.isdecimal() and len(text) < 19 else default
