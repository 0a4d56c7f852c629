"""What becomes of a context besides being talked to: it crashes, is taken over, forked, seen as it was, erased.

    rules      crash · takeover · read only · look back · fork · erase · one byte that flips
    handles    of the same context, opened beside the one that is driven

The rules of a conversation are in `chat_machine`, what must hold in `chat_checks`.
"""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from memci import Context
from memci.errors import Erased, InvalidSetting, MemciError, StorageReadOnly, WriteConflict
from memci.memory import NullMemory
from tests import strategies as chat
from tests.invariants import check
from tests.machine.chat_checks import Checks, dumped
from tests.machine.chat_model import Message


class Lives(Checks):
    """The rules of a context's life."""

    forks = 0

    @rule()
    def crash(self) -> None:
        """The program is gone without closing anything, and starts again: what was acknowledged is there."""
        before, unwritten = self.everything(), self.unwritten
        self.left.append(self.context)
        self.context = self.handle(**unwritten)
        self.unchanged(before, "a context that crashed is the one that was")
        self.seen["crashes"] += 1

    @rule(message=chat.users(giant=False), silent=st.booleans())
    def take_over(self, message: Message, silent: bool) -> None:
        """Another program appends: this one is told before it stores or sends anything, and goes on once refreshed."""
        ours = self.context
        self.closes.pop(self.model.turn, None)
        self.context = self.handle(**self.unwritten)
        self.append([message])
        theirs, self.context = self.context, ours
        for act in (lambda: ours.render(tools=self.tools, strict=False), lambda: ours.append_turn("late")):
            if not silent:
                self.raises(WriteConflict, act)
        seen = self.everything(theirs)  # rendering with these tools may store a compaction: before it is read
        ours.refresh()
        self.unchanged(seen, "both see what is stored")
        theirs.close()
        self.seen["takeovers"] += 1

    @rule()
    def read_only(self) -> None:
        """A handle for reading sees the same, and can't change it."""
        before = self.everything()
        with self.handle(read_only=True, **self.unwritten) as reader:
            self.unchanged(before, "a reader sees what the writer sees", reader)
            self.raises(StorageReadOnly, lambda: reader.append_turn("x"))
            self.raises(StorageReadOnly, lambda: reader.archive(keep=0))
        self.unchanged(before, "a reader changes nothing")
        self.seen["readers"] += 1

    @precondition(lambda self: self.closes)
    @rule(data=st.data())
    def look_back(self, data: st.DataObject) -> None:
        """The context is seen as it stood at the close of a turn: the same bytes, and nothing that came later."""
        turn = data.draw(st.sampled_from(sorted(self.closes)))
        close = self.closes[turn]
        if close.head < self.since:
            self.raises(InvalidSetting, lambda: self.handle(at=turn))
            return
        with self.handle(at=turn) as past:
            self.check_past(past, turn)
        self.seen["views of the past"] += turn < self.model.turn

    def check_past(self, past: Context, turn: int) -> None:
        """What is shown of *turn* is what was shown then."""
        close = self.closes[turn]
        view = [dumped(message) for message in past.render(tools=close.tools)]
        changed = [(a[:500], b[:500]) for a, b in zip(close.view, view, strict=False) if a != b]
        assert view == close.view, f"turn {turn} was {len(close.view)} messages and is {len(view)}: {changed}"
        assert [dumped(message) for message in past.messages()] == self.standing(close.head)
        assert past.verify() == [], past.verify()
        check(past._parts.window)

    @precondition(lambda self: self.forks < 3)
    @rule(data=st.data(), back=st.booleans(), follow=st.booleans())
    def fork(self, data: st.DataObject, back: bool, follow: bool) -> None:
        """A fork shares the past, of now or of an earlier turn; the run goes on in one of the two."""
        turn = None
        if back:
            turns = [turn for turn in sorted(self.closes) if self.closes[turn].head >= max(self.since, 1)]
            turn = data.draw(st.sampled_from(turns)) if turns else None
        before, model, options = self.everything(), self.model, self.options
        self.forks += 1
        name = f"fork {self.forks}"
        fork = self.context.fork(name, at=turn)
        if turn is None:
            self.unchanged(before, "a fork is what it was forked from", fork)
            head, next_page, turn = len(model.texts), model.next_page, model.turn
        else:
            later = [page for page, opened in model.turns.items() if opened > turn]
            head, next_page = self.closes[turn].head, min(later, default=model.next_page)
            options = self.closes[turn].options
            self.check_past(fork, turn)
            self.seen["forks of a turn"] += 1
        self.unchanged(before, "forking changes nothing")
        self.seen["forks"] += 1
        if not follow:
            self.others[name] = (self.tools, self.everything(fork, self.tools))
            fork.close()
            return
        if not self.unwritten:
            self.others[self.id] = (self.tools, before)
        self.context.close()
        self.context, self.id, self.options = fork, name, dict(options)
        fork.on_event = self.noted
        self.model = model.forked(head, next_page, turn)
        self.closes, self.since, self.rendered, self.where = {}, head, None, {}
        self.pins = {page.index for page in fork.pages() if page.pinned}  # of a turn of the past: those of then
        self.sync()

    @precondition(lambda self: self.model.texts)
    @rule(data=st.data(), entry=st.booleans())
    def erase(self, data: st.DataObject, entry: bool) -> None:
        """A page or a message goes, with the answers that quoted it, here and in all forks."""
        indexes = range(1, self.model.next_page)
        quoted = [
            index
            for index in indexes
            if not self.gone(index) and len(self.quoting(set(self.seqs(index)))) > len(self.seqs(index))
        ]
        index = data.draw(st.sampled_from(indexes) | st.sampled_from(quoted or indexes))
        seqs, ordinal = self.seqs(index), None
        if self.model.erased.issuperset(seqs):
            with suppress(MemciError):  # an erasure that is repeated returns its receipt
                self.context.erase(index)
            return
        self.seen["erased undone pages"] += self.gone(index)
        if entry:
            seq = data.draw(st.sampled_from(seqs))
            ordinal = 1 + seq - self.model.interactions[self.where[index].continues or index][0]
            seqs = [seq]
            if seq in self.model.erased:
                with suppress(Erased):
                    self.context.erase(index, ordinal)
                return
        gone = self.quoting(set(seqs))
        secrets = [self.model.texts[seq] for seq in gone - self.model.erased]
        self.context.erase(index, ordinal)

        storage = self.context._parts.reader._storage
        erased = {each.seq for each in storage.entries(self.id) if each.codec == 0}
        more = erased - self.model.erased - gone
        assert gone <= erased
        assert all('"tool"' in self.model.texts[seq] for seq in more), "late answers may go along, nothing else"
        pages = {page: set(self.seqs(page)) for page in self.where}
        self.model.erase(gone | more)
        for page, held in pages.items():
            if held & (gone | more) and held <= erased and self.where[page].where != "undone":
                self.model.blank.add(page)
        self.pins -= self.model.blank
        if self.model.open in self.model.blank:
            self.model.close()
        self.since = len(self.model.texts)
        self.rendered, self.closes = None, {}
        self.seen["erased entries" if entry else "erased pages"] += 1
        self.seen["erased answers"] += len(gone) > len(seqs)
        self.forget(secrets)

    def quoting(self, seqs: set[int]) -> set[int]:
        """Return *seqs* and those of all answers that quoted one of them, or one of these."""
        gone = set(seqs)
        while True:
            more = set()
            for seq, (page, entry) in self.model.quotes.items():
                if page not in self.where:
                    continue
                told = set(self.seqs(page))
                if entry is not None:
                    told = {self.model.interactions[page][0] + entry - 1}
                if told & gone:
                    more.add(seq)
            if more <= gone:
                return gone
            gone |= more

    def forget(self, secrets: list[str]) -> None:
        """Check that no other context shows what was erased here, and what they show from now on."""
        standing = set(self.standing(len(self.model.texts)))
        for name, (tools, before) in self.others.items():
            with Context.view(self.place(), id=name, memory=NullMemory()) as other:
                after = self.everything(other, tools)
                assert other.verify() == []
            lost = [text for text in before[3] if text not in after[3]]
            kept = [
                text for text in secrets if before[3].count(text) == 1 and text in after[3] and text not in standing
            ]
            assert not kept or not lost, "what is shared goes everywhere"
            self.others[name] = (tools, after)

    @precondition(lambda self: self.folder is not None)
    @rule(seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=2))
    def flip(self, seeds: list[int]) -> None:
        """One byte on disk flips: the same is read, or an error of ours says so, or verify names it."""
        before, unwritten = self.everything(), self.unwritten
        for context in [*self.left, self.context]:
            context.close()
        self.left = []
        for seed in seeds:
            copy = self.folder / "copy"
            shutil.copytree(self.folder / "store", copy)
            self.check_flipped(copy, seed, before, unwritten)
            shutil.rmtree(copy)
        self.context = self.handle(**unwritten)

    def check_flipped(self, copy: Path, seed: int, before: tuple[Any, ...], options: dict[str, Any]) -> None:
        """Flip a bit in *copy*, chosen by *seed*, and read everything there."""
        files = sorted(path for path in copy.rglob("*") if path.is_file() and path.stat().st_size)
        path = files[seed % len(files)]
        held = bytearray(path.read_bytes())
        at = (seed // 7919) % len(held)
        held[at] ^= 1 << (seed % 8)
        path.write_bytes(held)
        self.seen["flipped bytes"] += 1
        try:
            with self.opened_copy(copy, options) as context:
                now = self.everything(context)
                if now != before:
                    assert context.verify(), f"byte {at} of {path.name} (bit {seed % 8}) changed what is read, silently"
                    self.seen["flips that verify names"] += 1
        except MemciError:
            self.seen["flips that are told"] += 1

    # -- of the store

    folder: Path | None = None
    """where the store lies on disk, in its "store" """

    def opened_copy(self, copy: Path, options: dict[str, Any]) -> Context:
        """Open the context in a *copy* of the store."""
        raise NotImplementedError
