"""The writer of one context: it commits each change as one transaction, and only then applies it to the window.

A change that can't be committed leaves the window as it was. Writers do not lock: each commit names the revision that
its handle has read. If another writer was first, the revision in the store is a later one, and the conflict is
detected: by the store at a commit, and by `Writer.check_revision` before a rendering. Both raise WriteConflict, and
nothing is stored.
"""

import logging
from collections.abc import Callable
from hashlib import blake2b

from ..chapters.contents import ContentsPage
from ..chapters.instructions import mark_of
from ..errors import Erased, InvalidSetting, OpConflict, StorageBusy, StorageFull, StorageReadOnly, WriteConflict, brief
from ..messages import Message
from ..rows import CallRow, ContextRecord, EntryRow, OpRow, PageRow, PageState
from ..segments.own import ShownSegments
from ..storage import Storage
from ..storage.codec import digest
from ..storage.protocol import Transition
from ..window import snapshot as snapshots
from ..window.compaction import instructions_of
from ..window.draft import Compaction, Draft
from ..window.state import DROPPED, WindowState
from ..window.window import Window
from .events import Event
from .loader import Unwritten, check_room
from .page_reader import read_back
from .reader import Reader
from .undo import plan_pop, plan_undo

_LOG = logging.getLogger(__name__)


