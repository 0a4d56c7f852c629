"""AsyncContext: the same context, awaited; whenever a call is cancelled, it is stored whole or not at all."""

import asyncio
import inspect
import json
import threading

import pytest

from memci import AsyncContext, Context, EphemeralStorage
from memci.errors import Closed, HandlePoisoned, InvalidMessage, InvalidSetting, WriteConflict
from tests.door import open_async, open_context

from ..context.kit import again, call, calling, seen, store, turn, where
from .kit import GIVEN, Gated, said


def test_every_method_of_a_context_is_there():
    """What a Context can do, an AsyncContext can, by the same name and with the same parameters."""
    names = {name for name in dir(Context) if not name.startswith("_")}
    missing = names - {name for name in dir(AsyncContext) if not name.startswith("_")}

    assert missing <= {"functions", "import_", "on_event", "read_only"}
    for name in names - missing - {"open"}:
        ours, theirs = getattr(AsyncContext, name), getattr(Context, name)
        if callable(theirs):
            assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters), name


def test_every_method_does_what_the_context_does(tmp_path, quiet):
    """The same calls leave the same context, awaited or not."""
    plain = open_context(tmp_path / "plain.db", **GIVEN)
    reply = calling(call("r", "recall_page", {"index": 1, "entry": None}))
    expected = [
        plain.append_turn(*turn(1), op_id="op", at="2020-01-01T00:00:00+00:00"),
        plain.append_turn("observed", opens_page=False),
        plain.append_turn(*turn(2)),
        plain.render("and", tools=[], strict=False),
        plain.append_turn(usage={"prompt_tokens": 900}),
        plain.pin(2),
        plain.unpin(2),
        plain.instructions(),
        plain.archive(keep=0),
        plain.append_turn("What?", reply),
        plain.answer(reply["tool_calls"][0]),
        plain.answers(reply),
        plain.recall_page(1, 2),
        plain.undo(),
        plain.refresh(),
        list(plain.pages()),
        list(plain.messages()),
        plain.verify(),
        plain.flush(),
        plain.tools,
        plain.handles(reply["tool_calls"][0]),
        plain.id,
        plain.report(),
        len(list(plain.export())),
        plain.erase(2),
    ]
    fork = plain.fork("bob", at=None, owner="carol")
    expected += [list(fork.messages()), fork.id]
    fork.close()

    async def main():
        context = await open_async(tmp_path / "async.db", **GIVEN)
        got = [
            await context.append_turn(*turn(1), op_id="op", at="2020-01-01T00:00:00+00:00"),
            await context.append_turn("observed", opens_page=False),
            await context.append_turn(*turn(2)),
            await context.render("and", tools=[], strict=False),
            await context.append_turn(usage={"prompt_tokens": 900}),
            await context.pin(2),
            await context.unpin(2),
            await context.instructions(),
            await context.archive(keep=0),
            await context.append_turn("What?", reply),
            await context.answer(reply["tool_calls"][0]),
            await context.answers(reply),
            await context.recall_page(1, 2),
            await context.undo(),
            await context.refresh(),
            [page async for page in context.pages()],
            [message async for message in context.messages()],
            await context.verify(),
            await context.flush(),
            context.tools,
            context.handles(reply["tool_calls"][0]),
            context.id,
            await context.report(),
            len([line async for line in context.export()]),
            await context.erase(2),
        ]
        fork = await context.fork("bob", at=None, owner="carol")
        assert repr(context) == "<Async" + repr(context.context)[1:]
        async with fork:
            got += [[message async for message in fork.messages()], fork.id]
        with pytest.raises(HandlePoisoned):
            await fork.render()
        await context.close()
        await context.close()
        return got

    assert quiet(main()) == expected
    plain.close()
    with again(tmp_path / "plain.db") as one, again(tmp_path / "async.db") as other:
        assert seen(one) == seen(other)


def test_errors_reach_who_awaits(quiet):
    """What a call raises is raised by its await, and the next call works."""
    storage = EphemeralStorage()

    async def main():
        with pytest.raises(InvalidSetting):
            await open_async(storage, **{**GIVEN, "window": -1})
        context = await open_async(storage, **GIVEN)
        with pytest.raises(InvalidMessage):
            await context.append_turn({"role": "nobody"})
        again(storage).append_turn("by another")
        with pytest.raises(WriteConflict):
            await context.render()
        await context.refresh()
        return await context.append_turn("fine")

    assert quiet(main()).seq == 1


def test_concurrent_calls_happen_in_the_order_in_which_they_were_made(quiet):
    """A hundred appends that were started together are stored in that order, each whole."""
    storage = EphemeralStorage()

    async def main():
        async with await open_async(storage, **GIVEN) as context:
            calls = [context.append_turn(f"{number}", {"role": "assistant", "content": "ok"}) for number in range(100)]
            return await asyncio.gather(*calls)

    receipts = quiet(main())

    assert [receipt.seq for receipt in receipts] == list(range(0, 200, 2))
    assert said(storage)[::2] == [str(number) for number in range(100)]


def test_loop_runs_on_while_a_call_is_in_its_thread(quiet):
    """A slow store holds up its own context, and nothing else of the program."""
    storage = Gated()

    async def main():
        context = await open_async(storage, **GIVEN)
        await storage.reached()
        storage.gate.clear()
        slow = asyncio.ensure_future(context.append_turn("slow"))
        await storage.reached()
        other = await open_async(EphemeralStorage(), **GIVEN)
        receipt = await other.append_turn("quick")
        assert not slow.done()
        storage.gate.set()
        await slow
        return receipt

    assert quiet(main()).seq == 0


