"""What a model made of pages enters at a compaction, and no call of the context waits for it."""

import functools
import re
import threading

import pytest

from memci import Context, EphemeralStorage
from memci.context.memory_client import ALONE_SECONDS, BATCH
from memci.errors import InvalidSetting, StorageUnavailable
from memci.memory.backend import Forgotten, NullMemory, Recollection, Spent, Work
from memci.text.summarize import Summary
from memci.workers import QUIET_SECONDS
from tests.invariants import check_contents


class Improved:
    """A memory with a model, whose summaries are given by hand."""

    has_model = True

    def __init__(self):
        self.told, self.jobs, self.done, self.maintained = {}, 0, 0, 0
        self.in_job = lambda: None
        self.fails = None

    def observe(self, page):
        self.seen = page

    def admit(self, page):
        self.seen = page

    def acknowledged(self, context):
        return 0

    def search(self, query, **wanted):
        return Recollection(query)

    def erase(self, scope):
        return Forgotten()

    def maintain(self, now=None):
        self.maintained += 1
        return 0

    def close(self):
        pass

    def run_job(self, settle=None):
        if self.jobs == 0:
            return False
        self.in_job()
        if settle is not None:
            settle()
        self.jobs -= 1
        self.done += 1
        return self.jobs > 0

    def summaries(self, context, indexes):
        if self.fails is not None:
            raise self.fails
        return {index: self.told[context, index] for index in indexes if (context, index) in self.told}

    def work(self):
        return Work(self.jobs, 1, 0, {"page": Spent(calls=self.done)})


@pytest.fixture
def memory():
    return Improved()


@pytest.fixture
def context(memory):
    with Context.open(EphemeralStorage(), id="a", window=8_000, memory=memory, nonce="0a1b2c3d") as opened:
        yield opened


def talk(context, count):
    """Append *count* closed pages of two messages each."""
    for _ in range(count):
        turn = context.report().pages["open"] + context.report().turn + 1
        context.append_turn(f"Question {turn}?", {"role": "assistant", "content": f"Answer {turn}."})


def contents(context):
    """Return the text of the Contents Page, without its dates."""
    shown = "".join(each["content"] for each in context.render() if each["content"].startswith("<memci:contents"))
    return re.sub(r" \(\d\d? \w{3}(?: \d{4})?\)", "", shown)


def better(turn):
    return Summary(f"Better title {turn}", (f"asks {turn}", f"tells {turn}"))


def test_summary_of_a_model_enters_when_its_page_leaves(context, memory):
    """A page that has a model's summary is listed by it, another one by what was extracted."""
    talk(context, 3)
    memory.told["a", 1] = better(1)

    context.archive(keep=0)

    assert "#1 Better title 1\n  1 user: asks 1\n  2 assistant: tells 1\n" in contents(context)
    assert "\n#2 Question 2? · Answer 2." in contents(context)


def test_late_summary_enters_with_the_next_compaction(context, memory):
    """A summary that came after its page had left changes nothing until the next compaction, which lists it."""
    talk(context, 3)
    context.archive(keep=0)
    before = contents(context)
    memory.told["a", 1] = better(1)
    assert contents(context) == before

    talk(context, 2)
    assert contents(context) == before
    context.archive(keep=0)

    assert "#1 Better title 1\n" in contents(context)
    check_contents(context._parts.window.common.archive.contents, [1, 2, 3, 4])


def test_older_blocks_keep_their_bytes(context, memory):
    """A summary that comes later than that changes no older block: a provider's cache keeps it."""
    talk(context, 3)
    context.archive(keep=0)
    talk(context, 2)
    context.archive(keep=0)
    first = context.render()[1]
    memory.told["a", 1] = better(1)
    talk(context, 2)

    context.archive(keep=0)

    assert context.render()[1] == first


def test_summary_of_other_messages_is_not_taken(context, memory):
    """A summary with another number of lines than the page has messages is of another page."""
    talk(context, 2)
    memory.told["a", 1] = Summary("Better", ("one line",))

    context.archive(keep=0)

    assert "Better" not in contents(context)


