"""What one call costs, counted and not timed: modules entered, functions called, statements, characters, bytes.

A count may grow by 8 % before a test fails, so that small changes pass and a step more in every turn is still seen on
any machine. Each limit is shown to fail: `Slower` does what a careless change would do.
"""

import gc
import sys
from collections.abc import Callable

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.memory import NullMemory, TieredMemory
from memci.memory.repository.page_source import record_of
from memci.memory.retrieval import postings
from memci.rows import Ticket
from memci.tokens import counter_for

COUNTED = {
    "modules of an append": 22,
    "modules of a compaction": 50,
    "calls of an append": 114,
    "calls of an append with usage": 195,
    "calls of a rendering": 23,
    "calls of a compaction": 2_076,
    "calls of a prepared compaction": 1_186,
    "statements of a turn": 9,
    "characters of a compaction": 0.294,
    "bytes of a turn": 19_776,
    "statements of a search": 6,
    "calls of a search": 1_145,
    "statements of misspelled words": 4,
    "calls of an admission": 885,
}
"""what was counted when the limits were set: functions and modules of memci; statements and bytes of SQLite; characters
that are given to the counter, for each character that leaves"""
GROWTH = 1.08
"""how much a count may grow"""

ROUTE = [
    {"role": "user", "content": "Which trains go to Oslo? " * 12},
    {"role": "assistant", "content": "The 9:15 and the 14:40. " * 12},
]


def fits(what: str, found: float) -> bool:
    """Return whether *found* is within the limit of *what*."""
    return found <= GROWTH * COUNTED[what]


def entered(call: Callable[[], object]) -> list[str]:
    """Return the modules of memci in which *call* runs a function, sorted."""
    found = set()

    def note(frame, event, _argument):
        if event == "call":
            found.add(frame.f_globals.get("__name__", ""))

    gc.collect()  # what earlier tests left is no part of the call
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sorted(name for name in found if name.split(".")[0] == "memci")


def filled(store, turns: int = 4, *, numbered: bool = False) -> Context:
    """Return a context with some turns, whose words are equal unless they are *numbered*."""
    context = Context.open(store, id="alice", system="Be brief.", window=4_000)
    for number in range(turns):
        context.append_turn(
            *(message | {"content": f"{message['content']} {number}"} if numbered else message for message in ROUTE)
        )
        context.render()
    return context


def appending(store) -> list[str]:
    """Return the modules that one ordinary append enters."""
    with filled(store) as context:
        found = entered(lambda: context.append_turn(*ROUTE))
        assert context.report().tokens["contents"] == 0, "nothing was archived meanwhile"
        return found


def compacting(store) -> list[str]:
    """Return the modules that a rendering enters which archives pages; its pending message brings it to that."""
    with filled(store, 12) as context:
        pending = {"role": "user", "content": "And back? " * 600}
        found = entered(lambda: context.render(pending))
        assert context.report().tokens["contents"] > 0, "pages were archived"
        return found


def test_an_append_enters_few_modules(tmp_path):
    """One append walks through at most so many modules of memci, whatever the store."""
    for store in (SQLiteStorage(tmp_path / "agent.db", durability="fast"), EphemeralStorage()):
        found = appending(store)
        assert fits("modules of an append", len(found)), found


def test_a_compaction_enters_few_modules(tmp_path):
    """One rendering that compacts walks through at most so many modules of memci, whatever the store."""
    compacting(EphemeralStorage())  # what is imported at first use is no step of the call
    for store in (SQLiteStorage(tmp_path / "agent.db", durability="fast"), EphemeralStorage()):
        found = compacting(store)
        assert fits("modules of a compaction", len(found)), found


class Slower(SQLiteStorage):
    """A store that may be careless: it reads the context again and again, and writes a row that no one needs."""

    careless = False

    def revision(self, context):
        for _ in range(400 * self.careless):
            super().revision(context)
        return super().revision(context)

    def commit(self, transition):
        if self.careless:
            self.revision(transition.record.id)
            needless = Ticket("needless", "a", "test", "", 0.0, 1.0)
            self.replace_ticket(None, needless)
            self.replace_ticket(needless, None)
        return super().commit(transition)


