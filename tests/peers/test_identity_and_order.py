"""What went wrong elsewhere with order, pairs and ids, and can't here. The numbers are public issues."""

import random

import pytest

from tests.context.kit import again, call, calling, opened, result, talked, turn
from tests.machine.chat_grammars import problems as refused

pytestmark = pytest.mark.usefixtures("no_memory")


def test_reply_with_parallel_calls_is_one_message(storage):
    """claude-code#31328: a reply was dropped among parallel calls, and no request was accepted. It is one entry."""
    context = opened(storage)
    context.append_turn("go", calling("a", "b", "c"))
    for name in ("c", "a", "b"):
        context.append_turn(result(name))

    assert refused(context.render()) == []
    assert [message["role"] for message in again(storage).messages()] == ["user", "assistant", "tool", "tool", "tool"]


def test_chain_has_no_end_that_dangles(storage):
    """claude-code#22526, #31330, #58554: a parent that was missing made 95 % unreachable. Order has no gaps."""
    context = talked(20, storage=storage, window=600)
    context.archive(keep=0)
    context.undo()
    context.append_turn(*turn(21))

    assert [entry.seq for entry in storage.entries("alice")] == list(range(42))
    assert context.verify() == []


def test_side_branches_hide_nothing_of_the_main_one(storage):
    """claude-code#35024: entries beside forked the chain, and 80 % were lost. A fork is a context of its own."""
    context = talked(4, storage=storage)
    sides = [context.fork(f"side {number}") for number in range(3)]
    for number, side in enumerate(sides):
        side.append_turn(*turn(10 + number))
    context.append_turn(*turn(5))

    main = [message for number in range(1, 6) for message in turn(number)]
    assert list(again(storage).messages()) == main
    for number, side in enumerate(sides):
        assert list(side.messages()) == [*main[:8], *turn(10 + number)]


def test_ids_that_collide_hide_nothing(storage):
    """claude-code#36583: equal ids made 25 % unreachable. An id of a call is data; messages have numbers."""
    context = opened(storage)
    for number in range(5):
        context.append_turn(f"go {number}", calling("same"), result("same", f"result {number}"))

    rendering = context.render()

    assert refused(rendering) == []
    shown = [message["content"] for message in rendering if message["role"] == "tool"]
    assert shown == [f"result {number}" for number in range(5)]


def test_id_used_again_is_paired_with_its_own_turn(storage):
    """9router#4273, langchain PR#620: an id that came again was paired with the result of an earlier turn."""
    context = opened(storage)
    context.append_turn("one", calling("x"), result("x", "first"))
    context.append_turn("two", calling("x"), result("x", "second"))
    context.append_turn("three", calling("x"), result("x", "third"))
    context.archive(keep=1)

    assert [m["content"] for m in context.render() if m["role"] == "tool"] == ["first", "third"], "the task stays"
    assert [context.recall_page(index)[-1]["content"] for index in (1, 2, 3)] == ["first", "second", "third"]


def test_cut_never_falls_between_a_call_and_its_results(storage):
    """langchain#38352, #34282, deepagents#270: the cut split calls from results. Here none is ever apart."""
    draw = random.Random(38352)
    context = opened(storage, window=700)
    for number in range(60):
        names = [f"{number}-{each}" for each in range(draw.randint(1, 4))]
        results = [result(name, "word " * draw.randint(1, 60)) for name in draw.sample(names, len(names))]
        context.append_turn(f"go {number}", calling(*(call(name) for name in names)), *results)

        assert refused(context.render()) == []
