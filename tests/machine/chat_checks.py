"""What must hold of a context after every step, whatever was done to it: the invariants, one method each.

chain, tiling      the window's own `_check`          budget       another counter's sum
conservation       every message in one place         reachability the lines of the Contents Page, read anew
exactness          JSON with its keys in order        prefix       bytes of the rendering before
pairing            three chat grammars                order        dense, as appended
"""

import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis.stateful import invariant

from memci import Context
from memci.errors import BudgetExceeded, Erased, OpConflict, OpenToolGroup
from memci.formats import FORMATS, openai_chat
from memci.formats.envelope import is_empty_answer
from memci.history.page_reader import page_text
from memci.history.reader import PageInfo
from memci.memory import NullMemory
from memci.testing.formats import problems as strict_problems
from tests.door import open_context
from tests.invariants import check
from tests.machine.chat_costs import Costs
from tests.machine.chat_grammars import broken_arguments, problems
from tests.machine.chat_model import Message, Model, Shown, aligned, cost, differs, listed, shown

OWN = re.compile("not empty")
"""what Chat Completions would refuse of a message that is sent as its caller wrote it"""
APART = ("window", "model", "notice", "system")
"""settings that no preset replaces"""


class Close(NamedTuple):
    """What a turn showed last."""

    view: list[str]
    tools: list[Message]
    options: dict[str, Any]
    head: int


def dumped(message: Message) -> str:
    """Return *message* as JSON, its keys in their order."""
    return json.dumps(message)


