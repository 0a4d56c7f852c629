"""The renderer: the messages of the next request, within the budget whatever was said before.

    front                      active pages        open group      pending
    [ system | contents … ] + [ user, assistant … ] + [ calls ] + [ what is not appended yet ]

Between two compactions each rendering extends the one before, byte for byte: only new messages cost work.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import add

from ..errors import InvalidMessage, OpenToolGroup, brief
from ..formats.usage import CallsCost, reported
from ..messages import Message, call_name, plain
from ..rows import CallRow
from ..segments.budget import check
from ..segments.cache_policy import cost
from ..tokens import tools_tokens
from ..window.draft import Draft
from ..window.drafting import clip_draft, costs_of
from ..window.window import Window
from .compactor import Compactor


@dataclass(slots=True)
class CacheMeter:
    """Counts how much of each rendering is, from its beginning, equal to the one before.

    A window replaces its lists when something in them changes, and only extends them otherwise. So two renderings are
    compared message by message only around a compaction.
    """

    sent: int = 0
    kept: int = 0
    last: float = 0.0
    spent: float = 0.0  # what the renderings cost, in uncached input tokens
    cost: CallsCost = field(default_factory=CallsCost)
    counted: int = 0  # the revision of the last call in it
    broken: int = 0  # how often the tools, with which a request begins, were others than in the request before
    change: str = ""  # how they differed last
    _at: float | None = None  # when the last rendering was made, in seconds since 1970
    _tools: str | None = None  # the tools that were sent with it, as JSON
    _lists: tuple[list[Message], list[Message]] = ([], [])
    """what the last rendering began with: the front of the window, and its active pages"""
    _rest: tuple[Message, ...] = ()  # the messages behind that: pending ones, or the memory page and what follows it
    _before: int = 0  # how many messages were before them
    _cost: int = 0
    _stable: int = 0  # where the stable part was marked after the last compaction, in messages

    def count_rendering(
        self, window: Window, view: list[Message], rest: int, tokens: int, *, tools: str | None, now: float | None
    ) -> None:
        """Count the rendering *view* of *window*, which costs *tokens*; its last *rest* messages may change.

        *tools*: those that are sent with it, as JSON; a request begins with them. *now*: the time, in seconds since
        1970. O(*rest*); after a compaction O(messages in the window).
        """
        front, active = self._lists
        if front is window.front and active is window.active.view:
            same = count_equal(self._rest, view[self._before :]) if self._rest else 0
            kept = self._cost - sum(map(window.weigh, self._rest[same:]))
        else:
            same = count_equal((*front, *active[: self._before - len(front)], *self._rest), view)
            system = len(window.system.view) + len(window.segments.view)
            if window.settings.pricing.granularity <= 1 and same < self._before + len(self._rest):
                same = max(mark for mark in (0, system, self._stable) if mark <= same)  # only what was marked is cached
            self._stable = len(window.system.view) + window.stable[0]
            kept = window.fixed + sum(map(window.weigh, view[system:same])) if same >= max(system, 1) else 0
        if tools != self._tools:
            if self.sent:
                kept, self.broken, self.change = 0, self.broken + 1, _difference(self._tools, tools)
            self._tools = tools
        self.sent += tokens
        self.kept += kept
        self.last = kept / tokens
        pricing, expired = window.settings.pricing, False
        if now is not None:
            expired, self._at = self._at is not None and now - self._at > pricing.lifetime, now
        self.spent += cost(pricing, 0 if expired else kept, tokens)
        self._cost = tokens
        self._lists = window.front, window.active.view
        self._before = len(view) - rest
        self._rest = tuple(view[self._before :])

    def add(self, calls: Iterable[CallRow]) -> None:
        """Add the cost of *calls*, which follow those before. O(calls)."""
        for each in calls:
            cost = (1, each.input, each.cached_read, each.cached_written, each.output)
            self.cost, self.counted = CallsCost(*map(add, self.cost, cost)), each.revision


class Renderer:
    """Renders one window, and counts what that costs."""

    def __init__(
        self, window: Window, compactor: Compactor, meter: CacheMeter, own_tools: Sequence[Message] = ()
    ) -> None:
        self._window, self._compactor, self._own_tools = window, compactor, own_tools
        self._tools: dict[str, tuple[int, str | None]] = {}
        """by their text, the lists of tools that were given: their tokens, and with the context's own as JSON"""
        self.sent: str | None = None
        """the tools that were sent with the last rendering, as JSON"""
        self.meter = meter
        self.predicted = 0
        """tokens of the last rendering, tools included"""
        self.costs: dict[bytes, int] = {}
        """tokens of the messages that were pending last, by their bytes"""
        self.said: dict[bytes, str] = {}
        """the times at which they were shown, by their bytes"""

    def view(self, *, tools: Sequence[Message], strict: bool) -> list[Message]:
        """Return what was appended. It raises as `Context.render`; nothing has changed then."""
        window, missing = self._window, self._window.active.missing
        if strict and missing:
            raise OpenToolGroup(missing)
        self._weigh(tools)
        self._compactor.fit()
        self.predicted = window.tokens
        view = window.front + window.active.view
        return view + window.active.tail() if missing else view

    def pending(self, drafted: Callable[[], Draft], *, tools: Sequence[Message], strict: bool) -> list[Message]:
        """Return what was appended, and the messages that *drafted* returns, which are not appended yet."""
        window, draft = self._window, drafted()
        shown, missing, units = window.preview(draft)
        if strict and missing:
            raise OpenToolGroup(missing)
        self._weigh(tools)
        if self._compactor.catch_up():
            shown, missing, units = window.preview(drafted())
        added = sum(unit.tokens for unit in units)
        if self._compactor.reason(added=added):
            settles = any(each.node.message["role"] != "tool" for each in draft.messages)
            plan = self._compactor.make_room(units, settles=settles, again=lambda: window.preview(drafted())[2])
            draft = clip_draft(window, drafted(), dict(plan.clips))  # a split may have taken the next page's number
            shown, _, units = window.preview(draft)
            check(window.occupancy(units), window.limits)
            added = sum(unit.tokens for unit in units)
        self.costs = costs_of(draft)
        self.said = {each.body[1]: each.node.at for each in draft.messages if each.node.at is not None}
        self.predicted = window.tokens + added
        return window.front + window.active.view + shown

    def call(self, usage: object, at: str | None) -> CallRow:
        """Return the row of the call of the last rendering, which cost *usage*. O(its tools).

        Raises:
            InvalidSetting: If *usage* does not say what the request cost.
        """
        model, head = self._window.settings.model, self._window.record.head
        tools = self.sent if self.predicted else None
        return CallRow(0, head, 0, at, model, self.predicted, *reported(usage)[1:], tools)

    def _weigh(self, tools: Sequence[Message]) -> None:
        """Count *tools* from now on. Each list is weighed once."""
        window, key = self._window, ""
        if tools:
            for position, tool in enumerate(tools):
                if not isinstance(tool, Mapping):
                    raise InvalidMessage(f"tools[{position}]", f"expected a schema, got {type(tool).__name__}")
            try:
                key = repr(tools)
                if key not in self._tools:
                    self._tools[key] = self._weighed(tools)
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidMessage("tools", f"they are no JSON ({type(error).__name__})") from error
        elif key not in self._tools:
            self._tools[key] = self._weighed(tools)
        tokens, self.sent = self._tools[key]
        window.schemas = key or window.schemas
        if tokens != window.state.tools:
            window.note(tools=tokens)

    def _weighed(self, tools: Sequence[Message]) -> tuple[int, str | None]:
        """Return the tokens of *tools*, and all that are sent with them as JSON."""
        window = self._window
        offered = window.tools if window.settings.notice else frozenset()
        more = [tool for tool in tools if call_name(plain(tool, "tools")) not in offered]
        names = {call_name(tool) for tool in tools}
        sent = [*tools, *(tool for tool in self._own_tools if call_name(tool) not in names)]
        text = None
        if sent:
            text = json.dumps([dict(tool) for tool in sent], default=str, separators=(",", ":"), ensure_ascii=False)
            text.encode()  # as a client does
        return tools_tokens(more, window.count, window.settings.model), text


def _difference(before: str | None, now: str | None) -> str:
    """Return in a few words how the tools *before* differ from the tools *now*, both as JSON. O(characters)."""
    first, second = (json.loads(text or "[]") for text in (before, now))
    pairs = zip_longest(map(call_name, first), map(call_name, second), fillvalue="none")
    other = next(((old, new) for old, new in pairs if old != new), None)
    if other is not None:
        return f"from {brief(other[0])} to {brief(other[1])}"
    changed = (call_name(new) for old, new in zip(first, second, strict=True) if old != new)
    return f"in {brief(next(changed, 'the order of their fields'))}"


def count_equal(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages the two have in common at their beginning."""
    pairs = zip(before, now, strict=False)
    return next((at for at, (old, new) in enumerate(pairs) if old != new), min(len(before), len(now)))
