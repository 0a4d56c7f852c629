"""The writer: every change of one context. Each is computed, committed, and only then applied to the window.

    append       draft  ──▶  entries, pages, record            undo        pages are marked
    compaction   plan   ──▶  pages, views, Contents Page       recalled    a page's counter         pin    its mark

A change that can't be committed leaves the window as it was. Writers do not lock: each commit names the revision that
its handle has read. If another writer was first, the revision in the store is a later one, and the conflict is
detected: by the store at a commit, and by `Writer.check_revision` before a rendering. Both raise WriteConflict, and
nothing is stored. This module knows nothing of tools or of rendering.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

from ..chapters.contents import ContentsPage
from ..chapters.unload import UnloadRule, rules_of
from ..errors import (
    BudgetExceeded,
    Erased,
    InvalidSetting,
    OpConflict,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    WriteConflict,
)
from ..messages import Message
from ..rows import CallRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from ..segments.budget import ClosedPage, Plan, Unit, fit
from ..segments.cache_policy import CacheUse
from ..storage import Storage
from ..storage.codec import digest
from ..storage.protocol import Transition
from ..text.summarize import Summary
from ..window import snapshot as snapshots
from ..window.cache_use import Marks, counted, unpacked
from ..window.compaction import compaction, improvable
from ..window.draft import Compaction, Draft, StoredPage
from ..window.state import WindowState
from ..window.window import PREPARED, Window
from .events import Event
from .loader import Unwritten, check_room
from .page_reader import read_back
from .reader import Reader
from .undo import popped, undone

_LOG = logging.getLogger(__name__)
_REMEMBERED = 32
"""compactions whose words are remembered"""
_NEAR = 0.75
"""the share of the trigger from which on the next compaction is prepared"""
_OVER = 0.1
"""the share of it by which the next messages may bring the request over it, usually"""


class Goal(NamedTuple):
    """What a compaction makes room for, and how far it goes."""

    low: int
    """tokens that the active pages may hold afterwards"""
    pending: tuple[Unit, ...] = ()
    """the cost of messages that are to be rendered but not appended yet"""
    settles: bool = False
    """whether they end the open tool group"""
    fewest: int | None = None
    """how many pages stay at the least; None: the setting"""
    most: int | None = None
    """how many closed pages may stay; None: the setting"""


class Writer:
    """Commits the changes of one context. Nothing else writes to its store, but for forks and erasures."""

    def __init__(
        self,
        storage: Storage,
        window: Window,
        reader: Reader,
        *,
        rules: Sequence[UnloadRule] | None,
        notify: Callable[[Event], None],
        summaries: Callable[[Sequence[int]], Mapping[int, Summary]] | None,
        unwritten: Unwritten | None = None,
        read_only: bool = False,
    ) -> None:
        self._storage = storage
        self._window = window
        self._reader = reader
        self._unwritten = unwritten
        self._read_only = read_only
        self._rules = tuple(rules) if rules is not None else rules_of(window.settings)
        self._notify = notify
        self._summaries = summaries
        self._marks: deque[Marks] | None = None
        """of pages that left the window; None: not read yet"""

    def append(
        self, draft: Draft, state: WindowState, call: CallRow | None, *, op_id: str | None, at: str | None
    ) -> OpRow | None:
        """Store *draft* and *call*, then add it to the window, whose state is *state* then. O(messages of the draft).

        Return None; or the stored row of *op_id*, if an append of that name is stored already: then nothing has
        changed. It raises what `Context.append_turn` says.
        """
        window = self._window
        record, rows = window.drafted(draft, state)
        entries = tuple(
            [
                EntryRow(node.seq, *body, digest(*body), node.tokens, node.clip, node.quotes, at)
                for node, _, _, body, _, _ in draft.messages
            ]
        )
        op = None
        if op_id is not None:
            whole = blake2b(b"".join(row.digest for row in entries), digest_size=16)
            op = OpRow(op_id, whole.digest(), window.record.head, tuple(each.place for each in draft.messages))
        call = _following(call, record)
        known = self._commit(Transition(window.record.head, record, entries, rows, op=op, call=call))
        if known is not None:
            if known.digest == bytes(len(known.digest)):
                raise Erased(f"op_id {known.op_id!r}")
            if op is None or known.digest != op.digest:
                raise OpConflict(known.op_id)
            pages = {index: self._reader.page(index, window.record) for index, _ in known.entries}
            for index, ordinal in known.entries:
                self._reader.holding(pages[index], ordinal, window.record)
            return known
        window.append(draft, record, rows)
        for each in draft.messages:
            if each.node.clip:
                self._notify(Event("clip", record.id, each.place[:1], each.whole))
        return None

    def compaction(self, goal: Goal) -> Plan:
        """Make the compaction that reaches *goal*, and return its plan. O(messages in the window).

        BudgetExceeded if the window can't fit; nothing has changed then.
        """
        window = self._window
        reason = window.levels.reason
        if window.levels.cold is not None:
            window.note(cache=self._counted())
        pinned = [self._stored(index) for index in window.state.pins if index not in window.rows]
        own = window.contents.lines if window.state.relist else {}
        recalled = [
            self._stored(index)
            for index in window.state.relist
            if index not in own and index not in window.rows and index not in window.state.pins
        ]
        occupancy = window.occupancy(goal.pending, settles=goal.settles)
        coming = tuple(
            ClosedPage(page.row.index, sum(node.tokens for node in page.text.nodes), pinned=True) for page in pinned
        )
        limits = window.limits if goal.fewest is None else replace(window.limits, fewest=goal.fewest)
        if goal.most is not None:
            limits = replace(limits, active_pages=goal.most, keep=1.0)
        plan = fit(replace(occupancy, closed=(*occupancy.closed, *coming)), limits, low=goal.low)
        made = self._made(plan, recalled, pinned)
        if not made.changed and not made.views and made.contents == window.contents:
            return plan
        state = replace(window.state, relist=(), compactions=window.state.compactions + 1)
        if made.contents != window.contents:
            opened = window.active.open
            state = replace(state, rewritten=opened.base if opened is not None else window.record.head)
        record = window.changed(state)._replace(next_page=made.next_page)
        views = [(seq, tokens, clip) for seq, _, tokens, clip in made.views]
        views += [(node.seq, node.tokens, node.clip) for page in made.restored for node in page.text.nodes]
        if not self._read_only:  # a handle that only reads shows the compaction and stores nothing
            transition = Transition(record.head, record, pages=made.changed, views=tuple(views))
            self._commit(transition, made.contents, made.marks)
        window.turn_over(made, record, state)
        if made.marks is not None and self._marks is not None:
            self._marks.append(unpacked(made.marks))
        left = tuple(row.index for row in made.changed if row.state is PageState.ARCHIVED)
        self._notify(Event("compaction", record.id, left, window.tokens, reason))
        if made.unloaded:
            self._notify(Event("unload", record.id, made.unloaded, window.tokens))
        return plan

    @property
    def preparable(self) -> bool:
        """Whether a compaction may be near, of which what is shown can be told."""
        window, state = self._window, self._window.state
        near = window.tokens > _NEAR * window.levels.trigger and not self._read_only
        return near and not state.relist and all(index in window.rows for index in state.pins)

    def prepare(self) -> Iterator[None]:
        """Make the Contents Pages that the next compaction may show, one before each yield. Nothing is stored.

        It is not known how far the next messages bring the request over the trigger: each page more that leaves for it
        gives another Contents Page. O(messages that leave the window + lines) for each.
        """
        window, record, levels = self._window, self._window.record, self._window.levels
        occupancy = window.occupancy()
        sizes = {page.index: page.tokens for page in occupancy.closed}
        over, least = max(0, levels.trigger - window.tokens) + 1, int(_OVER * levels.trigger / PREPARED) + 1
        most = over + (PREPARED - 1) * least
        while over <= most and self.preparable and window.record is record:
            added = replace(occupancy, units=(*occupancy.units, Unit(over)))
            try:
                plan = fit(added, window.limits, low=levels.warm)
            except BudgetExceeded:
                return  # as the call will say
            if plan.split:
                return  # of the open page, which still grows
            self._made(plan)
            yield
            left = added.tokens - added.fixed - added.contents - sum(sizes[index] for index in plan.archive)
            over += max(least, levels.warm - left + 1)

    def _made(self, plan: Plan, recalled: Sequence[StoredPage] = (), pinned: Sequence[StoredPage] = ()) -> Compaction:
        """Return the compaction of *plan*, with what a model made of its pages. O(messages that leave + lines)."""
        summaries: Mapping[int, Summary] = {}
        if self._summaries is not None:
            pages = [*plan.archive, *(page.row.index for page in recalled), *improvable(self._window, plan)]
            summaries = self._summaries(pages)
        return compaction(self._window, plan, rules=self._rules, recalled=recalled, pinned=pinned, summaries=summaries)

    def ended(self, now: float | None) -> bool:
        """Return whether what the last request had is worth nothing by *now* (seconds since 1970), once for each gap.

        It is not if the prompt cache has expired, or if nothing from before a gap is needed after it. The gap is noted,
        and what the context needs is counted; both are stored with the next change. O(text in the window).
        """
        window, use = self._window, self._counted()
        expired = window.idle(now) > window.settings.pricing.lifetime
        if gap := window.paused(now) and not self._read_only:
            use = use._replace(gaps=use.gaps + 1, gap=window.record.head)
            window.other_model = False
        window.note(cache=use)
        return gap and (expired or window.levels.forgets)

    def _counted(self) -> CacheUse:
        """Return what is known now of how the context uses its past. O(text in the window since the last gap)."""

        def behind() -> Iterable[Marks]:
            if self._marks is None:
                rows = islice(self._storage.compactions(self._window.record.id), _REMEMBERED)
                found = [unpacked(text) for row in rows if (text := snapshots.marks(row.text))]
                self._marks = deque(reversed(found), maxlen=_REMEMBERED)
            return self._marks

        return counted(self._window, behind)

    @property
    def due(self) -> bool:
        """Whether an unload rule that runs every turn would unload a page now. O(listed pages)."""
        if not self._window.settings.every_turn:
            return False
        rows = self._window.listed.values()
        return any(rule(rows, self._window.record.turn) for rule in self._rules)

    def recalled(self, index: int) -> None:
        """Count a recall of page *index*, once per turn. The next compaction lists the page on a line of its own.

        If the store can't be written just now, the recall is not counted; the caller gets the page nevertheless.
        """
        window = self._window
        row, turn = self._row(index), window.record.turn
        if self._read_only or (row.recall_count and row.last_recalled_turn == turn):
            return
        row = row._replace(recall_count=row.recall_count + 1, last_recalled_turn=turn)
        state = window.state
        if index not in window.contents.lines and index not in state.relist:
            state = replace(state, relist=(*state.relist, index))
        try:
            self.store_state(state, row)
        except (StorageFull, StorageReadOnly, StorageBusy) as error:
            _LOG.debug("a recall of page %d is not counted: %s", index, type(error).__name__)
            return
        if index in window.listed:
            window.listed[index] = row

    def pin(self, index: int) -> None:
        """Keep page *index* in the window, as `Context.pin` says; a part of the open page is InvalidSetting."""
        window, state = self._window, self._window.state
        row = self._row(index)
        if row.continues is not None and row.continues == window.record.open_page:
            raise InvalidSetting(
                "index", f"page #{index} is a part of the open page #{row.continues}: recall it instead"
            )
        if index in state.pins:
            return
        tokens = 0
        for each in (*state.pins, index):
            page = window.active.page(each)
            tokens += page.tokens if page else sum(node.tokens for node in self._stored(each).text.nodes)
        check_room(window, tokens)
        self.store_state(replace(state, pins=(*state.pins, index)))

    def unpin(self, index: int) -> None:
        """Remove the pin of page *index*: from now on, compactions archive it as any other page."""
        state = self._window.state
        self._row(index)
        if index in state.pins:
            self.store_state(replace(state, pins=tuple(each for each in state.pins if each != index)))

    def undo(self) -> list[Message]:
        """Take back the newest interaction and return its messages (see `undone`)."""
        window = self._window
        transition, pages, contents, messages = undone(self._storage, window, self._reader)
        self._commit(transition, contents if contents != window.contents else None)
        window.forget(pages, contents, transition.record)
        return messages

    def pop(self) -> Message:
        """Take back the newest message and return it (see `popped`). The window is to be read again then."""
        transition, message = popped(self._storage, self._window)
        self._commit(transition)
        return message

    def _row(self, index: int) -> PageRow:
        return self._window.row(index) or self._reader.page(index, self._window.record)

    def _stored(self, index: int) -> StoredPage:
        row = self._reader.page(index, self._window.record)
        return read_back(self._window, self._reader, row)

    def store_state(self, state: WindowState, *rows: PageRow, call: CallRow | None = None) -> None:
        """Store *state*, and the pages *rows* and the *call* that come with it; nothing if nothing changes."""
        if state != self._window.state or rows or call is not None:
            self._store(state, rows, call)

    def store_opened(self) -> None:
        """Store what opening left unwritten: new settings, and the tokens of the window by a new counter."""
        if self._unwritten is not None:
            self._store(self._window.state)

    def _store(self, state: WindowState, rows: tuple[PageRow, ...] = (), call: CallRow | None = None) -> None:
        record = self._window.changed(state)
        self._commit(Transition(record.head, record, pages=rows, call=_following(call, record)))
        self._window.follow(record, state)

    def check_revision(self) -> None:
        """Raise WriteConflict if another writer has changed the context since this handle read it. O(1).

        A handle that only reads may show an earlier revision.
        """
        record = self._window.record
        if not self._read_only and (stored := self._storage.revision(record.id)) != record.revision:
            raise WriteConflict(f"context {record.id!r} is at revision {stored}, not {record.revision}: call refresh()")

    def check_writable(self) -> None:
        """Raise StorageReadOnly if the context was opened for reading only."""
        if self._read_only:
            raise StorageReadOnly(f"context {self._window.record.id!r:.60} was opened for reading only")

    def _commit(
        self, transition: Transition, contents: ContentsPage | None = None, marks: str | None = None
    ) -> OpRow | None:
        """Store *transition*, and with it what opening left unwritten; with *contents*, it is a compaction."""
        self.check_writable()
        window, unwritten = self._window, self._unwritten
        if unwritten is not None and contents is None:
            contents = window.contents
        if contents is not None:
            rows = dict(window.rows)
            rows.update((row.index, row) for row in transition.pages)
            active = [row for row in rows.values() if row.state is PageState.ACTIVE]
            was = unwritten and unwritten.was
            text = snapshots.dumps(contents, transition.record, active, was=was, marks=marks)
            transition = transition._replace(compaction=text)
        if unwritten is not None:
            transition = transition._replace(views=unwritten.views + transition.views)
        known = self._storage.commit(transition)
        if known is None:
            self._unwritten = None
        return known


def _following(call: CallRow | None, record: ContextRecord) -> CallRow | None:
    """Return *call* as it is committed with *record*."""
    return None if call is None else call._replace(revision=record.revision, turn=record.turn)