class Checks(Costs):
    """The state of a run, and what must hold of it."""

    nonce = "00000000"
    seen: Counter[str]
    context: Context

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.options: dict[str, Any] = {}
        self.tools: list[Message] = []
        self.pins: set[int] = set()
        self.where: dict[int, PageInfo] = {}
        self.id = "x"
        self.closes: dict[int, Close] = {}
        """the last rendering of each turn"""
        self.since = 0
        """the messages from which on the past is known"""
        self.left: list[Context] = []
        """handles of programs that crashed"""
        self.others: dict[str, tuple[Any, ...]] = {}
        """other contexts of the store: the tools that were sent along, and all that a program saw of them"""
        self.rendered: tuple[int, list[str]] | None = None
        """the compactions so far and the last strict rendering, as JSON"""
        self.steps = 0

    # -- the driven context

    def place(self) -> Any:
        """Return the store, or the path, that the context is opened with."""
        raise NotImplementedError

    def begin(self, options: dict[str, Any]) -> None:
        """Make the context."""
        self.options = dict(options)
        self.context = open_context(
            self.place(), id=self.id, nonce=self.nonce, on_event=self.noted, memory=NullMemory(), **options
        )

    def open(self, options: dict[str, Any]) -> None:
        """Open the context again."""
        self.context.close()
        self.context = self.handle(**options)

    def handle(self, **options: Any) -> Context:
        """Return one more handle of the context."""
        return open_context(self.place(), id=self.id, on_event=self.noted, memory=NullMemory(), **options)

    @property
    def unwritten(self) -> dict[str, Any]:
        """What another handle has to be told, because settings of ours wait for the first change."""
        return self.options if self.context._parts.writer._unwritten is not None else {}

    def settle(self, options: dict[str, Any]) -> None:
        """Note what the settings are now: a preset takes the place of what was set one by one before it."""
        kept = {name: value for name, value in self.options.items() if "preset" not in options or name in APART}
        self.options = {**kept, **options}

    def teardown(self) -> None:
        """Read every page once more, as a program does."""
        if sys.exc_info()[0] is None:  # else something failed, or hypothesis left off within a step
            for index in range(1, self.model.next_page):
                if not self.gone(index):
                    texts = [self.model.texts[seq] for seq in self.seqs(index)]
                    assert [dumped(message) for message in self.context.recall_page(index)] == texts
            assert self.context.verify() == []
            self.check_others()
        for context in [*self.left, *([self.context] if hasattr(self, "context") else [])]:
            context.close()

    def noted(self, event: Any) -> None:
        """Count what happened."""
        self.seen[event.kind] += 1

    def append(
        self,
        messages: list[Message],
        *,
        given: list[Any] | None = None,
        op_id: str | None = None,
        opens_page: bool = True,
        usage: object = None,
        at: str | None = None,
    ) -> None:
        """Append to both, and compare what they say of it."""
        sent = given or self.loaded([dumped(message) for message in messages])
        known = self.model.ops.get(op_id) if op_id else None
        if known is not None:
            if self.model.erased & set(range(known[2], known[2] + len(known[0]))):
                self.raises(Erased, lambda: self.context.append_turn(*sent, op_id=op_id))
            elif known[0] != [dumped(message) for message in messages]:
                self.raises(OpConflict, lambda: self.context.append_turn(*sent, op_id=op_id))
            return
        if self.model.open is None or not (opens_page and messages[0]["role"] == "user"):
            self.closes.pop(self.model.turn, None)
        seq = len(self.model.texts)
        gaps, cuts = self.context._parts.window.state.cache.gaps, self.seen["compaction"]
        receipt = self.context.append_turn(*sent, op_id=op_id, opens_page=opens_page, usage=usage, at=at)
        gone = self.context._parts.window.state.cache.gaps - gaps
        assert gone in {0, 1}, "a gap is counted once"
        self.seen["cold caches"] += gone
        self.seen["cuts in a cold cache"] += gone and self.seen["compaction"] > cuts
        late = self.model.late
        places = self.model.append(messages, opens_page=opens_page)
        self.seen["late results"] += self.model.late - late
        assert tuple((entry.page, entry.ordinal) for entry in receipt.entries) == places
        assert [entry.role for entry in receipt.entries] == [message["role"] for message in messages]
        assert (receipt.page, receipt.seq, receipt.duplicate) == (places[-1][0], seq, False)
        if op_id:
            self.model.ops[op_id] = ([dumped(message) for message in messages], places, seq)
        self.sync()

    def pend(self, pending: list[Message], *, goes_on: bool) -> None:
        """Render with *pending*; if it *goes_on*, append it then, with a reply."""
        trial = copy.deepcopy(self.model)
        trial.append(pending)
        self.closes.pop(self.model.turn, None)
        try:
            view = self.context.render(*self.loaded([dumped(each) for each in pending]), tools=self.tools)
        except OpenToolGroup as error:
            assert list(error.missing) == trial.waiting  # noqa: PT017 -- it may raise or not: both are checked
            return
        except BudgetExceeded as error:
            self.sync()
            self.irreducible(error, pending)
            return
        assert not trial.waiting
        self.sync()
        self.check_view(view, pending)
        again = self.context.render(*self.loaded([dumped(each) for each in pending]), tools=self.tools)
        now, then = [dumped(each) for each in again], [dumped(each) for each in view]
        changed = [(a[:500], b[:500]) for a, b in zip(then, now, strict=False) if a != b]
        assert now == then, f"rendering twice is the same: {changed}, {len(then)}, {len(now)}"
        self.seen["renderings with pending"] += 1
        if goes_on:
            self.rendered = (self.context.report().compactions, [dumped(each) for each in view])
            self.append([*pending, {"role": "assistant", "content": "Done."}])

    # -- what must hold

    @invariant()
    def everything_holds(self) -> None:
        """All invariants hold, after every step."""
        self.steps += 1
        check(self.context._parts.window)
        self.sync()
        self.check_rendering()
        sample = range(1, self.model.next_page) if self.steps % 8 == 0 else (self.model.next_page - 1, self.steps % 7)
        for index in sample:
            if 0 < index < self.model.next_page and not self.gone(index):
                self.check_exact(index)
        if self.steps % 8 == 0:
            assert [dumped(message) for message in self.context.messages()] == self.standing(len(self.model.texts))
            assert self.context.verify() == []
            self.check_others()
            report = self.context.report()
            assert sum(report.pages.values()) == self.model.next_page - 1
            assert min(report.pages.values()) >= 0
            assert (report.messages, report.turn) == (len(self.model.texts), self.model.turn)

    def sync(self) -> None:
        """Every message is in exactly one place."""
        before, self.where = self.where, {page.index: page for page in self.context.pages()}
        assert list(self.where) == list(range(1, len(self.where) + 1)), "indexes are given out without gaps"
        entries: Counter[int] = Counter()
        for index, page in self.where.items():
            if index in self.model.popped:
                assert page.where == "undone" and page.entries == 1, page
                assert self.model.interactions[page.continues], page
                continue
            assert index in self.model.interactions, f"page #{index} came from nowhere"
            assert page.continues is None
            entries[index] += page.entries
            assert (page.where == "erased") == (index in self.model.blank), page
            assert (page.where in ("undone", "erased")) == self.gone(index), page
            assert (page.where == "open") == (index == self.model.open), page
            was = before.get(index)
            if page.where == "unloaded" and was is not None and was.where != "unloaded":
                self.seen["unloads"] += 1
            if index in self.pins and was is not None and was.where in ("open", "active"):
                assert page.where in ("open", "active"), "a pinned page stays"
        assert entries == {index: len(seqs) for index, seqs in self.model.interactions.items()}

    def seqs(self, index: int) -> list[int]:
        """Return the seqs of page *index*."""
        return [self.model.popped[index]] if index in self.model.popped else self.model.interactions[index]

    def shown_seqs(self, index: int) -> list[int]:
        """Return the seqs of page *index*, which is in the window, that are shown: without one run that has left it.

        The run is behind the user's message.
        """
        whole = self.seqs(index)
        nodes = {node.seq for node in self.context._parts.window.active.page(index) or ()}
        left = [seq for seq in whole if seq not in nodes]
        if left:
            at = whole.index(left[0])
            assert whole[at : at + len(left)] == left, f"one run has left: {left} of {whole}, #{index}"
            assert at == int(self.model.roles[whole[0]] == "user"), "what left is the oldest behind the user's message"
            assert nodes, "something stays"
            self.seen["parts that left"] += 1
            self.seen["condensed pages"] += left[-1] == whole[-1]
        return [seq for seq in whole if seq in nodes]

    def gone(self, index: int) -> bool:
        """Tell whether page *index* was taken back or erased."""
        return index in self.model.blank or index in self.model.popped or index in self.model.undone

    def standing(self, head: int) -> list[str]:
        """Return all messages before *head* that were neither taken back nor erased with their page, in order."""
        gone = {seq for index in self.where if self.gone(index) for seq in self.seqs(index)}
        return [text for seq, text in enumerate(self.model.texts[:head]) if seq not in gone]

    def check_exact(self, index: int) -> None:
        """A page holds what was appended, keys in their order. Unlike `recall_page`, this counts as no use."""
        page = page_text(self.context._parts.window, self.context._parts.reader, index, None)
        assert [dumped(message) for _, message in page.entries] == [self.model.texts[seq] for seq in self.seqs(index)]
        base = self.model.interactions[index][0]
        assert [entry.ordinal for entry, _ in page.entries] == [seq - base + 1 for seq in self.seqs(index)]

    def check_rendering(self) -> None:
        """What is rendered is right, or the right error says why it can't be."""
        self.closes.pop(self.model.turn, None)
        try:
            view = self.context.render(tools=self.tools)
        except OpenToolGroup as error:
            assert list(error.missing) == self.model.waiting and self.model.waiting  # noqa: PT017 -- it may raise or not: both are checked
            self.seen["open groups"] += 1
            try:
                view = self.context.render(tools=self.tools, strict=False)
            except BudgetExceeded as error:
                self.irreducible(error, [])
                return
            self.sync()
            self.check_view(view, [], strict=False)
            return
        except BudgetExceeded as error:
            self.irreducible(error, [])
            return
        self.sync()
        self.check_view(view, [])
        window = self.context._parts.window
        counted = 3 + sum(window.weigh(message) for message in view)
        kept = window.tokens - window.own_tools - window.state.tools
        assert kept >= counted, f"{kept} tokens are kept for what a count says is {counted}"
        if view[-1:] and view[-1]["role"] != "system":
            self.check_request()
        now = [dumped(message) for message in view]
        compactions = self.context.report().compactions
        if self.rendered is not None and self.rendered[0] == compactions:
            old = self.rendered[1]
            changed = [(a[:500], b[:500]) for a, b in zip(old, now, strict=False) if a != b]
            assert now[: len(old)] == old, (
                f"without a compaction, a rendering only grows: {changed}, {len(old)}, {len(now)}"
            )
        said = any(not is_empty_answer(message) for message in view if message["role"] != "system")
        self.rendered = (compactions, now) if said else None  # what says nothing is sent only where nothing else is
        if not self.unwritten:
            self.closes[self.model.turn] = Close(now, self.tools, self.options, len(self.model.texts))
        assert [dumped(message) for message in self.context.render(tools=self.tools)] == now, (
            "rendering twice is the same"
        )

    def check_others(self) -> None:
        """What was done to this context changed no other one."""
        for name, (tools, seen) in self.others.items():
            with Context.view(self.place(), id=name, memory=NullMemory()) as other:
                self.unchanged(seen, f"another context ({name}) is nothing to this one", other, tools)
                assert other.verify() == []
                check(other._parts.window)

    def check_view(self, view: list[Message], pending: list[Message], *, strict: bool = True) -> None:
        """A rendering shows the pages of the window, lists the others, and fits."""
        active = [i for i, page in self.where.items() if page.where in ("active", "open") and self.seqs(i)]
        active.sort(key=lambda index: (index == self.model.open, self.seqs(index)[0]))
        runs = [[self.sent(seq) for seq in self.shown_seqs(index)] for index in active]
        opened = self.model.open in active
        for message in pending:
            if message["role"] == "user" or not opened:
                runs.append([])
            runs[-1].append(message)
            opened = True
        tail: list[Shown] = []
        for position, run in enumerate(runs):
            tail += shown(run, settled=strict or position + 1 < len(runs))
        front, sent = int(bool(view) and view[0]["role"] == "system"), view
        view = self.in_order(view, front)
        tail = aligned(tail, view)
        if not tail and all(map(is_empty_answer, view[front:])):  # sent where nothing else is: no request is empty
            view = view[:front]
        assert len(view) - front >= len(tail), "nothing is left out"
        for expected, actual in zip(tail, view[len(view) - len(tail) :], strict=True):
            assert (said := differs(expected, actual)) is None, said
            if not expected.late and not expected.made_up:
                assert not broken_arguments(expected.message, actual), "clipped arguments stay valid JSON"
                self.seen["clipped messages"] += "recall_page(" in dumped(actual) and dumped(actual) != dumped(
                    expected.message
                )
        self.check_contents(view[front : len(view) - len(tail)])
        if strict and not (runs and runs[0] and runs[0][0]["role"] == "assistant"):
            assert problems(sent) == []
        settings = self.context._parts.window.settings
        tokens = cost(view, [*self.tools, *self.context.tools], settings.model)
        assert tokens <= settings.window - settings.reply, (
            f"{tokens} tokens, {settings.window - settings.reply} allowed"
        )

    def in_order(self, view: list[Message], front: int) -> list[Message]:
        """Return *view* with the contents in front of the first page, which stands before them in a request."""
        window = self.context._parts.window
        lead = openai_chat.write(window.active.lead_view)  # with the media that follow its results
        first = sum(not is_empty_answer(message) for message in lead)  # one of thoughts alone is not sent
        behind = first + len(window.common.archive.view)
        rest = view[front:]
        self.seen["first pages in front"] += 0 < first < behind
        return view[:front] + rest[first:behind] + rest[:first] + rest[behind:]

    def sent(self, seq: int) -> Message:
        """Return message *seq* as Chat Completions gets it: what came in another form without its reasoning."""
        [message] = self.loaded([self.model.texts[seq]])
        return {key: value for key, value in message.items() if key != "reasoning" or seq not in self.model.native}

    def check_request(self) -> None:
        """The next request is one that its provider accepts: of one after the other, a step each."""
        form = FORMATS[self.steps % len(FORMATS)]
        request = self.context.request(tools=self.tools, format=form)
        found = [each for each in strict_problems(form, request) if form != "openai_chat" or not OWN.search(each)]
        assert not found, f"{form}: {found}"
        self.seen[f"requests in {form}"] += 1

    def check_contents(self, contents: list[Message]) -> None:
        """Every archived page is on exactly one line, and no other page is; so is what left the open page."""
        own, folded, parts = listed(contents, self.nonce)
        assert len(set(own + folded)) == len(own + folded), "a page is listed once"
        assert set(own) == {index for index, page in self.where.items() if page.where == "archived"}, contents
        assert set(folded) == {index for index, page in self.where.items() if page.where == "folded"}, contents
        self.seen["folded pages"] += len(folded)
        for index in {index for index, _ in parts}:
            whole = self.model.interactions[index]
            left = {1 + seq - whole[0] for seq in set(self.seqs(index)) - set(self.shown_seqs(index))}
            said = [ordinal for page, run in parts if page == index for ordinal in run]
            assert len(said) == len(set(said)), "an entry is on one line"
            assert left <= set(said) if index == self.model.open else left & set(said), (index, left, said)
        if self.model.open is not None:
            shown = self.shown_seqs(self.model.open)
            assert len(shown) == len(self.seqs(self.model.open)) or self.model.open in {index for index, _ in parts}

    # -- for both

    def shown(self, context: Context | None = None, tools: list[Message] | None = None) -> list[str] | str:
        """Return the rendering, or the error, as it stands."""
        try:
            view = (context or self.context).render(tools=self.tools if tools is None else tools, strict=False)
        except BudgetExceeded as error:
            return str(error)
        return [dumped(message) for message in view]

    def everything(self, context: Context | None = None, tools: list[Message] | None = None) -> tuple[Any, ...]:
        """Return all that a program can see."""
        context = context or self.context
        view = self.shown(context, tools)
        report = context.report()
        told = (
            report.tokens,
            report.total,
            report.pages,
            report.messages,
            report.compactions,
            report.turn,
            report.budget,
        )
        return view, told, list(context.pages()), [dumped(each) for each in context.messages()]

    def unchanged(
        self,
        before: tuple[Any, ...],
        why: str,
        context: Context | None = None,
        tools: list[Message] | None = None,
    ) -> None:
        """Check that a program sees what it saw *before*."""
        now = self.everything(context, tools)
        changed = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
        assert not changed, f"{why}: {str(changed)[:3000]}"

    def loaded(self, texts: list[str]) -> list[Any]:
        """Return the messages that *texts* hold."""
        return [json.loads(text) for text in texts]

    def recall_call(self, call_id: str, arguments: dict[str, Any]) -> Message:
        """Return a call of recall_page, as a model makes it."""
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": "recall_page", "arguments": json.dumps(arguments)},
        }

    def raises(self, error: type[Exception], act: Callable[[], object]) -> None:
        """Check that *act* raises *error*."""
        with pytest.raises(error):
            act()
