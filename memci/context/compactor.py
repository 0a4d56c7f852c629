"""The compactor of one context: it decides when to compact, prepares compactions in idle time, and performs them.

    after an append, before a rendering  ──▶  reason()   why a compaction is due, or None
    due, or asked for by archive()       ──▶  plan, next Contents Page, commit, window
    idle time                            ──▶  step()     makes Contents Pages that the next compaction may show

An append compacts for any `Reason`. A rendering extends the one before, so that the provider's cache keeps it: it
compacts only after a gap, after a failure, or if the request would not fit.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from math import inf
from typing import Any

from ..chapters.unload import UnloadRule, rules_of
from ..errors import BudgetExceeded
from ..history.events import Event
from ..history.page_reader import read_back
from ..history.reader import Reader
from ..history.writer import Writer
from ..rows import PageState
from ..segments.budget import ClosedPage, Plan, Unit, check, fit
from ..segments.cache_policy import EVERY, GAPS, KNOWN, PAUSE_SECONDS, SOON, CacheUse, Levels
from ..storage import Storage
from ..text.summarize import Summary
from ..window import snapshot as snapshots
from ..window.cache_use import Marks, begins_task, count_uses, unpack_marks
from ..window.compaction import improvable, make_compaction
from ..window.draft import Compaction, Draft, Prepared, StoredPage
from ..window.window import Window
from ..workers import QUIET_SECONDS, worker

_LOG = logging.getLogger(__name__)
_REMEMBERED = 32  # compactions whose marks are kept in memory: an agent rarely needs what left the window earlier
_WORTH = 1.1
"""how far the active pages must exceed the cold level: a compaction that removes less saves hardly anything"""
_NEAR = 0.75
"""share of the trigger from which on the next compaction is prepared: earlier, a later append would discard the work"""
_OVER = 0.1  # share of the trigger by which an append usually exceeds it at most
PREPARED = 8  # Contents Pages that are prepared at most: how many pages will leave is not known before the next append


class Reason(StrEnum):
    """Why a context is compacted."""

    EXPIRED = "the provider's prompt cache has expired"
    PAUSED = "the provider's prompt cache is empty, or has expired, in the middle of a task"
    FORGETS = "a task has ended, and what was said before is not needed after it"
    FAILED = "a compaction failed after an append"
    OVER_BUDGET = "the request exceeds the budget"
    OVER_LEVEL = "the request exceeds the trigger of the cache policy"
    TOO_MANY_PAGES = "more closed pages are in the window than the settings allow"
    RULES = "an unload rule that is asked every turn names a page"
    ASKED = "the caller asked for it"


_GAPS = frozenset({Reason.EXPIRED, Reason.PAUSED, Reason.FORGETS})


class Compactor:
    """Decides, prepares and performs the compactions of one context. *lock* is the lock that its calls hold."""

    patience = QUIET_SECONDS

    def __init__(
        self,
        storage: Storage,
        window: Window,
        reader: Reader,
        writer: Writer,
        lock: threading.RLock,
        *,
        rules: Sequence[UnloadRule] | None,
        notify: Callable[[Event], None],
        summaries: Callable[[Sequence[int]], Mapping[int, Summary]] | None,
    ) -> None:
        self._storage, self._window, self._reader, self._writer = storage, window, reader, writer
        self._lock = lock
        self._rules = tuple(rules) if rules is not None else rules_of(window.settings)
        self._notify, self._summaries = notify, summaries
        self._marks: deque[Marks] | None = None
        """of pages that left the window; None: not read yet"""
        self._gap: Reason | None = None
        """a gap after which the window was not compacted yet"""
        self._failed = False
        """whether the compaction after an append has failed"""
        self._unfit: object = None
        """the record of the window when it could not be compacted after a gap or a failure: only a change helps"""
        self.prepared: deque[Prepared] = deque(maxlen=PREPARED)
        """what the next compaction may show"""
        self._steps: Iterator[None] | None = None
        self._ended = False
        self.touched = 0.0

    # -- when

    def reason(self, *, added: int = 0, appended: bool = False) -> Reason | None:
        """Return why a compaction is due, or None. O(pages in the window, and listed ones if a rule asks every turn).

        Args:
            added: Tokens of messages that are to be rendered, but are not appended yet.
            appended: Whether messages were just appended; else the window is about to be rendered.
        """
        window, levels = self._window, self._window.levels
        if self._gap and (levels.cold is None or not window.exceeds(self._stays(self._gap), by=_WORTH)):
            self._gap = None  # too little would leave
        if self._unfit is not window.record:
            if self._gap:
                return self._gap
            if self._failed and not appended:
                return Reason.FAILED
        tokens = window.tokens
        if tokens + added > window.limits.budget:
            return Reason.OVER_BUDGET
        if not appended:
            return None
        if tokens > levels.trigger and tokens - window.words > levels.trigger:
            return Reason.OVER_LEVEL
        if (most := window.limits.active_pages) is not None:
            pinned = sum(index in window.rows for index in window.state.pins if index != window.record.open_page)
            if len(window.active.closed) - pinned > most:
                return Reason.TOO_MANY_PAGES
        if window.settings.every_turn:
            rows = window.listed.values()
            if any(rule(rows, window.record.turn) for rule in self._rules):
                return Reason.RULES
        return None

    def look(self, now: float | None, draft: Draft | None = None, op_id: str | None = None) -> None:
        """Notice a gap before *now* (seconds since 1970), and count now and then what the context needs of its past.

        The user's message with which *draft* opens a page may begin another task: that is a gap, too.
        A repeated append, one whose *op_id* is stored, begins nothing: the next one notices a gap before it.
        After a gap a compaction costs little: the provider's cache has expired, or holds what is not needed any more.
        A pause is no gap where the text tells the ends of tasks: it only empties the cache.
        Both findings are stored with the next change. O(1); after a pause, and each `EVERY` messages, or `SOON` where
        it matters, O(text in the window).
        """
        window, state, levels = self._window, self._window.state, self._window.levels
        if levels.cold is None:
            return
        use, drafted = state.cache, draft.messages if draft is not None else ()
        if drafted and not use.acts and any(each.node.message["role"] == "tool" for each in drafted):
            use = use._replace(acts=True)
        idle = 0.0 if now is None or window.latest is None else now - window.latest
        lifetime, new = window.settings.pricing.lifetime, window.absent == inf
        opening = [each for each in drafted if each.opens] if use.acts else []
        ended = bool(opening) and begins_task(window, opening[0].node.message)
        quiet = idle > min(PAUSE_SECONDS, lifetime) and use.ends < GAPS
        paused = (new or ended or quiet) and use.gap != window.record.head
        cold = not paused and idle + window.absent > lifetime and not self._writer.read_only
        if (paused or cold) and op_id is not None and self._storage.op(window.record.id, op_id) is not None:
            return
        if cold:
            self._gap = Reason.PAUSED  # or another model went on with the task
            window.absent = 0.0
        since = window.record.head - use.counted
        soon = since >= SOON and use.uses < KNOWN and window.tokens > levels.soonest
        if since >= EVERY or soon or (paused and not ended):
            use = self._use(use)
        paused = paused and not self._writer.read_only
        if paused:
            breaks = [each for each in use.breaks if each < window.record.head]  # a fork may begin before the last one
            use = use._replace(gaps=use.gaps + 1, breaks=(*breaks, window.record.head), ends=use.ends + ended)
            window.absent = 0.0
        if use is not state.cache:
            window.note(cache=use)
        if paused and (new or idle > lifetime):
            self._gap = Reason.PAUSED if new else Reason.EXPIRED
        elif paused and window.levels.forgets:
            self._gap = self._gap or Reason.FORGETS

    def _use(self, use: CacheUse) -> CacheUse:
        """Return *use*, of before, with what the context used of its past since. O(text in the window)."""

        def behind() -> Iterable[Marks]:
            if self._marks is None:
                rows = islice(self._storage.compactions(self._window.record.id), _REMEMBERED)
                found = [unpack_marks(text) for row in rows if (text := snapshots.marks(row.text))]
                self._marks = deque(reversed(found), maxlen=_REMEMBERED)
            return self._marks

        return count_uses(self._window, use, behind)

    def _levels(self) -> Levels:
        """Return the levels of a compaction now: uses are counted first. O(text in the window)."""
        if self._window.levels.cold is not None:
            self._window.note(cache=self._use(self._window.state.cache))
        return self._window.levels

    # -- performing

    def after_append(self) -> None:
        """Perform the compaction that an append made due, and have the next one prepared if it is near.

        What goes wrong is raised by the next rendering, not here: the messages are stored by now, and an error would
        make the caller append them again.
        """
        try:
            while (reason := self.reason(appended=True)) is not None:
                self._compact_for(reason)
                if reason not in _GAPS:
                    break
        except Exception:  # noqa: BLE001 -- whatever it is, the next rendering tries again and raises it
            self._failed = True
        if self._near:
            self.submit()

    def fit(self) -> None:
        """Perform the compactions without which what was appended can't be rendered.

        Raises:
            BudgetExceeded: If it does not fit, whatever leaves.
        """
        window = self._window
        if self.reason() is None:
            return
        self.catch_up(final=True)
        if (reason := self.reason()) is None:
            return
        self._compact_for(reason)
        if (reason := self.reason()) is not None:  # a clip left more than was planned: the contents make the room
            self._compact_for(reason)
        check(window.occupancy(), window.limits)

    def catch_up(self, *, final: bool = False) -> bool:
        """Perform the compaction that is due after a gap or a failure; return whether there was one.

        If it is impossible (pinned pages do not fit beside the others), what fits is rendered nevertheless. Unless this
        is *final*, messages follow that may end a tool group, and a compaction for them is tried as well.
        """
        window, reason = self._window, self.reason()
        if reason not in {*_GAPS, Reason.FAILED}:
            return False
        try:
            self._compact_for(reason)
        except BudgetExceeded:
            if final and window.tokens > window.limits.budget:
                raise
            self._unfit = window.record
            return False
        return True

    def make_room(self, units: tuple[Unit, ...], *, settles: bool, again: Callable[[], tuple[Unit, ...]]) -> Plan:
        """Compact for pending messages that cost *units*; return the plan, which says how far to clip which of them.

        *settles*: whether they end the open tool group. *again* returns what they cost after a compaction.
        """
        window, warm = self._window, self._levels().warm
        plan = self._compact(Reason.OVER_BUDGET, warm, pending=units, settles=settles)
        if plan.clips:  # what was clipped or folded came out smaller: the rest of the room is for what is pending
            units = again()
            if window.tokens + sum(unit.tokens for unit in units) <= window.limits.budget:
                return replace(plan, clips=())
            plan = self._compact(Reason.OVER_BUDGET, warm, pending=units, settles=settles)
        return plan

    def archive(self, keep: int | None) -> Plan:
        """Compact on request, down to the newest *keep* closed pages; None: to the level that the cache policy gives.

        Raises:
            StorageReadOnly: If the context is only read.
        """
        self._writer.check_writable()
        if keep is not None:
            return self._compact(Reason.ASKED, self._window.limits.budget, active_pages=keep, keep=1.0)
        levels = self._levels()
        return self._compact(Reason.ASKED, levels.warm if levels.cold is None else levels.cold, fewest=1)

    def _compact_for(self, reason: Reason) -> None:
        """Compact as far as *reason* asks."""
        window, levels = self._window, self._levels()
        if reason in _GAPS and levels.cold is not None:
            self._compact(reason, self._stays(reason), words=window.limits.words_left)
            self._gap = None
        elif reason is not Reason.OVER_LEVEL or window.tokens > levels.trigger:  # below it no page leaves for its size
            self._compact(reason, self._warm if window.tokens > levels.trigger else window.tokens)

    def _stays(self, gap: Reason) -> int:
        """Return the size of the active pages that stays after *gap*: more if it does not end the task."""
        opened, cold = self._window.active.open, self._window.levels.cold or 0
        within = gap is Reason.PAUSED or (opened is not None and opened.base < self._window.state.cache.gap)
        return max(cold, self._warm) if within else cold

    @property
    def _warm(self) -> int:
        """The size of the active pages after a compaction: the warm level, or if the text tells the ends of tasks, the
        whole task, as long as half of the way to the trigger stays free. O(messages in the window).
        """
        window, levels = self._window, self._window.levels
        if window.state.cache.ends < GAPS:
            return levels.warm
        task = sum(node.tokens for node in window.active.messages if node.seq >= window.state.cache.gap)
        return max(levels.warm, min(task, (levels.warm + levels.trigger - window.front_tokens) // 2))

    def _compact(
        self, reason: Reason, low: int, *, pending: tuple[Unit, ...] = (), settles: bool = False, **limits: Any
    ) -> Plan:
        """Perform one compaction, and return its plan; BudgetExceeded if the window can't fit, which changes nothing.

        *low*: tokens that the active pages may hold afterwards. *pending* and *settles*: as in `make_room`. *limits*
        replace those of the window. O(messages in the window).
        """
        window, why = self._window, self._window.levels.reason
        pinned = [read_back(window, self._reader, index) for index in window.state.pins if index not in window.rows]
        own = window.contents.lines if window.state.relist and not window.settings.every_entry else {}
        recalled = [
            read_back(window, self._reader, index)
            for index in window.state.relist
            if index not in own and index not in window.rows and index not in window.state.pins
        ]
        occupancy = window.occupancy(pending, settles=settles)
        coming = tuple(ClosedPage(page.row.index, page.tokens, pinned=True) for page in pinned)
        segments, costs = window.segments.read()
        occupancy = replace(occupancy, closed=(*occupancy.closed, *coming), segments=costs)
        plan = fit(occupancy, replace(window.limits, **limits), low=low)
        made = self._made(plan, recalled, pinned, cold=reason in _GAPS)
        changes = made.contents != window.contents or segments != window.state.segments
        if made.changed or made.views or changes:
            self._writer.compact(made, segments)
            self.prepared.clear()
            if made.marks is not None and self._marks is not None:
                self._marks.append(unpack_marks(made.marks))
            left = tuple(row.index for row in made.changed if row.state is PageState.ARCHIVED)
            self._notify(Event("compaction", window.record.id, left, window.tokens, why))
            for rule, pages in made.unloaded.items():
                self._notify(Event("unload", window.record.id, pages, window.tokens, rule))
            _LOG.debug("compacted: %s", reason)
        self._failed = False
        return plan

    def _made(
        self, plan: Plan, recalled: Sequence[StoredPage] = (), pinned: Sequence[StoredPage] = (), *, cold: bool = False
    ) -> Compaction:
        """Return the compaction of *plan*, with what a model made of its pages. O(messages that leave + lines)."""
        summaries: Mapping[int, Summary] = {}
        if self._summaries is not None:
            pages = [*plan.archive, *(page.row.index for page in recalled), *improvable(self._window, plan)]
            summaries = self._summaries(pages)
        return make_compaction(
            self._window,
            plan,
            rules=self._rules,
            recalled=recalled,
            pinned=pinned,
            summaries=summaries,
            prepared=self.prepared,
            cold=cold,
        )

    # -- preparing

    @property
    def _near(self) -> bool:
        """Whether a compaction may be near whose Contents Page can be made before."""
        window, state = self._window, self._window.state
        near = window.tokens > _NEAR * window.levels.trigger and not self._writer.read_only
        return near and not state.relist and all(index in window.rows for index in state.pins)

    def submit(self) -> None:
        """Ask the worker to prepare the next compaction once the context is idle."""
        self._steps, self.touched = None, time.monotonic()
        worker.submit(self)

    def end(self) -> None:
        """Prepare nothing any more: the context is closed."""
        self._ended = True

    def step(self) -> bool:
        """Do one step of a few milliseconds, and return whether there is more to do. Nothing is stored."""
        with self._lock:
            if self._ended:
                return False
            self._steps = self._steps or self._prepare()
            return next(self._steps, self) is not self

    def _prepare(self) -> Iterator[None]:
        """Make the Contents Pages that the next compaction may show, one before each yield.

        How far the next messages will exceed the trigger is not known: each page more that leaves for them gives
        another Contents Page. A compaction uses one only if it is, byte for byte, the one that it would make.
        O(messages that leave the window + lines) for each.
        """
        window, record, levels = self._window, self._window.record, self._window.levels
        occupancy = window.occupancy()
        sizes = {page.index: page.tokens for page in occupancy.closed}
        over, least = max(0, levels.trigger - window.tokens) + 1, int(_OVER * levels.trigger / PREPARED) + 1
        most = over + (PREPARED - 1) * least
        while over <= most and self._near and window.record is record:
            added = replace(occupancy, units=(*occupancy.units, Unit(over)))
            try:
                plan = fit(added, window.limits, low=self._warm)
            except BudgetExceeded:
                return  # the compaction will raise it
            if plan.leave:
                return  # the open page still grows
            self._made(plan)
            yield
            left = added.tokens - added.fixed - added.contents - sum(sizes[index] for index in plan.archive)
            over += max(least, self._warm - left + 1)
