"""Raw pages are read from the store of their messages a few at a time, and one that is damaged hinders none."""

import logging
from contextlib import closing
from threading import get_ident

import pytest

from memci import Context
from memci.memory import TieredMemory
from memci.memory.repository import page_source

COUNT = 20


@pytest.fixture
def memory(storage):
    """A memory that knows twenty pages, of two contexts."""
    for id_, number in (("alice", 12), ("bob", COUNT - 12)):
        with Context.open(storage, id_, owner="ada", window=2_000) as context:
            for turn in range(number):
                context.append_turn(f"{id_} asks {turn}", {"role": "assistant", "content": f"an answer to {turn} " * 9})
            context.flush()
    with Context.view(storage, "bob") as context:
        context.search_memory("asks")
        yield context.memory


def test_pages_are_read_some_at_a_time(storage, memory):
    """All pages come in the wanted order with their messages, whatever their context, in few statements."""
    statements = []  # of every thread: a worker may look after the memory meanwhile
    for each in (storage, memory.session.store):
        each._connection.exec_trace = lambda *_: statements.append(get_ident()) or True

    found = memory.session.read_pages([*range(COUNT, 0, -1), 999])

    assert [id_ for id_, _ in found] == list(range(COUNT, 0, -1)), "one that is not there is left out"
    for _, page in found:
        asked, answered = (message["content"] for _, message in page.entries)
        assert asked == f"{page.context} asks {page.turn}"
        assert answered == f"an answer to {page.turn} " * 9
    assert 0 < statements.count(get_ident()) < COUNT, "fewer than one for each page"


@pytest.mark.parametrize("damaged", [(3,), (3, 4), tuple(range(1, COUNT + 1))])
def test_a_page_that_is_damaged_hinders_no_other(storage, memory, damaged, caplog):
    """Pages that can't be read are given without messages, and are told; the others of the same read are whole."""
    own = {id_: (page.context, page.index) for id_, page in memory.session.read_pages(damaged)}
    for context, index in own.values():
        (row,) = storage.pages_at(context, [index])
        nr = storage._place(context).number
        storage._connection.execute("UPDATE entry SET body = x'00' WHERE rowid = ?", [(nr << 40) + row.first])

    with caplog.at_level(logging.WARNING, page_source.__name__):
        found = dict(memory.session.read_pages(range(1, COUNT + 1)))

    assert {id_ for id_, page in found.items() if not page.entries} == set(damaged)
    assert len(found) == COUNT
    told = [record.args[0] for record in caplog.records if record.thread == get_ident()]  # a worker may read meanwhile
    assert sorted(told) == sorted(index for _, index in own.values())


@pytest.mark.parametrize("popped", [False, True])
def test_what_another_owner_adds_to_a_page_is_not_read(storage, popped):
    """The memory of who had the context before knows the page as it was; the memory of who has it now, as it is."""
    with Context.open(storage, "alice", owner="ada", window=2_000) as context:
        context.append_turn("What is the code?", {"role": "assistant", "content": "I will tell you."})
    with Context.open(storage, "alice", owner="bob", change_owner=True) as context:
        if popped:
            context.pop()
        context.append_turn({"role": "assistant", "content": "It is canary."})

    told = {}
    for owner in ("ada", "bob"):
        with closing(TieredMemory(storage, owner=owner)) as memory:
            [(_, page)] = memory.session.read_pages(memory.session.owner.pages.ids())
            told[owner] = [message["content"] for _, message in page.entries]

    answers = ["It is canary."] if popped else ["I will tell you.", "It is canary."]
    assert told == {"ada": ["What is the code?", *answers[:-1]], "bob": ["What is the code?", *answers]}
