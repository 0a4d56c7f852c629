"""A machine that drives a whole context beside the plain model, and checks every invariant after every step.

    rules        append, render, recall, pin, archive, undo, reopen, …            chosen by hypothesis
    invariant    the chain, where every message is, what is shown, what it costs   against `chat_model`

The rules are here; what must hold is in `Checks`.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from memci import CachePricing
from memci.errors import (
    BudgetExceeded,
    Diverged,
    Erased,
    InvalidMessage,
    InvalidSetting,
    OpConflict,
    PageNotFound,
    Undone,
)
from memci.messages import Enveloped
from tests import strategies as chat
from tests.formats.test_every_provider import question, reply, results
from tests.formats.test_every_provider import turns as any_turns
from tests.machine.chat_checks import dumped
from tests.machine.chat_lives import Lives
from tests.machine.chat_model import Message, quotations, readable, text_of

PROMPTS = (None, "You are a travel agent.", "Answer in one word. 简短。")
PRICES = (
    CachePricing(minimum=0, lifetime=60),
    CachePricing(read=0.5, write=1.0, granularity=128, lifetime=3_600),
    CachePricing(read=0, minimum=4_096, lifetime=0),
)
"""of three providers: a short cache, a dear one, one that forgets at once and keeps no short prefix"""
SETTINGS: dict[str, tuple[Any, ...]] = {
    "window": (1_000, 1_500, 3_000),
    "archive_share": (None, None, None, 1.0),
    "contents_tokens": (None, None, 90, 150, 300),
    "model": (None, "gpt-4o", "gpt-4"),
    "preset": (None, None, "economy", "verbatim", "original"),
    "pricing": (None, None, *PRICES),
    "dates": ("never",),
    "active_pages": (None, None, 2),
    "gate": (None, None, 200, 400),
    "never_recalled": (None, None, 2),
    "stale": (None, None, 1),
    "notice": (None, None, False),
    "system": PROMPTS,
}
AWAY = ("archived", "folded", "unloaded")
CLOCKS = (
    None,
    "2031-01-01T00:00:00+00:00",
    timedelta(minutes=4),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=2),
    "1999-12-31T23:59:59+00:00",
    "2020-06-01T12:00:00+14:00",
)
"""steps within the life of a prompt cache, steps over it, and jumps ahead and back"""
OPS = ("op1", "op2", "op3")
few_tools = chat.schemas(most=3)
openings = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in SETTINGS.items()})
changes = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SETTINGS.items()})


def native_turns() -> st.SearchStrategy[dict[str, Any]]:
    """Turns of all providers, with texts only."""
    return any_turns().map(lambda turn: turn | {"image": False})


class ContextMachine(Lives):
    """Subclass it with `place`, which says where the context is kept."""

    now = datetime(2031, 1, 1, tzinfo=UTC)
    """what the clock said last"""

    @initialize(options=openings)
    def create(self, options: dict[str, Any]) -> None:
        """Make the context."""
        self.begin({name: value for name, value in options.items() if value is not None})

    @rule(message=chat.users(), opens_page=st.sampled_from((True, True, True, False)), at=st.sampled_from(CLOCKS))
    def append_user(self, message: Message, opens_page: bool, at: str | timedelta | None) -> None:
        """The user says something, or an observation comes in the user's role; by a clock that jumps."""
        if isinstance(at, timedelta):
            at = (self.now + at).isoformat()
        if at is not None:
            self.now = datetime.fromisoformat(at)
        self.append([message], opens_page=opens_page, at=at)

    @rule(contents=st.lists(chat.texts(), min_size=2, max_size=8))
    def observe(self, contents: list[str]) -> None:
        """Observations come in the user's role, one after the other, until they are too many for any window."""
        self.append([{"role": "user", "content": content} for content in contents], opens_page=False)

    @rule(text=chat.texts(giant=False))
    def append_text(self, text: str) -> None:
        """A plain str is the user's."""
        self.append([{"role": "user", "content": text}], given=[text])

    @rule(message=chat.replies(calls=False))
    def append_reply(self, message: Message) -> None:
        """The assistant answers."""
        self.append([message])

    @rule(data=st.data(), message=chat.calling(), rest=st.booleans())
    def append_calls(self, data: st.DataObject, message: Message, rest: bool) -> None:
        """The assistant calls tools, and some or all results come at once."""
        self.append([message, *data.draw(chat.results(message, complete=rest))])

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data(), whole=st.booleans())
    def append_results(self, data: st.DataObject, whole: bool) -> None:
        """Results come later, in any order, perhaps not all."""
        ids = data.draw(st.permutations(self.model.waiting))
        self.append(data.draw(chat.answered(ids if whole else ids[:1])))

    @precondition(lambda self: self.model.made)
    @rule(data=st.data())
    def append_late(self, data: st.DataObject) -> None:
        """A result comes that nobody waits for any more, or twice."""
        call_id = data.draw(st.sampled_from(sorted(self.model.made)))
        self.append(data.draw(chat.answered([call_id])))

    @rule(turns=st.lists(chat.turns(complete=False), min_size=1, max_size=4), op_id=st.none() | st.sampled_from(OPS))
    def append_turns(self, turns: list[list[Message]], op_id: str | None) -> None:
        """Several interactions come in one call."""
        self.append([message for turn in turns for message in turn], op_id=op_id)

    @rule(turns=st.lists(chat.turns(giant=False, rounds=1), min_size=1, max_size=3), synced=st.booleans())
    def append_small_turns(self, turns: list[list[Message]], synced: bool) -> None:
        """The conversation goes on for a while, turn by turn or as the whole list of a framework."""
        if synced:
            self.sync_list([message for turn in turns for message in turn])
        else:
            for turn in turns:
                self.append(turn)

    def sync_list(self, new: list[Message]) -> None:
        """A framework's list has grown: what is new is stored, once; a list that is shorter is another one."""
        gone = {seq for page in self.model.undone for seq in self.model.interactions[page]}
        gone |= set(self.model.popped.values())
        texts = [text for seq, text in enumerate(self.model.texts) if seq not in gone]
        if any(seq not in gone for seq in self.model.native):
            return  # the list would have its items
        self.closes.pop(self.model.turn, None)
        stored = self.context.sync(self.loaded([*texts, *map(dumped, new)]))
        self.model.append(new)
        assert [dumped(message) for message in stored] == [dumped(message) for message in new]
        assert self.context.sync(self.loaded([*texts, *map(dumped, new)])) == []
        self.raises(Diverged, lambda: self.context.sync(self.loaded(texts)))
        self.seen["syncs"] += 1
        self.sync()

    @rule(turns=st.lists(native_turns(), min_size=1, max_size=2))
    def append_native(self, turns: list[dict[str, Any]]) -> None:
        """Items come as providers have them, one after the other, each turn perhaps of another one."""
        for turn in turns:
            number = len(self.model.texts)
            said = reply(turn, number, turn["say"], turn["calls"])
            calls = list(zip(turn["calls"], turn["results"], strict=True))
            items = [question(turn), *said, *(results(turn, said, calls) if calls else [])]
            self.closes.pop(self.model.turn, None)
            receipt = self.context.append_turn(*items)
            stored = [*self.context.messages()][-len(receipt.entries) :]
            places = self.model.append([json.loads(dumped(message)) for message in stored])
            assert tuple((entry.page, entry.ordinal) for entry in receipt.entries) == places
            start = receipt.seq
            self.model.native |= {start + at for at, each in enumerate(stored) if isinstance(each, Enveloped)}
            self.seen[f"turns of {turn['form']}"] += 1
            self.sync()

    @rule(message=chat.users(giant=False), op_id=st.sampled_from(OPS))
    def append_op(self, message: Message, op_id: str) -> None:
        """An append has a name, which perhaps was used before with other messages."""
        self.append([message], op_id=op_id)

    @precondition(lambda self: self.model.ops)
    @rule(data=st.data(), other=st.booleans())
    def repeat_op(self, data: st.DataObject, other: bool) -> None:
        """The same append comes once more, or its name with something else."""
        op_id = data.draw(st.sampled_from(sorted(self.model.ops)))
        texts, places, seq = self.model.ops[op_id]
        messages = self.loaded(texts)
        before = self.everything()
        taken = set(self.model.popped.values()) & set(range(seq, seq + len(texts)))
        if self.model.erased & set(range(seq, seq + len(texts))):
            self.raises(Erased, lambda: self.context.append_turn(*messages, op_id=op_id))
        elif other:
            messages.append({"role": "user", "content": "something else"})
            self.raises(OpConflict, lambda: self.context.append_turn(*messages, op_id=op_id))
        elif any(page in self.model.undone for page, _ in places) or taken:
            self.raises(Undone, lambda: self.context.append_turn(*messages, op_id=op_id))
        else:
            receipt = self.context.append_turn(*messages, op_id=op_id)
            assert receipt.duplicate and receipt.seq == seq and receipt.op_id == op_id
            assert tuple((entry.page, entry.ordinal) for entry in receipt.entries) == places
            assert receipt.page == places[-1][0]
        self.unchanged(before, "a repeated op changes nothing")

    @rule(call_id=st.sampled_from(("never", "", "call_9", "a~2", "a~3")), first=chat.users())
    def unknown_result(self, call_id: str, first: Message) -> None:
        """A result that no call ever asked for is refused, with all that comes with it."""
        if call_id not in self.model.made:
            before = self.everything()
            result = {"role": "tool", "tool_call_id": call_id, "content": "x"}
            self.raises(InvalidMessage, lambda: self.context.append_turn(first, result))
            self.unchanged(before, "what is refused changes nothing")

    @rule(tools=few_tools)
    def change_tools(self, tools: list[Message]) -> None:
        """The agent sends other tools along from now on."""
        self.tools = tools

    @rule(percent=st.sampled_from((80, 100, 110, 130, 400)), message=chat.replies(giant=False))
    def report_usage(self, percent: int, message: Message) -> None:
        """The provider reports other tokens than were counted."""
        self.append([message], usage={"prompt_tokens": self.context.report().total * percent // 100})

    @rule(turn=chat.turns(rounds=1, complete=False), size=st.integers(1, 4), goes_on=st.booleans())
    def render_pending(self, turn: list[Message], size: int, goes_on: bool) -> None:
        """A request is made with messages that are appended only afterwards, or never."""
        self.pend(turn[:size], goes_on=goes_on)

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data(), goes_on=st.booleans())
    def render_pending_results(self, data: st.DataObject, goes_on: bool) -> None:
        """A request is made with the results of the calls that wait."""
        self.pend(data.draw(chat.answered(self.model.waiting)), goes_on=goes_on)

    @precondition(lambda self: self.model.next_page > 1)
    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        """The program reads a page, or one entry of an interaction."""
        index = data.draw(st.integers(1, self.model.next_page - 1))
        if self.gone(index):
            error = Erased if index in self.model.blank else Undone
            self.raises(error, lambda: self.context.recall_page(index))
            return
        seqs, page = self.seqs(index), self.where[index]
        assert [dumped(each) for each in self.context.recall_page(index)] == [self.model.texts[seq] for seq in seqs]
        used = page.where in AWAY and page.last_recalled_turn != self.model.turn
        self.sync()
        assert self.where[index].recall_count == page.recall_count + used, (
            "a recall counts once a turn, outside the window"
        )
        assert self.where[index].last_recalled_turn == (self.model.turn if used else page.last_recalled_turn)
        whole = self.model.interactions[index]
        if index in self.model.interactions:
            lost = {seq for each in self.model.blank for seq in self.seqs(each)}
            seq = data.draw(st.sampled_from([seq for seq in whole if seq not in lost]))
            (message,) = self.context.recall_page(index, 1 + seq - whole[0])
            assert dumped(message) == self.model.texts[seq]
        self.raises(PageNotFound, lambda: self.context.recall_page(index, 2 + whole[-1] - whole[0]))
        self.raises(PageNotFound, lambda: self.context.recall_page(self.model.next_page))

    @precondition(lambda self: self.model.next_page > 1)
    @rule(data=st.data(), count=st.integers(1, 3), before=chat.users(giant=False))
    def recall_by_tool(self, data: st.DataObject, count: int, before: Message) -> None:
        """The model recalls pages, perhaps such as hold recalls, and the answers are appended."""
        indexes = [data.draw(st.integers(1, self.model.next_page)) for _ in range(count)]
        calls = [self.recall_call(f"recall_{at}", {"index": index, "entry": None}) for at, index in enumerate(indexes)]
        reply = {"role": "assistant", "content": None, "tool_calls": calls}
        self.append([before, reply])
        shown = self.shown()
        answers = self.context.answers(reply)
        assert [answer["tool_call_id"] for answer in answers] == [call["id"] for call in calls]
        assert self.shown() == shown, "a recall changes nothing that is rendered"
        for answer in answers:
            if (text := text_of(answer)).startswith("<memci:recall"):
                self.seen["recalls by tool"] += 1
                self.seen["recalls with media"] += isinstance(answer["content"], list)
                if "memci:recall" in text[14:-14] and "u003cmemci:recall" in text:
                    self.seen["recalls of recalls"] += 1
        self.append(answers)

    @precondition(lambda self: self.model.next_page > 1)
    @rule(data=st.data())
    def read_by_tool(self, data: st.DataObject) -> None:
        """The model reads a whole page, part by part, as each answer says."""
        index = data.draw(st.integers(1, self.model.next_page - 1))
        if self.gone(index) or self.where[index].where in ("open", "active"):
            return
        read: dict[int, str] = {}
        following: dict[str, Any] | None = {"index": index, "entry": None, "offset": None}
        while following is not None:
            answer = text_of(self.context.answer(self.recall_call("r", following)))
            assert self.count(answer) <= self.options["window"] // 4, "an answer takes a quarter of the window at most"
            quoted, after = quotations(answer, self.nonce)
            assert quoted and after != following
            for ordinal, _, _, start, text in quoted:
                assert start == len(read.get(ordinal, "")), "parts follow each other"
                read[ordinal] = read.get(ordinal, "") + text
            following = after
        base = self.model.interactions[index][0]
        assert sorted(read) == [seq - base + 1 for seq in self.seqs(index)]
        for seq in self.seqs(index):
            expected, is_json = readable(self.model.texts[seq])
            text = read[seq - base + 1]
            same = (dumped(self.loaded([text])[0]) if is_json else text) == expected
            assert same, f"{text[:600]!r} is read where {expected[:600]!r} was said"
        self.seen["pages read by tool"] += 1

    @precondition(lambda self: self.model.next_page > 1)
    @rule(data=st.data(), now=st.booleans())
    def pin(self, data: st.DataObject, now: bool) -> None:
        """A page is to stay verbatim, or to come back."""
        away = [index for index, page in self.where.items() if page.where in AWAY]
        index = data.draw(st.sampled_from(away) if away else st.integers(1, self.model.next_page - 1))
        before = self.everything()
        try:
            self.context.pin(index)
        except (Undone, Erased, InvalidSetting, BudgetExceeded) as error:
            self.refused_pin(index, error)
            self.unchanged(before, "what is refused changes nothing")
            return
        assert not self.gone(index)
        self.pins.add(index)
        if now:
            self.archive(0)

    @precondition(lambda self: self.pins)
    @rule(data=st.data())
    def unpin(self, data: st.DataObject) -> None:
        """A page may go again."""
        index = data.draw(st.sampled_from(sorted(self.pins)))
        self.context.unpin(index)
        self.pins.discard(index)

    @rule(keep=st.sampled_from((None, None, 0, 1, 3)))
    def archive(self, keep: int | None) -> None:
        """A compaction starts now."""
        away = {index for index in self.pins if self.where[index].where in AWAY}
        try:
            archived = self.context.archive(keep=keep)
        except BudgetExceeded as error:
            self.irreducible(error, [])
            return
        self.sync()
        assert all(self.where[index].where in AWAY for index in archived)
        assert all(self.where[index].where in ("open", "active") for index in self.pins), "pins are in the window"
        self.seen["restores by pin"] += len(away)
        if keep is not None:
            closed = [i for i, page in self.where.items() if page.where == "active" and i not in self.pins]
            assert len(closed) <= keep

    @rule(pops=st.sampled_from((0, 1, 3, 6)))
    def take_back(self, pops: int) -> None:
        """The newest interaction is taken back, or the newest messages, one by one."""
        for _ in range(pops):
            self.pop()
        if not pops:
            self.undo()

    def undo(self) -> None:
        """The newest interaction is taken back."""
        left = [index for index in self.where if not self.gone(index)]
        newest = max((index for index in left), default=None)
        if newest is None:
            self.raises(PageNotFound, self.context.undo)
            return
        if any(index == newest for index in self.model.blank):
            return  # half of it is gone: what comes back is not said
        expected = self.model.undo(newest)
        self.closes = {turn: close for turn, close in self.closes.items() if turn < self.model.turns[newest]}
        assert [dumped(message) for message in self.context.undo()] == expected
        self.pins = {index for index in self.pins if not self.gone(index)}
        self.rendered = None
        self.seen["undos"] += 1

    def pop(self) -> None:
        """The newest message is taken back: its page is open then, or the one before, if it is in the window."""
        left = [index for index in self.where if not self.gone(index)]
        origins = sorted(set(left))
        if not origins:
            self.raises(PageNotFound, self.context.pop)
            return
        blank = set(self.model.blank)
        if blank.intersection(origins[-2:]):
            return  # half of it is gone: what is the newest message is not said
        may_be_open = [index for index in origins if self.newest_stands(index)]
        last = self.shown_seqs(origins[-1]) if origins[-1] in may_be_open else []
        if len(last) < min(2, len(self.seqs(origins[-1]))):  # all before it has left
            before = self.everything()
            self.raises(InvalidSetting, self.context.pop)
            self.unchanged(before, "what is refused changes nothing")
            return
        expected = self.model.pop(origins[-1], next(iter(set(may_be_open) & set(origins[-2:-1])), None))
        assert dumped(self.context.pop()) == expected
        since = self.model.turns[origins[-1]]  # an earlier turn than the newest, if all of that was taken back
        self.closes = {turn: close for turn, close in self.closes.items() if turn < since}
        self.pins = {index for index in self.pins if not self.gone(index)}
        self.rendered = None
        self.sync()
        self.seen["pops"] += 1
        self.seen["pages open again"] += self.model.open is not None and self.model.open != origins[-1]

    def newest_stands(self, origin: int) -> bool:
        """Tell whether the last message of interaction *origin* is shown."""
        stands = self.where[origin].where in ("open", "active")
        return stands and self.shown_seqs(origin)[-1:] == self.seqs(origin)[-1:]

    @rule(explicit=st.booleans())
    def reopen(self, explicit: bool) -> None:
        """The program starts again: the same bytes are rendered."""
        before, unwritten = self.everything(), self.unwritten
        self.open(self.options if explicit else unwritten)
        assert self.unwritten == unwritten, "settings that are stored already are no new ones"
        self.unchanged(before, "a reopened context is the one that was closed")

    @rule(options=changes)
    def reopen_otherwise(self, options: dict[str, Any]) -> None:
        """The program starts again with other settings."""
        options = {**self.unwritten, **{name: value for name, value in options.items() if value is not None}}
        try:
            self.open(options)
        except BudgetExceeded as error:
            assert sum(error.parts.values()) > error.budget  # noqa: PT017 -- it may raise or not: both are checked
            assert self.pins or self.tools, "without pins and tools, every one of these windows has room"
            self.open(self.unwritten)
            return
        self.seen["changes of prices"] += "pricing" in options
        self.seen["changes of the model"] += "model" in options
        self.settle(options)
        self.rendered = None
