"""Stores, restarts, threads, and what is refused at the door."""

import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.context.report import Receipt
from memci.errors import HandlePoisoned, InvalidSetting
from memci.memory.backend import NullMemory
from tests.invariants import check

from .kit import OWN_TOOL, call, calling, opened, result, talked, turn, where, words


def test_contexts_in_one_store_know_nothing_of_each_other(tmp_path):
    """Many contexts share one file: messages, op_ids, pages and settings are each one's own."""
    with contextlib.closing(SQLiteStorage(tmp_path / "all.db")) as storage:
        one, other = opened(storage, id="one"), opened(storage, id="other", window=8_000)
        for number in range(3):
            one.append_turn(f"one {number}", op_id=f"op {number}")
            assert not other.append_turn(f"other {number}", op_id=f"op {number}").duplicate
        one.archive(keep=0)
        one.close()

        assert [each["content"] for each in other.messages()] == ["other 0", "other 1", "other 2"]
        assert where(other) == {1: "active", 2: "active", 3: "open"}
        assert (other.report().window, opened(storage, id="one", window=None).report().window) == (8_000, 4_000)


@pytest.mark.parametrize("kind", ["ram", "file"])
def test_restart_renders_the_same_bytes(kind, tmp_path):
    """A context that is opened again from its store shows the same, at every step."""
    with contextlib.closing(SQLiteStorage(tmp_path / "all.db")) as file:
        storage = EphemeralStorage() if kind == "ram" else file
        context = opened(storage, window=1_700, system="Be kind.")
        for number in range(30):
            context.append_turn(*turn(number, 20), calling(call("a", arguments={"text": "word " * 300})))
            context.append_turn(result("a", "word " * (number * 17)))
            if number % 7 == 3:
                context.recall_page(1 + number // 2)
            if number % 9 == 4:
                context.pin(number)
            if number % 9 == 8:
                context.unpin(number - 4)
            shown = json.dumps(context.render(tools=[OWN_TOOL]))

            again = opened(storage, window=None)

            assert json.dumps(again.render(tools=[OWN_TOOL])) == shown
            assert again.report().tokens == context.report().tokens
            check(again._parts.window)
            context = again
        assert context.verify() == []


def test_new_window_counter_and_prompt_at_open_win():
    """What is given at open takes the place of what is stored, and is stored."""
    storage = EphemeralStorage()
    context = talked(30, size=30, storage=storage, system="Old.")
    context.close()

    smaller = opened(storage, window=1_300, system="New.", counter=lambda text: 2 * words(text))
    window = smaller._parts.window
    counted = window.common.tokens
    real = sum(window.weigh(message) for message in window.common.view)
    shown = smaller.render()

    assert counted == real, "what was stored is counted anew, by the new counter"
    assert shown[0]["content"].startswith("New.")
    assert smaller.report().total <= smaller.report().budget < 1_300
    again = opened(storage, window=None, counter=lambda text: 2 * words(text))
    assert again.render() == shown
    assert [each["content"] for each in again.messages()] == [
        each["content"] for n in range(1, 31) for each in turn(n, 30)
    ]


def test_eight_threads_appending_stay_consistent():
    """Threads share a context: every append is there once, whole, and the window holds its invariants."""
    context = opened(window=1_500)
    start = threading.Barrier(8)

    def work(worker: int) -> list[Receipt]:
        start.wait()
        receipts = []
        for number in range(15):
            receipts.append(
                context.append_turn(f"{worker} asks {number}", {"role": "assistant", "content": f"to {worker}"})
            )
            context.render("pending", strict=False)
            if number % 5 == 4:
                context.recall_page(receipts[0].page)
                context.report()
        return receipts

    with ThreadPoolExecutor(8) as pool:
        receipts = [each for done in pool.map(work, range(8)) for each in done]

    assert sorted(each.seq for each in receipts) == list(range(0, 240, 2))
    assert sorted(each.page for each in receipts) == list(range(1, 121))
    for receipt in receipts:
        [user, reply] = context.recall_page(receipt.page)
        assert reply["content"] == f"to {user['content'].split()[0]}"
    check(context._parts.window)
    assert context.verify() == []


def test_closed_context_says_so():
    """After close every call is Closed, closing again is fine, and a store of one's own stays open."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn("a")
    context.close()
    context.close()

    for use in (
        context.render,
        context.undo,
        context.archive,
        context.report,
        context.verify,
        context.flush,
        context.pages,
        context.messages,
        lambda: context.append_turn("b"),
        lambda: context.recall_page(1),
        lambda: context.pin(1),
        lambda: context.answers({"role": "assistant", "content": "x"}),
        lambda: context.functions["recall_page"](1),
    ):
        with pytest.raises(HandlePoisoned):
            use()
    assert [each["content"] for each in opened(storage).messages()] == ["a"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"id": "half \ud83d"}, "id"),
        ({"owner": "half \ud83d"}, "owner"),
        ({"window": None}, "window"),
        ({"window": 10}, "window"),
        ({"preset": "fast"}, "preset"),
        ({"system": 5}, "system"),
        ({"system": "half \ud83d"}, "system"),
        ({"model": "half \ud83d"}, "model"),
        ({"counter": 5}, "counter"),
        ({"archive_share": 2.0}, "archive_share"),
    ],
)
def test_open_with_an_argument_that_makes_no_sense_is_refused(given, name):
    """The error names the argument, and nothing is stored."""
    storage = EphemeralStorage()

    with pytest.raises(InvalidSetting) as caught:
        opened(storage, **given)

    assert caught.value.name == name
    assert storage.contexts() == []


def test_open_of_something_that_is_no_store_is_refused():
    """A store is a path or a Storage."""
    with pytest.raises(InvalidSetting, match="store"):
        opened(42)


def test_repr_and_id_name_the_context():
    """A context can be told from another in a debugger, open or closed."""
    context = talked(2)
    context.close()

    assert repr(context) == "<Context 'alice': 4 messages, page #2>"
    assert context.id == "alice"


def test_late_result_of_a_call_that_was_interrupted_is_known_without_a_search():
    """A result for a call of an archived page is taken without reading the store: its id was remembered."""

    class Searched(EphemeralStorage):
        searches = 0

        def entries(self, context, first=0, end=None, *, containing=None, **more):
            self.searches += containing is not None
            return super().entries(context, first, end, containing=containing, **more)

    storage = Searched()
    context = Context.open(storage, id="a", window=4_000)
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    context.append_turn("book", {"role": "assistant", "content": None, "tool_calls": [call]}, "never mind")
    context.append_turn({"role": "assistant", "content": "fine"}, "next")
    context.archive(keep=0)

    context.append_turn({"role": "tool", "tool_call_id": "c1", "content": "booked"})

    assert storage.searches == 0
    assert "late-result" in context.render()[-1]["content"]


class Bare:
    """A store with the methods of `Storage` and no others."""

    def __init__(self):
        store = EphemeralStorage()
        self.load, self.revision, self.commit, self.pages = store.load, store.revision, store.commit, store.pages
        self.pages_at, self.entries_at = store.pages_at, store.entries_at
        self.entries, self.compactions, self.ops, self.op = store.entries, store.compactions, store.ops, store.op
        self.calls = store.calls
        self.contexts, self.forks, self.erase, self.close = store.contexts, store.forks, store.erase, store.close
        self.tickets, self.replace_ticket = store.tickets, store.replace_ticket


def test_store_without_a_sidecar_is_refused_a_memory():
    """A store that has no place for a memory is InvalidSetting, which says what to pass; nothing is kept in RAM."""
    storage = Bare()

    with pytest.raises(InvalidSetting, match=r"Bare has no .*NullMemory") as caught:
        Context.open(storage, id="alice", window=4_000)

    assert caught.value.name == "memory"


def test_store_without_a_sidecar_is_refused_an_import():
    """An import is opened with the default memory; where that can't be kept, nothing is stored."""
    lines, storage = list(talked(2).export()), Bare()

    with pytest.raises(InvalidSetting, match=r"Bare has no "):
        Context.import_(storage, lines, counter=words)

    assert storage.contexts() == []
    assert Context.import_(storage, lines, memory=NullMemory(), counter=words).report().messages == 4


def test_store_without_a_sidecar_works_without_a_memory():
    """Such a store keeps, shows, erases and verifies contexts that have no memory."""
    context = Context.open(Bare(), id="alice", window=4_000, memory=NullMemory())
    index = context.append_turn("secret").page
    context.append_turn("Hello")

    context.erase(index)

    assert [each["content"] for each in context.messages()] == ["Hello"]
    assert context.verify() == []
