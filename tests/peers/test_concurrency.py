"""What went wrong elsewhere when two did something at once, and can't here. The numbers are public issues."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from memci import AsyncContext
from memci.errors import StorageBusy, WriteConflict
from tests.context.kit import ON_DISK, again, calling, opened, result, store, talked, turn, where

pytestmark = pytest.mark.usefixtures("no_memory")


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

    with pytest.raises(WriteConflict):
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
        with pytest.raises(WriteConflict):
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


def test_erasures_of_many_threads_all_happen(storage):
    """agent-os#891: on a shared connection 19 of 20 concurrent deletes failed. Each of twenty erases its page."""
    context = talked(21, storage=storage)

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(context.erase, range(1, 21)))

    assert [receipt.pages for receipt in receipts] == [1] * 20
    assert {index for index, place in where(again(storage)).items() if place == "erased"} == set(range(1, 21))


def test_append_that_is_cancelled_is_stored_whole_or_absent(storage):
    """openai-agents#1658: cleaning up a stream cancelled the append in it. What is cancelled is whole, or absent."""

    async def live() -> list:
        context = AsyncContext(opened(storage))
        for number in range(12):
            task = asyncio.ensure_future(context.append_turn(*turn(number)))
            for _ in range(number % 4):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await context.append_turn(*turn(99))
        return [message["content"] async for message in context.messages()]

    kept = asyncio.run(live())

    assert kept[-2:] == [message["content"] for message in turn(99)]
    assert kept == [each["content"] for said in kept[::2] for each in turn(int(said.split()[1]))]
    assert len(list(again(storage).messages())) == len(kept)


@pytest.mark.parametrize("kind", ON_DISK)
def test_closing_another_handle_gives_no_lock_back(kind, tmp_path):
    """hermes-agent#100313, #100368, PR#71724, PR#100519: closing a file of its own gave up the locks of the process,
    and two wrote at once. The turn of one handle outlives all others of its process.
    """
    talked(2, storage=store(kind, tmp_path)).close()
    holder = again(store(kind, tmp_path), wait=1)
    for _ in range(3):
        with contextlib.closing(store(kind, tmp_path)) as other, again(other, read_only=True) as reader:
            list(reader.messages())
            reader.verify()
    code = """
import sys, pathlib
from memci.errors import StorageBusy
from tests.context.kit import again, store
try:
    again(store(sys.argv[1], pathlib.Path(sys.argv[2])), wait=0.05)
except StorageBusy:
    print("busy")
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-c", code, kind, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=environment,
    )

    assert done.stdout == "busy\n"
    holder.append_turn(*turn(3))


def test_turn_that_is_held_does_not_block_readers(storage):
    """adk-js PR#831: history was read again under the lock, a convoy of 150 s. Readers wait for nobody."""
    talked(3, storage=storage)
    holder = again(storage, wait=1)

    with pytest.raises(StorageBusy):
        again(storage, wait=0.01)
    assert len(list(again(storage, read_only=True).messages())) == 6
    holder.close()