@pytest.mark.parametrize("kind", ["ram", "sqlite", "files"])
def test_many_contexts_share_one_store(kind, tmp_path, quiet):
    """Fifty contexts in one task group, each with turns of its own: nothing is mixed up, nothing waits for ever."""
    storage = store(kind, tmp_path)

    async def talk(name):
        async with await open_async(storage, **{**GIVEN, "id": name}) as context:
            for number in range(3):
                await context.render(f"{name} {number}")
                await context.append_turn(f"{name} {number}")

    async def main():
        async with asyncio.TaskGroup() as group:
            for number in range(50):
                group.create_task(talk(f"c{number}"))

    quiet(main())
    for number in range(50):
        context = again(storage, id=f"c{number}")
        assert [each["content"] for each in context.messages()] == [f"c{number} {n}" for n in range(3)]
    storage.close()


def test_task_group_that_fails_leaves_its_contexts_whole(quiet):
    """One task that fails cancels the others of its group: each of their appends is stored or not, and all go on."""
    storage = EphemeralStorage()

    async def main():
        context = await open_async(storage, **GIVEN)

        async def fail():
            await asyncio.sleep(0.002)
            raise ValueError

        async def talk():
            for number in range(10_000):
                await context.append_turn(f"{number}", {"role": "assistant", "content": f"{number}"})

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                group.create_task(talk())
                group.create_task(fail())
        await context.append_turn("last", {"role": "assistant", "content": "last"})

    quiet(main())
    texts = said(storage)
    assert texts[::2] == texts[1::2] == [*map(str, range(len(texts) // 2 - 1)), "last"]


def test_close_waits_for_the_calls_before_it(quiet):
    """What was started before close is stored; what comes after it is told to open again."""
    storage = EphemeralStorage()

    async def main():
        context = await open_async(storage, **GIVEN)
        before = [asyncio.ensure_future(context.append_turn(f"{number}")) for number in range(10)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(context.close())
        await asyncio.sleep(0)
        after = [asyncio.ensure_future(context.append_turn("late")) for _ in range(3)]
        outcomes = await asyncio.gather(*before, closing, *after, return_exceptions=True)
        assert [type(each) for each in outcomes[11:]] == [Closed] * 3

    quiet(main())
    assert said(storage) == [str(number) for number in range(10)]


def test_body_that_raises_closes_its_context(tmp_path, quiet):
    """Whatever ends an `async with` block, the context is closed and its turn given back."""

    async def main():
        for error in (ValueError, asyncio.CancelledError):
            with pytest.raises(error):
                async with await open_async(tmp_path / "agent.db", wait=1, **GIVEN) as context:
                    await context.append_turn("x")
                    raise error
            with pytest.raises(HandlePoisoned):
                await context.render()
        again(tmp_path / "agent.db", wait=0.05).close()

    quiet(main())


def test_open_that_waits_gets_the_turn_when_it_is_free(quiet):
    """The turn is waited for without holding up the loop."""
    storage = EphemeralStorage()

    async def main():
        first = await open_async(storage, wait=1, **GIVEN)
        waiting = asyncio.ensure_future(open_async(storage, wait=30, **GIVEN))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        await first.append_turn("while the other one waits")
        await first.close()
        async with await waiting as second:
            return [message["content"] async for message in second.messages()]

    assert quiet(main()) == ["while the other one waits"]


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "3", True, None])
def test_time_that_is_none_is_refused(wait, quiet):
    """A wait is seconds, from 0, and the error names it."""
    with pytest.raises(InvalidSetting, match="wait"):
        quiet(open_async(EphemeralStorage(), wait=wait, **GIVEN))


def test_iterators_read_in_batches_and_may_be_left(tmp_path, quiet):
    """Pages, messages and lines of more than a batch come whole and in order; who leaves early holds nothing."""

    async def main():
        async with await open_async(tmp_path / "agent.db", **{**GIVEN, "window": 200_000}) as context:
            await context.append_turn(*(f"{number}" for number in range(600)))
            numbers = [int(message["content"]) async for message in context.messages()]
            assert numbers == list(range(600))
            assert [page.index async for page in context.pages()] == list(range(1, 601))
            async for message in context.messages():
                assert message["content"] == "0"
                break
            assert len([line async for line in context.export()]) > 600
            started = context.messages()
            assert (await anext(started))["content"] == "0"
            await context.append_turn("while it is read")
            assert len([each async for each in started]) == 599
            await started.aclose()

    quiet(main())


def test_one_context_serves_many_threads_with_loops_of_their_own(quiet):
    """The context inside may be used by threads beside the loop: calls take turns, none is lost."""
    storage = EphemeralStorage()

    async def main():
        async with await open_async(storage, **GIVEN) as context:
            threads = [
                threading.Thread(target=lambda n=n: [context.context.append_turn(f"t{n} {k}") for k in range(20)])
                for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for number in range(20):
                await context.append_turn(f"a {number}")
            for thread in threads:
                await asyncio.to_thread(thread.join)

    quiet(main())
    assert len(said(storage)) == len(set(said(storage))) == 100
    assert set(where(again(storage)).values()) <= {"active", "open", "archived", "folded", "unloaded"}
    assert json.dumps(again(storage).render())
