"""Cancelling what is awaited: at every step of the loop, it is stored whole or not at all."""

import asyncio
import contextlib
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from memci import EphemeralStorage, SQLiteStorage
from memci.errors import InvalidSetting, StorageBusy
from tests.door import open_async, open_context

from ..context.kit import again, store, turn
from .kit import GIVEN, Gated, said


def test_call_that_is_cancelled_in_its_turn_is_stored_whole_first(quiet):
    """A cancelled append that is in its thread comes to its end before the cancellation is raised."""
    storage = Gated()

    async def main():
        context = await open_async(storage, **GIVEN)
        await storage.reached()
        storage.gate.clear()
        running = asyncio.ensure_future(context.append_turn(*turn(1), op_id="op"))
        await storage.reached()
        for _ in range(3):
            running.cancel()
            await asyncio.sleep(0)
        assert not running.done()
        storage.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await context.append_turn(*turn(1), op_id="op")

    assert quiet(main()).duplicate
    assert len(said(storage)) == 2


def test_call_that_is_cancelled_while_it_waits_has_not_happened(quiet):
    """A cancelled append that had not begun is not stored, and those behind it go on."""
    storage = Gated()

    async def main():
        context = await open_async(storage, **GIVEN)
        await storage.reached()
        storage.gate.clear()
        first = asyncio.ensure_future(context.append_turn("first"))
        await storage.reached()
        second, third = (asyncio.ensure_future(context.append_turn(text)) for text in ("second", "third"))
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        storage.gate.set()
        await asyncio.gather(first, third)

    quiet(main())
    assert said(storage) == ["first", "third"]


async def _cancelled_after(steps, work):
    """Cancel *work* after so many steps of the loop; return what it gave, None if cancelled, and whether it ended."""
    running = asyncio.ensure_future(work)
    for _ in range(steps):
        if running.done():
            break
        await asyncio.sleep(0)
    late = running.done()
    running.cancel()
    try:
        return await running, late
    except asyncio.CancelledError:
        return None, late


def _check_appends(storage, outcomes):
    """Each append that was acknowledged is stored once; each other one once or not at all; none in part."""
    texts = said(storage)
    assert texts[::2] == texts[1::2], "no half of an append"
    assert len(set(texts[::2])) == len(texts[::2]), "nothing twice"
    order = {name: at for at, name in enumerate(outcomes)}
    assert [order[text] for text in texts[::2]] == sorted(order[text] for text in texts[::2])
    for name, receipt in outcomes.items():
        assert receipt is None or texts[receipt.seq] == name
    assert again(storage).verify() == []


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_append_can_be_cancelled_at_every_step(kind, tmp_path, quiet):
    """Cancelled after 0, 1, 2, … steps of the loop, an append is stored or not, and the next one finds no lock."""
    storage = store(kind, tmp_path)
    outcomes = {}

    async def main():
        async with await open_async(storage, **GIVEN) as context:
            steps, ended = 0, 0
            while ended < 3 and steps < 150:
                name = f"step {steps}"
                messages = {"role": "user", "content": name}, {"role": "assistant", "content": name}
                outcomes[name], late = await _cancelled_after(steps, context.append_turn(*messages, op_id=name))
                async with asyncio.timeout(1):
                    stored = await context.append_turn(*messages, op_id=name)
                assert stored.duplicate or outcomes[name] is None
                ended += late
                steps += 1

    quiet(main())
    _check_appends(storage, outcomes)
    assert len(said(storage)) == 2 * len(outcomes)
    storage.close()


def test_appends_can_be_cancelled_at_random(tmp_path, quiet):
    """Of 500 appends of ten tasks, half of them cancelled at some time, each acknowledged one is stored, once."""
    storage, draw = SQLiteStorage(tmp_path / "agent.db", durability="fast"), random.Random(7)
    outcomes = {}

    async def main():
        async with await open_async(storage, **GIVEN) as context:
            for start in range(0, 500, 10):
                work = []
                for number in range(start, start + 10):
                    name = str(number)
                    outcomes[name] = None
                    messages = {"role": "user", "content": name}, {"role": "assistant", "content": name}
                    append = context.append_turn(*messages)
                    steps = draw.choice([0, 1, 2, 3, 5, 10, 40, 10_000, 10_000, 10_000])
                    work.append(asyncio.ensure_future(_cancelled_after(steps, append)))
                for number, (receipt, _) in zip(range(start, start + 10), await asyncio.gather(*work), strict=True):
                    outcomes[str(number)] = receipt
            async with asyncio.timeout(1):
                outcomes["last"] = await context.append_turn("last", {"role": "assistant", "content": "last"})

    quiet(main())
    _check_appends(storage, outcomes)
    acknowledged = sum(receipt is not None for receipt in outcomes.values())
    assert 100 < acknowledged < 500
    storage.close()