def test_summaries_that_cannot_be_read_hold_nothing_up(context, memory):
    """A compaction is made of what was extracted if the memory can't be read."""
    talk(context, 2)
    memory.fails = StorageUnavailable("gone")

    assert context.archive(keep=0) == (1,)

    assert "\n#1 " in contents(context)


def test_flush_does_the_jobs_that_are_due(context, memory):
    """A flush looks after the memory, does its jobs, and ends; what they gave is looked after, too."""
    memory.jobs = 3

    context.flush()

    assert (memory.jobs, memory.done, memory.maintained) == (0, 3, 2)


def test_context_is_used_while_a_flush_waits_for_the_model(context, memory):
    """While a flush waits for a model, others append and render."""
    rendered = []

    def render():
        thread = threading.Thread(target=lambda: rendered.append(context.render("Still there?")))
        thread.start()
        thread.join(20)

    memory.jobs, memory.in_job = 1, render
    context.flush()

    assert len(rendered) == 1


def test_worker_is_asked_for_each_page(context, memory, monkeypatch):
    """With a model the worker hears of every page that closed, and the model's worker of the jobs after it."""
    told, improving = [], []
    monkeypatch.setattr("memci.workers.worker.submit", told.append)
    monkeypatch.setattr("memci.workers.model_worker.submit", improving.append)
    talk(context, 2)
    assert len(told) == 2

    while told[0].step():
        pass

    assert len(improving) == 1
    memory.jobs = 2
    assert improving[0].step()
    assert not improving[0].step()


def test_memory_is_looked_after_every_few_pages(context, memory, monkeypatch):
    """With a model each page is told at once, but looked after in batches: the next turn is not to meet it."""
    monkeypatch.setattr("memci.workers.worker.submit", lambda busy: None)
    monkeypatch.setattr("memci.workers.model_worker.submit", lambda busy: None)
    for expected in (0, 1, 1):
        talk(context, 5)
        while context._client.step():
            pass
        assert memory.maintained == expected


def test_page_by_itself_is_told_when_the_context_is_left_alone_for_longer(context, memory, monkeypatch):
    """With a model a single page waits for a longer rest than a batch does: turns that follow at once don't meet it."""
    monkeypatch.setattr("memci.workers.worker.submit", lambda busy: None)
    monkeypatch.setattr("memci.workers.model_worker.submit", lambda busy: None)
    client = context._client
    talk(context, 2)
    assert client.patience == ALONE_SECONDS
    talk(context, BATCH)
    assert client.patience == QUIET_SECONDS

    while client.step():
        pass

    talk(context, 1)
    assert client.patience == ALONE_SECONDS
    memory.has_model = False
    assert client.patience == QUIET_SECONDS


def test_jobs_end_with_the_context(context, memory, monkeypatch):
    """A closed context has no more jobs done."""
    memory.jobs = 1
    improver = context._client._job_worker
    context.close()

    assert not improver.step()

    assert memory.jobs == 1


def test_report_tells_of_the_work(context, memory):
    """A report has what the model did; jobs that were set aside are warned of."""
    memory.jobs = 2

    found = context.report()

    assert found.work == Work(2, 1, 0, {"page": Spent(calls=0)})
    assert any("set aside" in warning for warning in found.warnings)


def test_report_of_a_context_without_a_model_has_no_work():
    """Without a model there is no work to tell of."""
    with Context.open(EphemeralStorage(), id="a", window=8_000) as context:
        assert context.report().work is None


async def awaited(messages, **more):
    """Answer nothing."""


@pytest.mark.parametrize("chat", ["gpt", dict, awaited, functools.partial(awaited)])
def test_what_is_no_model_is_refused(chat):
    """A name, a class and what has to be awaited are no model."""
    with pytest.raises(InvalidSetting, match=r"^chat: "):
        Context.open(EphemeralStorage(), id="a", window=8_000, chat=chat)


def test_model_beside_a_memory_is_refused():
    """Who brings a memory gives the model to that."""
    with pytest.raises(InvalidSetting, match="NullMemory"):
        Context.open(EphemeralStorage(), id="a", window=8_000, chat=lambda messages, **more: None, memory=NullMemory())
