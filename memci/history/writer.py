"""Writing: the changes of one context. Each is computed, committed, and only then taken in.

    append     draft ──▶ entries, pages, record          compaction    plan ──▶ pages, views, Contents Page
    recalled   one counter                               pinned     one mark                undo   pages are marked

A change that can't be committed leaves the window as it was. This module knows nothing of tools or of rendering.
"""

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from ..chapters.contents import ContentsPage
from ..chapters.unload import UnloadRule, rules_of
from ..errors import (
    Erased,
    InvalidSetting,
    OpConflict,
    PageNotFound,
    StorageBusy,
    StorageFull,
    StorageReadOnly,
    WriteConflict,
)
from ..history.events import Event
from ..messages import Message
from ..segments.budget import ClosedPage, Plan, Unit, fit
from ..storage import Storage
from ..storage.codec import digest
from ..storage.protocol import EntryRow, OpRow, PageRow, PageState, Transition
from ..text.summarize import Summary
from ..window import snapshot as snapshots
from ..window.compaction import compaction, improvable
from ..window.draft import Draft, StoredPage
from ..window.state import WindowState
from ..window.window import Window
from .loader import Unwritten, fits
from .page_reader import read_back
from .reader import Reader

_LOG = logging.getLogger("memci")
_GONE = (PageState.UNDONE, PageState.ERASED)


