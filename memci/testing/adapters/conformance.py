"""The conformance tests of adapters, to inherit.

    class TestLangChain(AdapterConformance):
        driver = LangChainDriver

Each test runs the real framework against a model's server on this machine. The driver lists in `lacks` what a framework
can't do; such a check is skipped with the reason.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ...messages import Message, text_of, tool_calls
from ..formats import problems
from ..llm.server import ModelServer
from .driver import PROMPT, Driver, lookup

WINDOW = 4_000  # tokens: small, so that pages leave within a few turns
_OF_LISTS = {
    "messages_of_every_kind_are_read_as_they_were",
    "two_workers_take_turns",
    "an_edited_beginning_is_shown_as_it_is",
}
"""checks of what adapters do with a framework's list"""
Start = Callable[[], Driver]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


class AdapterConformance:
    """The promises of an adapter."""

    driver: ClassVar[type[Driver]]

    @pytest.fixture(autouse=True)
    def _able(self, request: pytest.FixtureRequest) -> None:
        """Skip a check that the framework can't pass, with the reason."""
        check = request.function.__name__.removeprefix("test_")
        reason = self.driver.lacks.get(check)
        if check in _OF_LISTS and self.driver.message is Driver.message:
            reason = "the program keeps no list: memci has the conversation"
        if reason:
            pytest.skip(reason)

    @pytest.fixture
    def server(self) -> Iterator[ModelServer]:
        """Give the model's server."""
        with ModelServer(self.driver.play) as server:
            yield server

    @pytest.fixture
    def run(self) -> Iterator[Run]:
        """Give a function that runs coroutines, all of them in one event loop."""
        with asyncio.Runner() as runner:
            yield runner.run

    @pytest.fixture
    def start(self, server: ModelServer, tmp_path: Path) -> Iterator[Start]:
        """Give a function that starts the framework again, on the same store each time."""
        started: list[Driver] = []

        def start() -> Driver:
            if started:
                started[-1].close()
            started.append(self.driver(tmp_path / "agent.db", server.base_url, WINDOW))
            return started[-1]

        yield start
        if started:
            started[-1].close()

    def test_every_message_is_stored_exactly(self, start: Start, run: Run) -> None:
        """The context holds all messages in order: each text, each call with its arguments, each result."""
        driver = start()
        for text in ("say hello", "look up kiwi, plum", "step 3 fig"):
            run(driver.say("a", text))
        assert told(driver, "a") == [*talk("say hello"), *talk("look up kiwi, plum"), *talk("step 3 fig")]
        assert driver.context("a").verify() == []

    def test_blocking_calls_do_the_same(self, start: Start) -> None:
        """The framework's blocking calls store and show the same."""
        driver = start()
        assert driver.say_sync("a", "look up kiwi, plum") == "Answer to look up kiwi, plum."
        assert told(driver, "a") == talk("look up kiwi, plum")

    def test_streamed_answers_are_stored(self, start: Start, run: Run) -> None:
        """Streamed text and streamed parallel calls are stored like others."""
        driver = start()
        assert run(driver.stream("a", "look up kiwi, plum")) == "Answer to look up kiwi, plum."
        assert told(driver, "a") == talk("look up kiwi, plum")

    def test_the_system_prompt_leads(self, start: Start, run: Run, server: ModelServer) -> None:
        """The framework's prompt comes first, then memci's notice, once; memci's tools are offered."""
        run(start().say("a", "say hello"))
        body = server.requests[-1].body
        system = text_of(body["messages"][0])
        assert system.startswith(PROMPT)
        assert system.count("search_memory(") == 1
        names = sorted(tool["function"]["name"] for tool in body["tools"])
        assert [name for name in names if name not in self.driver.has] == ["lookup", "recall_page", "search_memory"]

    def test_requests_fit_the_budget(self, start: Start, run: Run, server: ModelServer) -> None:
        """Over many turns each request is within the budget, has whole groups, and pages were archived."""
        driver = start()
        for number in range(10):
            run(driver.say("a", f"look up kiwi{number}, plum{number}"))
        self._check(driver, server)
        assert driver.context("a").report().pages["archived"]

    def test_a_loop_of_tools_fits_the_budget(self, start: Start, run: Run, server: ModelServer) -> None:
        """Within one run of many calls the request is rewritten before each call of the model."""
        driver = start()
        assert run(driver.say("a", "step 24 fig")) == "Answer to step 24 fig."
        self._check(driver, server)
        assert told(driver, "a") == talk("step 24 fig")

    def test_a_restart_goes_on(self, start: Start, run: Run, server: ModelServer) -> None:
        """A new process on the same store continues the same context, and the model sees the earlier messages."""
        driver = start()
        run(driver.say("a", "say the password is zebra"))
        before = driver.context("a").id
        driver = start()
        run(driver.say("a", "say it again"))
        assert "the password is zebra" in json.dumps(server.requests[-1].body["messages"])
        assert driver.context("a").id == before
        assert told(driver, "a") == [*talk("say the password is zebra"), *talk("say it again")]

    def test_conversations_do_not_mix(self, start: Start, run: Run, server: ModelServer) -> None:
        """Two conversations of one agent at once: neither sees the other's texts."""
        driver = start()

        async def both() -> None:
            for number in range(3):
                await asyncio.gather(
                    driver.say("a", f"look up apple{number}"), driver.say("b", f"look up berry{number}")
                )

        run(both())
        for name, own in (("a", "apple"), ("b", "berry")):
            assert told(driver, name) == [each for number in range(3) for each in talk(f"look up {own}{number}")]
        assert not [each for each in server.requests if "apple" in str(each.body) and "berry" in str(each.body)]

    def test_a_page_is_recalled(self, start: Start, run: Run, server: ModelServer) -> None:
        """The model gets an archived page word for word."""
        driver = start()
        for number in range(10):
            run(driver.say("a", f"look up kiwi{number}, plum{number}"))
        run(driver.say("a", "recall 3"))
        answer = text_of(server.requests[-1].messages[-1])
        assert "look up kiwi2, plum2" in answer
        assert lookup("kiwi2")[:200] in answer

    def test_the_memory_is_searched(self, start: Start, run: Run, server: ModelServer) -> None:
        """The model finds messages that have left the window."""
        driver = start()
        for text in ("say hello", "say the password is zebra"):
            run(driver.say("a", text))
        for number in range(10):
            run(driver.say("a", f"look up kiwi{number}, plum{number}"))
        driver.context("a").flush()
        run(driver.say("a", "search password"))
        assert "the password is zebra" in text_of(server.requests[-1].messages[-1])

    def test_usage_is_kept(self, start: Start, run: Run, server: ModelServer) -> None:
        """Each call of the model has its row, with the tokens that the provider reported."""
        driver = start()
        run(driver.say("a", "look up kiwi, plum"))
        calls = driver.context("a").calls()
        assert len(calls) == len(server.requests) == 2
        assert all(call.input > 0 and call.output > 0 for call in calls)

    def test_a_cancelled_run_leaves_no_half(self, start: Start, run: Run, server: ModelServer) -> None:
        """A run that is cancelled while the model answers is followed by another one."""
        driver = start()
        run(driver.say("a", "say hello"))
        hang = server.hangs()

        async def cancelled() -> None:
            running = asyncio.ensure_future(driver.say("a", "say nothing"))
            await asyncio.to_thread(hang.reached.wait)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        run(cancelled())
        hang.release()
        assert run(driver.say("a", "look up kiwi, plum")) == "Answer to look up kiwi, plum."
        assert told(driver, "a")[-5:] == talk("look up kiwi, plum")
        assert driver.context("a").verify() == []
        self._check(driver, server)

    def test_messages_of_every_kind_are_read_as_they_were(self, start: Start) -> None:
        """Media of users and of tools, thoughts with who signed them, marks: after a restart they are the same."""
        driver = start()
        kinds = driver.kinds()
        driver.conversations("a").add("a", kinds)
        driver = start()
        assert [*map(driver.same, driver.conversations("a").messages("a"))] == [*map(driver.same, kinds)]
        assert driver.context("a").verify() == []

    def test_the_end_of_a_run_is_stored(self, start: Start, run: Run, server: ModelServer) -> None:
        """What a tool returned at the end of a run is there in the next one, also in a new process."""
        run(start().say_last("a", "look up kiwi"))
        run(start().say("a", "say it again"))
        assert "look up kiwi" in str(server.requests[-1].body)
        assert "no result" not in str(server.requests[-1].body)

    def test_two_workers_take_turns(self, start: Start, server: ModelServer) -> None:
        """Both follow what the other one stored; a mark of the cache that moves is no other message."""
        first = start()
        workers = [first, self.driver(first.store, server.base_url, WINDOW)]
        told: list[Any] = []
        for number in range(5):
            asked = [*told, workers[0].message("user", f"question {number}", marked=True)]
            view = workers[number % 2].conversations("a").view("a", asked)
            assert [*map(workers[0].same, view.messages)] == [*map(workers[0].same, asked)]
            told += [workers[0].message(*each) for each in (("user", f"question {number}"), ("assistant", "Yes."))]
            workers[number % 2].conversations("a").add("a", told)
        assert len([*workers[0].conversations("a").messages("a")]) == len(told)
        workers[1].close()

    def test_an_edited_beginning_is_shown_as_it_is(self, start: Start) -> None:
        """The list is a fork: what was edited is not shown, nor twice."""
        driver = start()
        told = [driver.message(*each) for each in (("user", "My code is 4711."), ("assistant", "Noted."))]
        told += [driver.message(*each) for each in (("user", "And now?"), ("assistant", "Noon."))]
        driver.conversations("a").add("a", told)
        edited = [driver.message("user", "My code is secret."), *told[1:], driver.message("user", "Go on.")]
        shown = driver.conversations("a").view("a", edited).messages
        assert [*map(driver.same, shown)] == [*map(driver.same, edited)]

    def _check(self, driver: Driver, server: ModelServer) -> None:
        """Check that a provider accepts every request, and that each is within the budget."""
        context = driver.context("a")
        for request in server.requests:
            sent = {key: value for key, value in request.body.items() if key in {"messages", "tools", "model"}}
            assert problems("openai_chat", sent) == []
            texts = [
                f"{text_of(each)}{each.get('tool_calls') or ''}" for each in sent["messages"]
            ]  # not the frame of JSON
            assert sum(map(context.count, texts)) <= context.window


def told(driver: Driver, conversation: str) -> list[tuple[Any, ...]]:
    """Return the messages of *conversation* as plain tuples."""
    return [plainly(message) for message in driver.told(conversation)]


def plainly(message: Message) -> tuple[Any, ...]:
    """Return *message* as its role, its text, and the calls with their arguments."""
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in tool_calls(message)]
    return message["role"], text_of(message), *calls


def talk(text: str) -> list[tuple[Any, ...]]:
    """Return the messages of a turn in which the user asks *text*."""
    command, rest = text.split(" ", 1)
    said: list[tuple[Any, ...]] = [("user", text)]
    if command == "look":
        keys = rest.removeprefix("up ").split(", ")
        said.append(("assistant", "", *(("lookup", {"key": key}) for key in keys)))
        said += [("tool", lookup(key)) for key in keys]
    elif command == "step":
        many, name = rest.split()
        for number in range(1, int(many) + 1):
            said += [("assistant", "", ("lookup", {"key": f"{name}{number}"})), ("tool", lookup(f"{name}{number}"))]
    return [*said, ("assistant", f"Answer to {text}.")]
