"""The window of one context in memory: segments, rows, counters, and what a request costs.

    system | contents | active … open page | pending
    record: head 812, next page #97, turn 96         state: pins, ratios, calls that wait

It changes by taking in what was committed before: a `Draft` of messages, or a `Compaction`. Its rendering is a pure
function of its content.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from ..chapters.chapter import Page
from ..chapters.contents import ContentsPage
from ..chapters.messagelist import MessageNode
from ..chapters.system import notice
from ..chapters.toolgroups import late_result
from ..formats import openai_chat, readable_by, without_thoughts
from ..formats.envelope import INTERRUPTED, as_result
from ..formats.overflow import Overflow
from ..messages import Enveloped, Message, call_name, tool_calls
from ..model_catalog import undated_name
from ..rows import CallRow, ContextRecord, PageRow, PageState
from ..segments.budget import ClosedPage, Limits, Occupancy, Unit
from ..segments.cache_policy import Levels, levels
from ..segments.clipping import SMALLEST, clip_message
from ..segments.common import CommonSegment
from ..segments.gate import show_digest
from ..segments.own import OwnSegments, Segment
from ..segments.system import SystemSegment
from ..tokens import REQUEST_TOKENS, TokenCounter, message_tokens, tools_tokens
from .page_text import PageText
from .state import CLOCKS, RATIOS, WAITING, WindowState

if TYPE_CHECKING:
    from ..settings import Settings
    from .draft import Compaction, Draft

_FRAMING = 4  # tokens of a message without a text
WORDS = 400  # tokens of the user's words that a condensed page shows at most: longer ones are mostly pasted text
TOLD = 8  # the part of the window for what the program told the model on pages that have left, 1 / 8
WORDS_LEFT = 0.6  # share of the room of the user's words that the oldest leave once it is full
ANSWER_FRAMING = 16  # tokens that an answer costs as a message, besides its text
RATIO_CEILING = 1.3
"""the most by which reports raise the predicted tokens: above it, tools were not counted, or the report is wrong"""
REFUSED_CEILING = 3.0
"""the most by which a refusal raises them: with more, less than a third of the window would be left"""


class Window:
    """One context's messages in memory, and their cost in tokens."""

    def __init__(
        self,
        record: ContextRecord,
        *,
        state: WindowState,
        settings: Settings,
        system: str | None,
        tools: Sequence[Message],
        count: TokenCounter,
        segments: Sequence[Segment] | None = None,
    ) -> None:
        self.segments = OwnSegments(segments, self.weigh)
        self.record = record
        self.state = state
        self.settings = settings
        self.count = count
        self.tools = frozenset(call_name(tool) for tool in tools)  # names of the context's own tools
        self.own_tools = tools_tokens(tools, count, settings.model) if settings.notice else 0
        """tokens of those that are offered to the model"""
        self.gate = settings.gate if settings.notice else 0
        """tokens above which a new result is shown as a digest; 0: none is"""
        self.schemas = ""  # the tools that the last rendering was given, as text
        self.latest: float | None = None
        """time of the last append, in seconds since 1970; None: unknown"""
        self.absent = 0.0
        """seconds between the last call of its model and `latest`, after another model was in use; infinite: it was
        never called"""
        self.broken: str | None = None
        """why its requests no longer begin as before it was opened; None: they do"""
        self.interrupted = self.weigh(as_result("call", INTERRUPTED))
        text = notice(searchable=len(tools) > 1, language=settings.language) if settings.notice else None
        self.system = SystemSegment(system, notice=text, weigh=self.weigh)
        self.common = CommonSegment(nonce=state.nonce, interrupted=self.interrupted)
        self.active = self.common.active  # the active chapter
        self.rows: dict[int, PageRow] = {}
        """the rows of the active pages, by index"""
        self._texts: dict[int, PageText] = {}
        self.front: list[Message] = []
        """the rendering in front of what grows: the system prompt, the first page, the Contents Page"""
        self._recompute()

    def weigh(self, message: Message) -> int:
        """Return what *message* costs in a request, in tokens.

        A message that is not sent as it is may become two: a result with images is sent as its text, and then the
        images.
        """
        tokens = message_tokens(message, self.count, self.settings.model)
        if openai_chat.is_sent_as_it_is(message):
            return tokens
        sent = 0
        if message["role"] == "tool" and isinstance(message["content"], list):
            sent = sum(message_tokens(each, self.count, self.settings.model) for each in openai_chat.write([message]))
        return max(tokens + _FRAMING, sent)

    def _recompute(self) -> None:
        """Recompute the values that change with the state or a compaction, but not with an append."""
        settings = self.settings
        self.segments.show(self.state.segments)
        self.fixed = self.system.tokens + self.segments.tokens + self.own_tools + self.state.tools + REQUEST_TOKENS
        """tokens that no compaction changes: system, tools, framing"""
        budget = int((settings.window - settings.reply) / self.ratio)
        self.levels: Levels = levels(
            settings.preset,
            settings.archive_share,
            settings.pricing,
            self.state.cache,
            budget=budget,
            fixed=self.fixed,
            ceiling=settings.contents_tokens,
            contents=self.contents.tokens,
            chosen=settings.contents_chosen,
        )
        """the sizes at which to compact, and down to which, by the price of the prompt cache"""
        self.limits = Limits(
            budget=budget,
            contents=self.levels.contents,
            keep=0.5 if settings.archive_share is None else 1 - settings.archive_share,
            active_pages=settings.active_pages,
            fewest=settings.fewest,
            least=self.levels.least,
            words=self.levels.words,
            words_left=int(WORDS_LEFT * self.levels.words),
        )
        """limits of the window now"""
        self.clip_limit = max(SMALLEST, budget - self.fixed - settings.contents_tokens)
        """tokens above which a message is clipped when it is appended: the room of all active pages"""
        whole = not self.state.compactions
        told = settings.dates == "borders" or (settings.dates == "compacted" and not whole)
        self.active.allowance = settings.window // 200
        self.active.tell(self.weigh if told else None, whole=whole)
        self.active.set_lead(self.state.lead)
        front = self.system.view + self.segments.view + self.active.lead_view + self.common.archive.view
        if front != self.front:  # the meter counts a rendering with the same list by what is new in it
            self.front = front
        self.front_tokens = self.fixed + self.contents.tokens  # the cost of that, with the tools and the framing

    @property
    def contents(self) -> ContentsPage:
        """The Contents Page."""
        return self.common.archive.contents

    @property
    def listed(self) -> dict[int, PageRow]:
        """The rows of the pages that the Contents Page lists, by index."""
        return self.common.archive.rows

    @property
    def ratio(self) -> float:
        """The factor by which a request is taken to cost more than is counted here, from 1.0 to `RATIO_CEILING`.

        After a refusal it may be as high as that proved.
        """
        return min(max(RATIO_CEILING, self.state.refused), max(1.0, self.reported_ratio))

    @property
    def reported_ratio(self) -> float:
        """Reported tokens to predicted ones: the median of the last requests, 1.0 if there were none."""
        return sorted(self.state.ratios)[len(self.state.ratios) // 2] if self.state.ratios else 1.0

    def calibrate(self, call: CallRow) -> tuple[float, ...]:
        """Return the ratios with that of *call*, the last request: reported tokens to predicted ones."""
        if not call.predicted:
            return self.state.ratios
        return (*self.state.ratios, round(call.input / call.predicted, 4))[-RATIOS:]

    def learn(self, said: Overflow, predicted: int) -> float:
        """Return the ratio that follows from what a provider *said* of a request of *predicted* tokens.

        A limit below the window counts as a factor, too. Without numbers, the request was larger than the window.
        """
        room = self.settings.window - self.settings.reply
        asked = said.asked or max(said.most or 0, self.settings.window, 1.1 * self.ratio * predicted)
        smaller = room / min(room, max(1, said.room(self.settings.reply))) if said.most else 1.0
        return 1.02 * asked / max(1, predicted) * smaller

    @property
    def tokens(self) -> int:
        """Tokens of the whole request now, with the tools of the last rendering."""
        return self.front_tokens + self.active.messages.tokens

    @property
    def answer_room(self) -> int:
        """Tokens that an answer to a recall may cost without being clipped; old units leave the open page for it."""
        most = min(self.settings.window // 4, self.clip_limit // 4, self._free)
        return max(SMALLEST, most - ANSWER_FRAMING)

    @property
    def media_room(self) -> int:
        """Tokens that media in answers may cost now, besides their text and what stays of the open page."""
        return max(0, self._free - self.answer_room - ANSWER_FRAMING)

    @property
    def _free(self) -> int:
        """Tokens beside what no compaction can take out of the window now. O(messages in the window)."""
        now = self.occupancy()
        leaves = 0 if now.pinned else sum(unit.tokens for unit in now.units[now.task :][: now.movable])
        opened = self.active.open.tokens if self.active.open is not None else 0
        return self.limits.budget - self.fixed - self.settings.contents_tokens - opened + leaves

    def with_valid_thoughts(self, view: Sequence[Message]) -> list[Message]:
        """Return *view* without the thoughts that the provider may refuse. O(messages in the window).

        These are encrypted ones that another model made, and signed ones of closed pages in front of which a compaction
        changed something.
        """
        stale = {
            id(node.view)
            for page in self.active
            if page is not self.active.open
            for node in page
            if node.seq < self.state.rewritten
        }
        view = [without_thoughts(message) if id(message) in stale else message for message in view]
        if (model := self.settings.model) is None:
            return view
        name = undated_name(model)
        return [readable_by(message, name) for message in view]

    @property
    def views(self) -> tuple[tuple[int, int, int], ...]:
        """(seq, tokens, clip) of the messages in the window, as a transition stores them."""
        return tuple((node.seq, self.active.own_tokens(node), node.clip) for node in self.active.messages)

    def row(self, index: object) -> PageRow | None:
        """Return the row of a page that is in the window or listed, None if it is neither."""
        if type(index) is not int:
            return None
        return self.rows.get(index) or self.listed.get(index)

    def text_of(self, page: Page) -> PageText:
        """Return the text of *page*, which is kept as long as its messages stay the same. O(its messages)."""
        nodes, known = tuple(iter(page)), self._texts.get(page.index)  # the length of a page is a walk of its own
        if known is None or known.nodes != nodes:
            known = self._texts[page.index] = PageText(nodes)
        return known

    def find_calls(self, ids: Collection[str]) -> set[str]:
        """Return those of *ids* that a call in the window has, or a recently interrupted one. O(window + *ids*)."""
        calls = (call["id"] for node in self.active.messages for call in tool_calls(node.message))
        return set(ids).intersection([*self.state.waiting, *calls])

    def preview(self, draft: Draft) -> tuple[list[Message], list[str], tuple[Unit, ...]]:
        """Return what *draft* would add: the messages shown, the ids of calls that wait, and the cost in units.

        The open tool group is shown again with it, since a draft may complete it.
        """
        chapter = self.active.aside()
        chapter.open_page(0, 0)
        waiting = list(self.active.waiting)
        for node in waiting:
            chapter.append(MessageNode(node.message, node.tokens, seq=node.seq, view=self.own_view(node)))
        before = len(waiting)
        weight = chapter.messages.tokens
        for position, (node, opens, *_) in enumerate(draft.messages, 1):
            if opens:
                chapter.open_page(position, node.seq)
            chapter.append(MessageNode(node.message, node.tokens, seq=node.seq, view=node.view, at=node.at))
        added = list(chapter.messages)[before:]
        extra = chapter.messages.tokens - weight - sum(node.tokens - node.dated for node in added)
        units = [_unit([node]) for node in added]
        return chapter.view + chapter.tail(), chapter.missing, (*units, Unit(extra)) if extra else tuple(units)

    def own_view(self, node: MessageNode) -> Message:
        """Return the view of *node* of the open page by itself: perhaps clipped, but not framed as late."""
        opened = self.active.open
        if node.view["role"] == node.message["role"] or opened is None:
            return node.view
        return self.shown(node.message, node.clip, opened.index, opened.ordinal(node), node.spans)

    def shown(
        self, message: Message, clip: int, page: int, ordinal: int, spans: tuple[int, ...] | None = None
    ) -> Message:
        """Return the view of *message* in a rendering: itself, the digest of *spans*, or clipped to *clip* tokens."""
        if not message.get("tool_calls", True):  # providers refuse an empty list
            message = {key: value for key, value in message.items() if key != "tool_calls"}
        if spans is not None:
            message = show_digest(message, spans, page, ordinal)
        if not clip:
            return message
        if isinstance(message, Enveloped):  # its reasoning is sent whole or not at all
            message = {key: value for key, value in message.items() if key != "reasoning"}
        return clip_message(message, clip, page=page, ordinal=ordinal, count=self.count, weigh=self.weigh)

    def clip(
        self, message: Message, limit: int, page: int, ordinal: int, *, late: bool, spans: tuple[int, ...] | None = None
    ) -> tuple[Message, int, int]:
        """Return a view of *message* for *limit* tokens, the cost of it as shown, and the clip that produces it.

        The frame of a *late* result counts too, and escapes its text: the text gets the rest of the limit.
        """
        clip = limit
        while True:
            view = self.shown(message, clip, page, ordinal, spans)
            tokens = self.weigh(late_result(view, self.state.nonce) if late else view)
            if tokens <= limit or not late or clip == 1:
                return view, tokens, clip
            clip = max(1, clip * limit // tokens)

    def occupancy(self, pending: tuple[Unit, ...] = (), *, settles: bool = False) -> Occupancy:
        """Return the content of the window as a plan needs it. O(messages in the window).

        The model has not seen yet what follows the last message of the assistant: that and the message itself may not
        leave the open page, unless the pending messages end the open group (*settles*). A group whose results may still
        come stays, and so does the only message of a page.
        """
        pieces = list(self.active.units(self.active.open))
        task = self.active.task is not None
        answers = [at for at, piece in enumerate(pieces) if piece[0].message["role"] == "assistant"]
        last = len(pieces) if settles and not self.active.missing else (answers[-1] if answers else task)
        first_page = None if self.settings.every_turn else self.state.task
        # When pages leave, other messages tell the time, but not more of them than would have before.
        dates = sum([node.dated for node in self.active.messages])
        if self.active.whole and self.settings.dates != "never":
            dates = self.active.borders(self.weigh)
        return Occupancy(
            system=self.system.tokens,
            tools=self.own_tools + self.state.tools,
            contents=self.contents.tokens,
            closed=tuple(self._closed(page, page.index == first_page) for page in self.active.closed),
            units=tuple(map(_unit, pieces)),
            task=task,
            movable=max(0, min(last, len(pieces) - (not task)) - task),
            pinned=self.record.open_page in self.state.pins,
            pending=pending,
            framing=REQUEST_TOKENS + dates,
            segments=self.segments.tokens,
            told=min(self.contents.told_tokens(self.active.messages), self.settings.window // TOLD),
        )

    def _closed(self, page: Page, task: bool) -> ClosedPage:
        """Return what a plan needs of a closed *page*; *task*: the context's first one. O(messages)."""
        tokens, words, alone = sum([node.tokens - node.dated for node in page]), 0, False
        if self.limits.words and page.asked is not None:
            words, alone = page.words if task else min(page.words, WORDS), page.asked is page.tail
        return ClosedPage(page.index, tokens, page.index in self.state.pins, task, words, alone)

    def exceeds(self, level: int, *, by: float) -> bool:
        """Return whether the active pages exceed *level*, or the user's words on condensed ones theirs. O(pages)."""
        said, kept = self.words, self.limits.words_left
        return self.active.messages.tokens - said > by * level or said > by * kept > 0

    @property
    def stable(self) -> tuple[int, int]:
        """How many messages behind the system prompt a next compaction may leave, and the next turn. O(window)."""
        contents = len(self.front) - len(self.system.view)
        return contents + self.active.condensed_view, contents + self.active.closed_view

    @property
    def part_left(self) -> tuple[int, int] | None:
        """The open page, and the seq before which messages of it have left the window; None if none has."""
        row = self.rows.get(self.record.open_page or 0)
        return (row.index, row.away[-1]) if row is not None and row.away is not None else None

    @property
    def words(self) -> int:
        """Tokens of the user's words that stay when others leave: of the open page, and of condensed ones."""
        opened = self.active.open
        return (self.active.alone if self.limits.words else 0) + (opened.words if opened is not None else 0)

    def plan_append(self, draft: Draft, state: WindowState) -> tuple[ContextRecord, tuple[PageRow, ...], WindowState]:
        """Return the record, the changed pages and the state after *draft* is appended. O(messages of the draft)."""
        record, rows = self.record, {}
        head, turn, next_page = record.head, record.turn, record.next_page
        open_row = self.rows[record.open_page] if record.open_page is not None else None
        for node, opens, (page, _), _, _, _ in draft.messages:
            if opens:
                if open_row is not None:
                    rows[open_row.index] = PageRow._make((*open_row[:2], node.seq, *open_row[3:]))
                    turn += 1
                    if open_row.index < next_page - 1:  # it closes after later pages, which the memory may have already
                        state = state.posting([open_row.index])
                open_row = rows[page] = PageRow(page, node.seq, None, turn)
                if state.task is None:
                    state = state._replace(task=page)
                next_page = page + 1
            head = node.seq + 1
        if draft.interrupted:
            state = state._replace(waiting=(*state.waiting, *draft.interrupted)[-WAITING:])
        text = record.state if state is self.state else state.dumps()
        opened = open_row.index if open_row is not None else None
        # by position, since `_replace` takes twice the time
        record = ContextRecord(*record[:3], text, head, next_page, turn, opened, record.revision + 1, *record[9:])
        return record, tuple(rows.values()), state

    def changed(self, state: WindowState) -> ContextRecord:
        """Return the record of the next transition, with *state*."""
        return self.record._replace(state=state.dumps(), revision=self.record.revision + 1)

    def append(self, draft: Draft, record: ContextRecord, rows: tuple[PageRow, ...], state: WindowState) -> None:
        """Take in *draft*, which was committed with the *record* of *state*, and *rows*. O(messages of the draft)."""
        for node, opens, (page, _), _, _, _ in draft.messages:
            if opens:
                self.active.open_page(page, node.seq)
            self.active.append(node)
        for row in rows:
            self.rows[row.index] = row
        self.follow(record, state)

    def follow(self, record: ContextRecord, state: WindowState | None = None) -> None:
        """Take in *record*, which was committed as the context's record; *state*: the state in it, if it is known."""
        if record.state != self.record.state:
            self.state = state or WindowState.loads(record.state)
            self._recompute()
        self.record = record  # last: if a call is interrupted before this line, its next write conflicts

    def note(self, **changes: Any) -> None:
        """Change fields of the state. They are stored with the next change."""
        state = self.state._replace(**changes)
        self.follow(self.record._replace(state=state.dumps()), state)

    def change_model(self, before: str) -> None:
        """Note that the model *before* was called last, and how long its own model was not. O(models)."""
        clocks, now = {name: (at, head) for name, at, head in self.state.clocks if name != before}, self.latest
        called, head = clocks.get(self.settings.model or "", (now, -1))
        if head < 0:
            self.absent = inf
        elif called is not None and now is not None and head >= self.state.cache.gap:  # after a gap it is known
            self.absent = max(0.0, now - called)
        clocks[before] = now, self.record.head
        self.note(clocks=tuple((name, *clock) for name, clock in clocks.items())[-CLOCKS:])

    def show(self, contents: ContentsPage, listed: dict[int, PageRow] | Callable[[], dict[int, PageRow]]) -> None:
        """Show *contents*, which lists the pages *listed* (see `ArchiveChapter.show`). O(blocks)."""
        self.common.archive.show(contents, listed)
        self._recompute()

    def turn_over(self, compaction: Compaction, record: ContextRecord, state: WindowState) -> None:
        """Take in *compaction*, which was committed with *record*, and *state* in it. O(messages in the window)."""
        active = self.active
        active.leave(compaction.leaving)
        active.remove(compaction.archived)
        for page in compaction.restored:
            active.restore(page.row.index, page.base, page.text.nodes)
        if compaction.views:
            active.show({seq: (message, tokens) for seq, message, tokens, _ in compaction.views})
            clips = {seq: clip for seq, _, _, clip in compaction.views}
            for node in active.messages:
                node.clip = clips.get(node.seq, node.clip)
        for row in compaction.changed:
            if row.state is PageState.ACTIVE:
                self.rows[row.index] = row
            else:
                self.rows.pop(row.index, None)
        self._texts = {index: text for index, text in self._texts.items() if index in active}
        self.common.archive.show(compaction.contents, compaction.listed)
        self.follow(record, state)  # recomputes all values, since the state has changed

    def forget(self, gone: frozenset[int], contents: ContentsPage, record: ContextRecord) -> None:
        """Take out the pages *gone*, which were undone; *contents* lists the rest. O(messages in the window)."""
        self.active.close()
        self.active.remove([index for index in gone if index in self.active])
        for index in gone:
            self.rows.pop(index, None)
        self.show(contents, {index: row for index, row in self.listed.items() if index not in gone})
        self.follow(record)


def _unit(nodes: Sequence[MessageNode]) -> Unit:
    sizes: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for node in nodes:
        sizes[node.message["role"] == "tool"].append((node.seq, node.tokens - node.dated))
    tokens = sum([node.tokens - node.dated for node in nodes])
    return Unit(tokens, results=tuple(sizes[True]), others=tuple(sizes[False]))