class Turns:
    """A context on SQLite whose turns are counted; *careless*, its store and its counter do more than they must."""

    def __init__(self, folder, *, careless=False):
        self.store = Slower(folder / f"{careless}.db", durability="fast")
        self.log = folder / f"{careless}.db-wal"
        self.counted = 0
        self.count = counter_for()
        self.careless = careless
        self.context = Context.open(
            self.store, id="alice", system="Be brief.", window=4_000, memory=NullMemory(), counter=self.counter
        )
        self.store.careless = careless
        self.turn(4)

    def counter(self, text):
        """Count *text*, and its characters."""
        self.counted += (1 + self.careless) * len(text)
        return self.count(text)

    def turn(self, times=1):
        """Append and render."""
        for _ in range(times):
            self.context.append_turn(*ROUTE)
            self.context.render()

    def statements(self):
        """Return how many statements a turn takes."""
        found = []
        self.store._connection.exec_trace = lambda _cursor, sql, _bindings: bool(found.append(sql)) or True
        self.turn()
        self.store._connection.exec_trace = None
        return len(found)

    def written(self):
        """Return how many bytes a turn writes, the mean of ten."""
        before = self.log.stat().st_size
        self.turn(10)
        return (self.log.stat().st_size - before) / 10

    def tokenized(self):
        """Return how many characters a compaction counts for one of the pages that leave."""
        self.turn(8)
        before, self.counted = self.context.report(), 0
        self.context.archive(keep=2)
        left = self.context.report().pages["archived"] - before.pages["archived"]
        return self.counted / (left * sum(len(message["content"]) for message in ROUTE))


def called(act):
    """Return how many functions of memci *act* enters."""
    found = 0

    def note(frame, event, _argument):
        nonlocal found
        found += event == "call" and frame.f_globals.get("__name__", "").partition(".")[0] == "memci"

    gc.collect()
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found


def counted_calls(turns):
    """Return how many functions an append, a rendering and a compaction enter."""
    append = called(lambda: turns.context.append_turn(*ROUTE))
    render = called(turns.context.render)
    turns.turn(8)
    compaction = called(lambda: turns.context.archive(keep=2))
    return {"calls of an append": append, "calls of a rendering": render, "calls of a compaction": compaction}


@pytest.mark.parametrize("careless", [False, True])
def test_a_turn_costs_what_it_did(tmp_path, careless):
    """Calls, statements, characters and bytes stay within their limits; and none does if each turn does a bit more."""
    turns = Turns(tmp_path, careless=careless)
    turns.turn(2)

    found = counted_calls(turns)
    found |= {"statements of a turn": turns.statements(), "bytes of a turn": turns.written()}
    found["characters of a compaction"] = turns.tokenized()

    within = {what: fits(what, count) for what, count in found.items()}
    assert set(within.values()) == {not careless}, (within, found)


@pytest.mark.parametrize("careless", [False, True])
def test_an_append_with_usage_costs_what_it_did(tmp_path, careless):
    """An append that learns from the provider's count writes its state, and reads nothing back."""
    turns = Turns(tmp_path, careless=careless)
    turns.turn(2)

    found = called(lambda: turns.context.append_turn(*ROUTE, usage={"prompt_tokens": 1_000, "completion_tokens": 60}))

    assert fits("calls of an append with usage", found) != careless, found


@pytest.mark.parametrize("careless", [False, True])
def test_a_prepared_compaction_costs_what_it_did(tmp_path, monkeypatch, careless):
    """An append finds the Contents Page that was made in idle time; it makes one if that is forgotten."""
    monkeypatch.setattr("memci.workers.worker.submit", lambda busy: None)
    turns, events = Turns(tmp_path), []
    context = turns.context
    context.on_event = lambda event: events.append(event.kind)
    while events.count("compaction") < 3:  # the first ones meet what is loaded at first use
        while context._parts.compactor.step():
            pass
        if careless:
            context._parts.compactor.prepared.clear()
        turns.counted, before, calls = 0, len(events), 0
        if events.count("compaction") < 2:  # to count calls takes its time
            context.append_turn(*ROUTE)
        else:
            calls = called(lambda: context.append_turn(*ROUTE))

    assert events[before:] == ["compaction"]
    counted = turns.counted - sum(len(message["content"]) for message in ROUTE)
    within = fits("calls of a prepared compaction", calls), counted < 64  # of the time that is told
    assert set(within) == {not careless}, (calls, counted)