class Writer:
    """Commits the changes of one context. Apart from forks and erasures, nothing else writes to its store."""

    def __init__(
        self,
        storage: Storage,
        window: Window,
        reader: Reader,
        notify: Callable[[Event], None],
        *,
        unwritten: Unwritten | None = None,
        read_only: bool = False,
    ) -> None:
        self._storage, self._window, self._reader = storage, window, reader
        self._notify, self._unwritten = notify, unwritten
        self.read_only = read_only

    def append(self, draft: Draft, state: WindowState, call: CallRow | None, *, op_id: str | None) -> OpRow | None:
        """Store *draft*, *state* and *call*, then add the draft to the window. O(messages of the draft).

        Return None; or the stored row of *op_id*, if an append of that name was stored before: then nothing has
        changed. It raises as `Context.append_turn`.
        """
        window = self._window
        record, rows, state = window.plan_append(draft, state)
        entries = tuple(
            [
                EntryRow(node.seq, *body, digest(*body), node.tokens, node.clip, node.quotes, node.at, node.spans)
                for node, _, _, body, _, _ in draft.messages
            ]
        )
        ops: tuple[OpRow, ...] = ()
        if op_id is not None:
            whole = blake2b(b"".join(row.digest for row in entries), digest_size=16).digest()
            ops = (OpRow(op_id, whole, window.record.head, tuple(each.place for each in draft.messages)),)
        calls = _placed_calls(call, record)
        known = self._commit(Transition(window.record.head, record, entries, rows, ops=ops, calls=calls))
        if known is not None:
            if known.digest == bytes(len(known.digest)):
                raise Erased(f"op_id {known.op_id!r}")
            if [known.digest] != [op.digest for op in ops]:
                raise OpConflict(known.op_id)
            latest, _ = self._storage.load(record.id) or (record, None)  # another handle may have stored it
            pages = {index: self._reader.page(index, latest) for index, _ in known.entries}
            for index, ordinal in known.entries:
                self._reader.holding(pages[index], ordinal, latest)
            return known
        window.append(draft, record, rows, state)
        for each in draft.messages:
            if each.node.clip or each.node.spans is not None:
                self._notify(Event("clip" if each.node.clip else "gate", record.id, each.place[:1], each.whole))
        return None

    def compact(self, made: Compaction, segments: ShownSegments | None) -> None:
        """Store the compaction *made*, unless the context is read-only, and apply it to the window, with *segments*.

        O(messages in the window).
        """
        window = self._window
        state = window.state._replace(relist=(), compactions=window.state.compactions + 1, lead=made.lead)
        if made.contents != window.contents or made.leaving or segments != state.segments:
            opened = window.active.open
            before = opened.base if opened is not None else window.record.head
            state = state._replace(rewritten=before, segments=segments)
        record = window.changed(state)
        views = [(seq, tokens, clip) for seq, _, tokens, clip in made.views]
        views += [(node.seq, node.tokens, node.clip) for page in made.restored for node in page.text.nodes]
        if not self.read_only:
            transition = Transition(record.head, record, pages=made.changed, views=tuple(views))
            self._commit(transition, made.contents, made)
        window.turn_over(made, record, state)

    def count_recall(self, index: int) -> None:
        """Count a recall of page *index*, once per turn. The next compaction lists the page on a line of its own.

        If the store can't be written at the moment, the recall is not counted, and no error is raised.
        """
        window = self._window
        row, turn = self._row(index), window.record.turn
        if self.read_only or (row.recall_count and row.last_recalled_turn == turn):
            return
        row = row._replace(recall_count=row.recall_count + 1, last_recalled_turn=turn)
        state = window.state
        shows = window.settings.every_entry or index not in window.contents.lines
        if shows and index not in state.relist:
            state = state._replace(relist=(*state.relist, index))
        try:
            self.store_state(state, row)
        except (StorageFull, StorageReadOnly, StorageBusy) as error:
            _LOG.debug("a recall of page %d is not counted: %s", index, type(error).__name__)
            return
        if index in window.listed:
            window.listed[index] = row

    def pin(self, index: int) -> None:
        """Pin page *index* (see `Context.pin`)."""
        window, state = self._window, self._window.state
        self._row(index)
        if index in state.pins:
            return
        pages = [window.active.page(each) or read_back(window, self._reader, each) for each in (*state.pins, index)]
        check_room(window, sum(page.tokens for page in pages))
        self.store_state(state._replace(pins=(*state.pins, index)))

    def unpin(self, index: int) -> None:
        """Remove the pin of page *index*: from now on, compactions archive it as any other page."""
        state = self._window.state
        self._row(index)
        self.store_state(state._replace(pins=tuple(each for each in state.pins if each != index)))

    def drop_instruction(self, id: str) -> None:  # noqa: A002
        """Drop the instruction *id* (see `Context.drop_instruction`)."""
        window = self._window
        found = next((each for each in instructions_of(window) if each.id == id), None)
        if found is None:
            raise InvalidSetting("id", f"no instruction has the id {brief(id)}: instructions() lists them")
        dropped = (*window.state.dropped, mark_of(found.page, found.text))[-DROPPED:]
        state, contents = window.state._replace(dropped=dropped), None
        if found.shown:
            contents = window.contents.without_instruction((found.page, found.text), state.nonce, window.weigh)
        record = window.changed(state)
        self._commit(Transition(record.head, record), contents)
        if contents is not None:
            window.show(contents, dict(window.listed))
        window.follow(record, state)

    def undo(self) -> list[Message]:
        """Take back the newest interaction and return its messages (see `plan_undo`)."""
        window = self._window
        transition, pages, contents, messages = plan_undo(self._storage, window, self._reader)
        self._commit(transition, contents if contents != window.contents else None)
        window.forget(pages, contents, transition.record)
        return messages

    def pop(self, count: int) -> list[Message]:
        """Take back the newest *count* messages (see `plan_pop`). The window must be read again afterwards."""
        transition, messages = plan_pop(self._storage, self._window, count)
        self._commit(transition)
        return messages

    def _row(self, index: int) -> PageRow:
        return self._window.row(index) or self._reader.page(index, self._window.record)

    def store_state(self, state: WindowState, *rows: PageRow, call: CallRow | None = None) -> None:
        """Store *state*, the pages *rows* and the *call* with it; write nothing if nothing changes."""
        if state != self._window.state or rows or call is not None:
            self._store(state, rows, call)

    def store_opened(self) -> None:
        """Store what opening changed: new settings, and the tokens of the window by a new counter."""
        if self._unwritten is not None:
            self._store(self._window.state)

    def _store(self, state: WindowState, rows: tuple[PageRow, ...] = (), call: CallRow | None = None) -> None:
        record = self._window.changed(state)
        self._commit(Transition(record.head, record, pages=rows, calls=_placed_calls(call, record)))
        self._window.follow(record, state)

    def check_revision(self) -> None:
        """Raise WriteConflict if another writer has changed the context since this handle read it. O(1).

        A read-only handle may show an earlier revision.
        """
        record = self._window.record
        if not self.read_only and (stored := self._storage.revision(record.id)) != record.revision:
            raise WriteConflict(f"context {record.id!r} is at revision {stored}, not {record.revision}: call refresh()")

    def check_writable(self) -> None:
        """Raise StorageReadOnly if the context was opened for reading only."""
        if self.read_only:
            raise StorageReadOnly(f"context {self._window.record.id!r:.60} was opened for reading only")

    def _commit(
        self, transition: Transition, contents: ContentsPage | None = None, made: Compaction | None = None
    ) -> OpRow | None:
        """Store *transition*, and with it what opening changed; with *contents*, it is a compaction, perhaps *made*."""
        self.check_writable()
        window, unwritten = self._window, self._unwritten
        if unwritten is not None and contents is None:
            contents = window.contents
        if contents is not None:
            rows = dict(window.rows)
            rows.update((row.index, row) for row in transition.pages)
            active = [row for row in rows.values() if row.state is PageState.ACTIVE]
            was = unwritten and unwritten.was
            marks, unloaded = (made.marks, made.unloaded) if made is not None else (None, {})
            views = (*window.views, *transition.views)
            shown = snapshots.compaction_of(
                contents, transition.record, active, views, was=was, marks=marks, unloaded=unloaded
            )
            transition = transition._replace(compactions=(shown,))
        if unwritten is not None:
            transition = transition._replace(views=unwritten.views + transition.views)
        known = self._storage.commit(transition)
        if known is None:
            self._unwritten = None
        return known


def _placed_calls(call: CallRow | None, record: ContextRecord) -> tuple[CallRow, ...]:
    """Return *call*, if there is one, with the revision and turn of *record*."""
    return () if call is None else (call._replace(revision=record.revision, turn=record.turn),)
