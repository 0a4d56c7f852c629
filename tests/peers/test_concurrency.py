"""What went wrong elsewhere when two did something at once, and can't here. The numbers are public issues."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memci.errors import LeaseLost, StorageBusy
from tests.context.kit import again, calling, opened, result, talked, turn


def test_parallel_tool_results_are_all_kept(storage):
    """mcp/servers#1819, #2577: parallel calls corrupted the file. Results of many threads are stored one by one."""
    names = [f"c{number}" for number in range(24)]
    context = opened(storage)
    context.append_turn("go", calling(*names))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: context.append_turn(result(name, f"of {name}")), names))

    stored = [message for message in context.messages() if message["role"] == "tool"]
    assert sorted(message["tool_call_id"] for message in stored) == sorted(names)
    assert all(message["content"] == f"of {message['tool_call_id']}" for message in stored)
    shown = [message for message in context.render() if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in shown] == names


def test_second_process_discards_nothing_of_the_first(storage):
    """mcp/servers#4797: an atomic rename per process discarded what the other one wrote. The second one is told."""
    first, second = opened(storage), opened(storage)
    first.append_turn(*turn(1))

    with pytest.raises(LeaseLost):
        second.append_turn(*turn(2))

    second.refresh()
    second.append_turn(*turn(2))
    assert list(second.messages()) == [*turn(1), *turn(2)]


def test_stale_session_is_not_loaded_silently(storage):
    """adk-python#4751: a stale session was reloaded in silence, and two runs interleaved. Here it is asked for."""
    talked(2, storage=storage)
    older, newer = again(storage), again(storage)
    newer.append_turn("go", calling("a"), result("a"))

    for act in (older.render, lambda: older.append_turn("mine", calling("b"), result("b"))):
        with pytest.raises(LeaseLost):
            act()

    assert len(list(newer.messages())) == 7


def test_failed_write_leaves_no_lock_behind(tmp_path):
    """openai-agents#4202, nerve PR#168: a failed write kept the lock, for ten hours. Here others go on."""
    path = tmp_path / "agent.db"
    broken, other = opened(path), opened(path, id="other")

    for message in (
        {"role": "nobody"},
        {"role": "user", "content": float("nan")},
        {"role": "user", "content": object()},
    ):
        with pytest.raises(ValueError, match="messages"):
            broken.append_turn(message)
        other.append_turn(*turn(1))

    broken.append_turn(*turn(1))


def test_two_that_undo_take_back_two_pages(storage):
    """openai-agents#4988: two pop_item returned the same item. Each undo takes another page back."""
    context = talked(8, storage=storage)
    taken = []

    def undo():
        taken.append([message["content"] for message in context.undo()])

    threads = [threading.Thread(target=undo) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(taken) == sorted([message["content"] for message in turn(number)] for number in (5, 6, 7, 8))
    assert len(list(context.messages())) == 8


def test_turn_that_is_held_does_not_block_readers(storage):
    """adk-js PR#831: history was read again under the lock, a convoy of 150 s. Readers wait for nobody."""
    talked(3, storage=storage)
    holder = again(storage, wait=1)

    with pytest.raises(StorageBusy):
        again(storage, wait=0.01)
    assert len(list(again(storage, read_only=True).messages())) == 6
    holder.close()