class OneByOne(SQLiteStorage):
    """A store that may be careless: it reads each of several pages on its own."""

    careless = False

    def pages_at(self, context, indexes):
        parts = [[index] for index in sorted(indexes)] if self.careless else [indexes]
        return [row for part in parts for row in super(OneByOne, self).pages_at(context, part)]


@pytest.mark.parametrize("careless", [False, True])
def test_a_search_reads_its_pages_at_once(tmp_path, careless):
    """A search takes few statements, as many for ten messages as for two; and more if each page is read on its own."""
    store, found = OneByOne(tmp_path / "agent.db", durability="fast"), []
    filled(store, 40, numbered=True).close()
    store.careless = careless
    with Context.view(store, "alice") as context:
        context.search_memory("trains to Oslo")  # opens the memory, and reads the postings of the words
        for k in (2, 10):
            statements = []
            for each in (store, context.memory.session.store):
                each._connection.exec_trace = lambda *_, seen=statements: seen.append(1) or True
            assert len(context.search_memory("trains to Oslo", k=k).pages) == k
            found.append(len(statements))
    assert (found[0] == found[1] and fits("statements of a search", found[1])) is not careless, found


class Hasty(SQLiteStorage):
    """A store that may be careless: it reads pages again and again."""

    careless = False

    def pages_at(self, context, indexes):
        for _ in range(64 * self.careless):
            super().pages_at(context, indexes)
        return super().pages_at(context, indexes)


@pytest.mark.parametrize("careless", [False, True])
def test_a_search_costs_what_it_did(tmp_path, careless):
    """A search that counts what it finds as visited takes few statements and calls, and writes nothing."""
    store = Hasty(tmp_path / "agent.db", durability="fast")
    with filled(store, 40, numbered=True) as context:
        context.archive(keep=2)
        context.end_session()
    with Context.open(store, "alice") as context:  # no page waits that a worker would feed meanwhile
        context.search_memory("trains to Oslo")  # reads the index, and the postings of the words
        store.careless = careless
        statements = []
        for each in (store, context.memory.session.store):
            each._connection.exec_trace = lambda _cursor, sql, _values: statements.append(sql) or True

        calls = called(lambda: context.search_memory("trains to Oslo"))

        assert context.memory.session.store.visits["alice"], "it counted"
        within = fits("statements of a search", len(statements)), fits("calls of a search", calls)
        assert set(within) == {not careless}, (len(statements), calls)
        assert not [sql for sql in statements if not sql.lstrip().startswith("SELECT")]


@pytest.mark.parametrize("careless", [False, True])
def test_misspelled_words_are_looked_for_in_what_was_read(tmp_path, monkeypatch, careless):
    """Once the words of a small owner were read, a misspelled one takes no statement; and some if they never were."""
    monkeypatch.setattr(postings, "_AT_ONCE", 0 if careless else postings._AT_ONCE)
    store, statements = SQLiteStorage(tmp_path / "agent.db", durability="fast"), []
    with filled(store, 40) as context:
        context.append_turn("We found a lighthouse in Svolvaer.", *ROUTE[1:])
    with Context.view(store, "alice") as context:
        for word in ("lihgthouse", "svolvar", "lighthose"):
            statements.append(0)
            assert context.search_memory(word, seen=False).pages, "it stands for another word"
            context.memory.session.store._connection.exec_trace = lambda *_: bool(statements.append(1)) or True
    assert fits("statements of misspelled words", sum(statements)) is not careless, statements


@pytest.mark.parametrize("careless", [False, True])
def test_admission_costs_what_it_did(tmp_path, careless):
    """A page that passes through all tiers enters few functions, and more if raw pages are read again and again."""
    store, pages = Hasty(tmp_path / "agent.db", durability="fast"), 32
    with Context.open(store, "alice", window=4_000, memory=NullMemory()) as context:
        for number in range(pages + 1):
            context.append_turn(f"Which train {number} goes to Oslo?", {"role": "assistant", "content": "The 9:15."})
        head = store.load("alice")[0].head
        sent = [record_of(store, "alice", row, head) for row in store.pages("alice", last=pages)]
    store.careless = careless
    memory = TieredMemory(store, owner="alice")

    def admit():
        for page in sent:
            memory.admit(page)
            if page.index % 8 == 0:
                memory.maintain()

    entered = called(admit) / pages
    memory.close()
    assert fits("calls of an admission", entered) is not careless, entered