def test_loop_that_cancels_all_its_tasks_cuts_nothing_short(quiet):
    """A program that shuts down by cancelling every task of its loop: what runs in a thread is waited for as ever."""
    storage = Gated()

    def cancel_all():
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def main():
        storage.gate.clear()
        opening = asyncio.ensure_future(open_async(storage, wait=1, **GIVEN))
        await storage.reached()
        cancel_all()
        storage.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await opening
        context = await open_async(storage, wait=1, **GIVEN)

        storage.gate.clear()
        running = asyncio.ensure_future(context.append_turn(*turn(1), op_id="op"))
        await storage.reached()
        cancel_all()
        for _ in range(5):
            await asyncio.sleep(0)
        assert not running.done(), "a call that has begun goes to its end first"
        storage.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await context.append_turn(*turn(1), op_id="op")).duplicate

    quiet(main())


def test_timeout_ends_an_append_whole(quiet):
    """asyncio.timeout around an append raises TimeoutError when the append is stored, not in its middle."""
    storage = Gated()

    async def main():
        context = await open_async(storage, **GIVEN)
        await storage.reached()
        storage.gate.clear()
        asyncio.get_running_loop().call_later(0.02, storage.gate.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await context.append_turn(*turn(1))
        assert len(said(storage)) == 2
        await context.append_turn(*turn(2))

    quiet(main())
    assert len(said(storage)) == 4


@pytest.mark.parametrize("after", [0, 1, 2, 5, 50])
def test_open_that_is_cancelled_leaves_nothing_behind(after, tmp_path, quiet):
    """An open that is cancelled at some step gives back its turn and its file."""
    path = tmp_path / "agent.db"
    with open_context(path, **GIVEN):
        pass

    async def main():
        context, _ = await _cancelled_after(after, open_async(path, wait=1, **GIVEN))
        if context is not None:
            await context.close()
        async with await open_async(path, wait=0.05, **GIVEN) as context:
            await context.append_turn("x")

    quiet(main())


def test_open_that_waits_is_cancelled_at_once_and_takes_no_turn(quiet):
    """Who is cancelled while it waits for a turn is gone soon, and the turn goes to who wants it."""
    storage = EphemeralStorage()

    async def main():
        first = await open_async(storage, wait=1, **GIVEN)
        waiting = asyncio.ensure_future(open_async(storage, wait=3_600, **GIVEN))
        for _ in range(20):
            await asyncio.sleep(0)
        waiting.cancel()
        async with asyncio.timeout(5):
            with pytest.raises(asyncio.CancelledError):
                await waiting
        with pytest.raises(StorageBusy):
            await open_async(storage, wait=0.01, **GIVEN)
        await first.close()
        second = await open_async(storage, wait=0.01, **GIVEN)
        await second.close()

    quiet(main())


def test_many_that_wait_leave_threads_to_the_holder(quiet):
    """However many wait for a lock, and however few threads the loop has, the holder's calls go on."""
    storage = EphemeralStorage()

    async def visit(number):
        async with await open_async(storage, wait=30, **GIVEN) as context:
            await context.append_turn(*turn(number))

    async def main():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with asyncio.timeout(20):
            await asyncio.gather(*(visit(number) for number in range(6)))

    quiet(main())
    assert len(said(storage)) == 12


def test_fork_that_is_cancelled_is_there_or_not(tmp_path, quiet):
    """A fork that was cancelled can be opened or made again; its parent goes on."""

    async def main():
        async with await open_async(tmp_path / "agent.db", **GIVEN) as context:
            await context.append_turn(*turn(1))
            for steps in (0, 1, 2, 3, 5, 20, 100, 10_000):
                fork, _ = await _cancelled_after(steps, context.fork(f"fork {steps}"))
                if fork is not None:
                    await fork.close()
                with contextlib.suppress(InvalidSetting):
                    await (await context.fork(f"fork {steps}")).close()
                async with await open_async(tmp_path / "agent.db", **{**GIVEN, "id": f"fork {steps}"}) as fork:
                    assert len([each async for each in fork.messages()]) == 2

    quiet(main())
