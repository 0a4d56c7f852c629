"""Rendering: the messages of the next request, within the budget whatever was said before.

    front                      active pages        open group      pending
    [ system | contents … ] + [ user, assistant … ] + [ calls ] + [ what is not appended yet ]

Between two compactions each rendering extends the one before, byte for byte: only new messages cost work. A compaction
starts here only when the pending messages or the tools no longer fit. This module knows nothing of storage.
"""

import json
from collections.abc import Callable, Mapping, Sequence

from ..errors import InvalidMessage, OpenToolGroup
from ..formats.usage import reported
from ..history.writer import Goal, Writer
from ..messages import Message, call_name, plain
from ..segments.budget import Plan, check
from ..storage.protocol import CallRow
from ..tokens import tools_tokens
from ..window.draft import Draft
from ..window.drafting import clipped_draft, counted
from ..window.window import Window
from .report import CacheMeter


class Renderer:
    """Renders one window, and keeps count of what that costs."""

    def __init__(self, window: Window, writer: Writer, meter: CacheMeter, own_tools: Sequence[Message] = ()) -> None:
        self._window = window
        self._writer = writer
        self._tools: dict[str, int] = {}
        self._own_tools = own_tools
        self._sent: Sequence[Message] = ()
        """the tools of the last rendering, without those of the context's own"""
        self._postponed = False
        """whether a compaction that was due has failed"""
        self.meter = meter
        self.predicted = 0
        """tokens of the last rendering, tools included"""
        self.costs: dict[bytes, int] = {}
        """tokens of the messages that were pending last, by their bytes"""

    def view(self, *, tools: Sequence[Message], strict: bool) -> list[Message]:
        """Return what was appended. It raises what `Context.render` says; nothing has changed then."""
        window, active = self._window, self._window.active
        if strict and active.missing:
            raise OpenToolGroup(active.missing)
        self._weigh(tools)
        if self._postponed or window.tokens > window.limits.budget:
            self.compaction(Goal(low=self._low))
            check(window.occupancy(), window.limits)
        self.predicted = window.tokens
        view = window.front + active.view
        return view + active.tail() if active.missing else view

    def pending(self, drafted: Callable[[], Draft], *, tools: Sequence[Message], strict: bool) -> list[Message]:
        """Return what was appended, and the messages that *drafted* gives, which are not appended yet."""
        window = self._window
        draft = drafted()
        shown, missing, units = window.aside(draft)
        if strict and missing:
            raise OpenToolGroup(missing)
        self._weigh(tools)
        added = sum(unit.tokens for unit in units)
        full = window.tokens + added > window.limits.budget
        if full or self._postponed:
            settles = any(each.node.message["role"] != "tool" for each in draft.messages)
            goal = Goal(units, settles, None if full else window.tokens)
            clips = self.compaction(goal).clips
            if (
                clips
            ):  # what was clipped or folded came out smaller: the rest of the room is for what is pending, at once
                units = window.aside(drafted())[2]
                fits = window.tokens + sum(unit.tokens for unit in units) <= window.limits.budget
                clips = () if fits else self.compaction(goal._replace(pending=units)).clips
            draft = clipped_draft(window, drafted(), dict(clips))  # a split may have taken the next page's number
            shown, _, units = window.aside(draft)
            check(window.occupancy(units), window.limits)
            added = sum(unit.tokens for unit in units)
        self.costs = counted(draft)
        self.predicted = window.tokens + added
        return window.front + window.active.view + shown

    def call(self, usage: object, at: str | None) -> CallRow:
        """Return the row of the call of the last rendering, which cost *usage*. O(its tools).

        Raises:
            InvalidSetting: If *usage* does not say what the request cost.
        """
        tools = None
        if self.predicted:
            names = {call_name(tool) for tool in self._sent}
            sent = [*self._sent, *(tool for tool in self._own_tools if call_name(tool) not in names)]
            tools = _json(sent) if sent else None
        model, head = self._window.settings.model, self._window.record.head
        return CallRow(0, head, 0, at, model, self.predicted, *reported(usage), tools)

    def compaction(self, goal: Goal) -> Plan:
        """Start a compaction: the one way in which a window is rewritten (see `Writer.compaction`)."""
        plan = self._writer.compaction(goal)
        self._postponed = False
        return plan

    def archive(self, keep: int | None) -> Plan:
        """Start a compaction that leaves the newest *keep* closed pages; None leaves the share of the settings.

        Raises:
            StorageReadOnly: If the context is only read.
        """
        self._writer.check_writable()
        tokens = self._window.active.messages.tokens
        if keep is None:
            return self.compaction(Goal(low=int(self._window.limits.keep * tokens), fewest=1))
        return self.compaction(Goal(low=tokens, most=keep))

    def compaction_after_append(self) -> None:
        """Start the compaction that an append made due; what goes wrong is raised by the next rendering, not here.

        What was appended is stored by now: raised here, the error would make its caller append it again.
        """
        try:
            self.compaction(Goal(low=self._low))
        except Exception:  # noqa: BLE001 -- any: it comes again at the next rendering, which starts this compaction again
            self._postponed = True

    @property
    def _low(self) -> int | None:
        """How far a compaction goes: to the watermark if the window is full, else it archives nothing for its size."""
        return None if self._window.tokens > self._window.limits.budget else self._window.tokens

    def _weigh(self, tools: Sequence[Message]) -> None:
        """Count *tools* from now on; each set is weighed once."""
        tokens, self._sent = 0, tools
        if tools:
            for position, tool in enumerate(tools):
                if not isinstance(tool, Mapping):
                    raise InvalidMessage(f"tools[{position}]", f"expected a schema, got {type(tool).__name__}")
            try:
                key = repr(tools)
                if key not in self._tools:
                    _json(tools)
            except (TypeError, ValueError, RecursionError) as error:
                raise InvalidMessage("tools", f"they are no JSON ({type(error).__name__})") from error
            if key not in self._tools:
                offered = self._window.tools if self._window.settings.notice else frozenset()
                own = [tool for tool in tools if call_name(plain(tool, "tools")) not in offered]
                self._tools[key] = tools_tokens(own, self._window.count, self._window.settings.model)
            tokens = self._tools[key]
        if tokens != self._window.state.tools:
            self._window.set_tools(tokens)


def _json(tools: Sequence[Message]) -> str:
    return json.dumps([dict(tool) for tool in tools], default=str, separators=(",", ":"))