class Writer:
    """What changes a context: the one road to its store."""

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
        self._wrote = False

    def append(self, draft: Draft, state: WindowState, *, op_id: str | None, at: str | None) -> OpRow | None:
        """Store *draft* and take it in; return the row of *op_id* if it was stored before, and nothing happened.

        Raises:
            OpConflict: If *op_id* was used before with other messages.
            Undone: If what it stored was taken back; `Erased` if it was erased.
        """
        window = self._window
        record, rows = window.drafted(draft, state)
        entries = tuple(
            EntryRow(node.seq, codec, body, digest(codec, body), node.tokens, node.clip, node.quotes, at)
            for node, (codec, body) in zip(draft.nodes, draft.bodies, strict=True)
        )
        op = None
        if op_id is not None:
            op = OpRow(op_id, _op_digest(draft), window.record.head, draft.places)
        known = self._commit(Transition(window.record.head, record, entries, rows, op=op))
        if known is not None:
            if known.digest == bytes(len(known.digest)):
                raise Erased(f"op_id {known.op_id!r}")
            if op is None or known.digest != op.digest:
                raise OpConflict(known.op_id)
            for index in {page for page, _ in known.entries}:
                self._reader.page(index, window.record)
            return known
        window.append(draft, record, rows)
        for node, (page, _), tokens in zip(draft.nodes, draft.places, draft.whole, strict=True):
            if node.clip:
                self._notify(Event("clip", record.id, (page,), tokens))
        return None

    def compaction(
        self,
        *,
        pending: tuple[Unit, ...] = (),
        settles: bool = False,
        low: int | None = None,
        fewest: int | None = None,
        most: int | None = None,
    ) -> Plan:
        """Start a compaction that makes room for *pending* units, and return its plan. O(messages in the window).

        Args:
            pending: What is to be rendered but not appended yet.
            settles: Whether that ends the open tool group.
            low: Tokens that the active pages may hold afterwards; default: the watermark.
            fewest: Pages at which the watermark stops; default: what the settings say.
            most: How many closed pages may stay; default: what the settings say.

        Raises:
            BudgetExceeded: If the window can't fit; nothing has changed then.
        """
        window = self._window
        pinned = [self._stored(index) for index in window.state.pins if index not in window.rows]
        own = window.contents.lines
        recalled = [
            self._stored(index)
            for index in window.state.relist
            if index not in own and index not in window.rows and index not in window.state.pins
        ]
        occupancy = window.occupancy(pending, settles=settles)
        coming = tuple(
            ClosedPage(page.row.index, sum(node.tokens for node in page.nodes), pinned=True) for page in pinned
        )
        limits = window.limits if fewest is None else replace(window.limits, fewest=fewest)
        if most is not None:
            limits = replace(limits, active_pages=most, keep=1.0)
        plan = fit(replace(occupancy, closed=(*occupancy.closed, *coming)), limits, low=low)
        summaries: Mapping[int, Summary] = {}
        if self._summaries is not None:
            listed = [*plan.archive, *(page.row.index for page in recalled), *improvable(window, plan)]
            summaries = self._summaries(listed)
        made = compaction(window, plan, rules=self._rules, recalled=recalled, pinned=pinned, summaries=summaries)
        if not made.changed and not made.views and made.contents == window.contents:
            return plan
        state = replace(window.state, relist=(), compactions=window.state.compactions + 1).posting(made.state_changes)
        record = window.changed(state)._replace(next_page=made.next_page)
        views = [(seq, tokens, clip) for seq, _, tokens, clip in made.views]
        views += [(node.seq, node.tokens, node.clip) for page in made.restored for node in page.nodes]
        if not self._read_only:  # what only reads shows it, and stores nothing
            self._commit(Transition(record.head, record, pages=made.changed, views=tuple(views)), made.contents)
        window.turn_over(made, record)
        left = tuple(row.index for row in made.changed if row.state is PageState.ARCHIVED)
        self._notify(Event("compaction", record.id, left, window.tokens))
        if made.unloaded:
            self._notify(Event("unload", record.id, made.unloaded, window.tokens))
        return plan

    @property
    def due(self) -> bool:
        """Whether a rule that runs every turn would unload something now. O(listed pages)."""
        rows = self._window.listed.values()
        return self._window.settings.every_turn and any(rule(rows, self._window.record.turn) for rule in self._rules)

    def recalled(self, index: int) -> None:
        """Count a recall of page *index*, once per turn; it gets a line of its own again at the next compaction.

        Where nothing can be written just now, it is not counted: the caller gets the page all the same.
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
            self.remember(state, row)
        except (StorageFull, StorageReadOnly, StorageBusy) as error:
            _LOG.debug("a recall of page %d is not counted: %s", index, type(error).__name__)
            return
        if index in window.listed:
            window.listed[index] = row

    def pin(self, index: int) -> None:
        """Keep page *index* in the window, from the next compaction on if it is not there.

        Raises:
            BudgetExceeded: If it does not fit beside system, pins and a quarter for the open page.
        """
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
            tokens += page.tokens if page else sum(node.tokens for node in self._stored(each).nodes)
        fits(window, tokens, window.limits.budget)
        self.remember(replace(state, pins=(*state.pins, index)))

    def unpin(self, index: int) -> None:
        """Let page *index* go when its time comes."""
        state = self._window.state
        self._row(index)
        if index in state.pins:
            self.remember(replace(state, pins=tuple(each for each in state.pins if each != index)))

    def undo(self) -> list[Message]:
        """Mark the newest interaction as undone and return its messages.

        Raises:
            PageNotFound: If there is none.
        """
        window, record = self._window, self._window.record
        rows = self._newest()
        found = self._reader.all_entries(rows, record.head)
        messages = sorted(
            ((entry.seq, message) for page in found.values() for entry, message in page), key=itemgetter(0)
        )
        gone = frozenset(row.index for row in rows)
        marked = tuple(
            row._replace(state=PageState.UNDONE, end=record.head if row.end is None else row.end) for row in rows
        )
        state = replace(
            window.state,
            pins=tuple(index for index in window.state.pins if index not in gone),
            relist=tuple(index for index in window.state.relist if index not in gone),
            task=None if window.state.task in gone else window.state.task,
            undone=window.state.undone + len(gone),
        ).posting(gone)
        contents = window.contents.without(gone, state.nonce, window.weigh)
        changed = contents != window.contents
        after = window.changed(state)._replace(open_page=None)
        self._commit(Transition(record.head, after, pages=marked), contents if changed else None)
        window.forget(gone, contents, after)
        return [message for _, message in messages]

    def _newest(self) -> list[PageRow]:
        """Return what is left of the newest interaction that was not undone or erased, by index. O(pages behind it)."""
        record = self._window.record
        for index in range(record.next_page - 1, 0, -1):
            for row in self._storage.pages(record.id, first=index, last=index):
                if row.state in _GONE:
                    continue
                origin = row.continues or row.index
                others = self._storage.pages(record.id, first=origin)
                return [each for each in others if origin in (each.index, each.continues) and each.state not in _GONE]
        raise PageNotFound("newest", (1, record.next_page - 1) if record.next_page > 1 else None)

    def _row(self, index: int) -> PageRow:
        return self._window.row(index) or self._reader.page(index, self._window.record)

    def _stored(self, index: int) -> StoredPage:
        row = self._reader.page(index, self._window.record)
        return read_back(self._window, self._reader, row)

    def remember(self, state: WindowState, *rows: PageRow) -> None:
        """Store *state*, and *rows* that changed with it; nothing if nothing is new."""
        if state == self._window.state and not rows:
            return
        window = self._window
        record = window.changed(state)
        self._commit(Transition(record.head, record, pages=rows))
        window.remember(record)

    def write_state(self) -> None:
        """Store what the memory was told of, if this handle has changed the context anyway.

        A handle that only feeds the memory never commits; feeding it twice is harmless.
        """
        window = self._window
        if self._wrote and window.state.dumps() != window.record.state:
            record = window.changed(window.state)
            self._commit(Transition(record.head, record))
            window.remember(record)

    def write_out(self) -> None:
        """Store what opening left unwritten: new settings, and what the window costs by them."""
        if self._unwritten is not None:
            window = self._window
            record = window.changed(window.state)
            self._commit(Transition(record.head, record))
            window.remember(record)

    def check_revision(self) -> None:
        """Raise WriteConflict if another writer has changed the context since it was read; what only reads may lag."""
        record = self._window.record
        if not self._read_only and (stored := self._storage.revision(record.id)) != record.revision:
            raise WriteConflict(f"context {record.id!r} is at revision {stored}, not {record.revision}: call refresh()")

    def check_writable(self) -> None:
        """Raise StorageReadOnly if the context is only read."""
        if self._read_only:
            raise StorageReadOnly(f"context {self._window.record.id!r:.60} was opened for reading only")

    def _commit(self, transition: Transition, contents: ContentsPage | None = None) -> OpRow | None:
        """Store *transition*, a compaction if it has new *contents*, and with it what opening left unwritten."""
        self.check_writable()
        window, unwritten = self._window, self._unwritten
        if unwritten is not None and contents is None:
            contents = window.contents
        if contents is not None:
            rows = dict(window.rows)
            rows.update((row.index, row) for row in transition.pages)
            active = [row for row in rows.values() if row.state is PageState.ACTIVE]
            was = unwritten and unwritten.was
            transition = transition._replace(compaction=snapshots.dumps(contents, transition.record, active, was=was))
        if unwritten is not None:
            transition = transition._replace(views=unwritten.views + transition.views)
        known = self._storage.commit(transition)
        if known is None:
            self._unwritten = None
            self._wrote = True
        return known


def _op_digest(draft: Draft) -> bytes:
    whole = hashlib.blake2b(digest_size=16)
    for codec, body in draft.bodies:
        whole.update(digest(codec, body))
    return whole.digest()
