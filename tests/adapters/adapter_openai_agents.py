"""The OpenAI Agents SDK keeps memci's promises, and its sessions do what a session does."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import ClassVar

import pytest
from agents import (
    Agent,
    ModelRetrySettings,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    RunState,
    SQLiteSession,
    function_tool,
    handoff,
    set_tracing_disabled,
)
from agents.extensions import handoff_filters
from openai import AsyncOpenAI, InternalServerError

from memci.adapters.openai_agents import Memci
from memci.errors import InvalidSetting
from memci.messages import text_of
from memci.testing.adapters import AdapterConformance, Driver, lookup, played
from memci.testing.adapters.conformance import talk, told
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer, Status
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal

set_tracing_disabled(disabled=True)


class OpenAIAgentsDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")

    def given(self, conversation, text):
        session = self.memci.session(conversation)
        client = AsyncOpenAI(base_url=self.url, api_key="key", max_retries=0)
        model = OpenAIChatCompletionsModel("gpt-4o", client)
        tools = [function_tool(lookup), *session.tools]
        agent = Agent(name="agent", instructions=PROMPT, tools=tools, model=model)
        return (
            agent,
            text,
            {
                "session": session,
                "run_config": session.run_config,
                "hooks": session.hooks,
                "max_turns": 50,
            },
        )

    async def say(self, conversation, text):
        agent, text, more = self.given(conversation, text)
        return (await Runner.run(agent, text, **more)).final_output

    def say_sync(self, conversation, text):
        agent, text, more = self.given(conversation, text)
        return Runner.run_sync(agent, text, **more).final_output

    async def stream(self, conversation, text):
        agent, text, more = self.given(conversation, text)
        result = Runner.run_streamed(agent, text, **more)
        deltas = [
            event.data.delta
            async for event in result.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        assert len(deltas) > 1
        return "".join(deltas)

    async def say_last(self, conversation, text):
        agent, text, more = self.given(conversation, text)
        await Runner.run(agent.clone(tool_use_behavior="stop_on_first_tool"), text, **more)

    def message(self, role, text, *, marked=False):
        return {"role": role, "content": text}

    def kinds(self):
        image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"}
        shot = {"type": "computer_screenshot", "image_url": image["image_url"]}
        return [
            {"role": "user", "content": [{"type": "input_text", "text": "Look."}, image]},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
            {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
            {
                "type": "computer_call",
                "id": "cu_1",
                "call_id": "b",
                "actions": [],
                "status": "completed",
                "pending_safety_checks": [],
            },
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "shot"}, image]},
            {"type": "computer_call_output", "call_id": "b", "output": shot},
            {"role": "assistant", "content": "Done."},
        ]

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.close()


class TestOpenAIAgents(AdapterConformance):
    driver = OpenAIAgentsDriver


@pytest.mark.parametrize("more", [(), ("hooks",)])
def test_a_run_without_its_configuration_is_refused(more, tmp_path):
    """It says what it needs, with the hooks before the model is called."""
    with ModelServer(["Hello."]) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 4_000)
        agent, text, given = driver.given("a", "say hello")
        with pytest.raises(InvalidSetting, match="run_config"):
            Runner.run_sync(agent, text, session=given["session"], **{key: given[key] for key in more})
        assert len(server.requests) == (0 if more else 1)
        driver.close()


class Plain(OpenAIAgentsDriver):
    """The same without memci, for benchmarks.adapters."""

    sessions: ClassVar = {}

    def given(self, conversation, text):
        agent, text, _ = super().given(conversation, text)
        agent.tools = agent.tools[:1]
        return agent, text, {"session": self.sessions.setdefault(self, SQLiteSession(conversation)), "max_turns": 50}


@pytest.fixture
def session(tmp_path):
    memci = Memci(tmp_path / "agent.db", window=4_000)
    yield memci.session("a")
    memci.close()


def test_an_agent_without_the_tools_is_warned_of(tmp_path):
    """What is told of pages that left needs the tools that read them."""
    with ModelServer(["Hello."]) as server:
        driver = OpenAIAgentsDriver(str(tmp_path / "agent.db"), server.base_url, 8_000)
        agent, text, given = driver.given("alice", "Hi")
        agent.tools = [function_tool(lookup)]
        with pytest.warns(UserWarning, match=r"the agent 'agent' can't read .*\*session\.tools"):
            Runner.run_sync(agent, text, **given)
        driver.close()


def say(agent, *runs):
    """Run *agent* with each text and its arguments, and return the last result."""

    async def each():
        return [await Runner.run(agent, text, **given) for text, given in runs][-1]

    return asyncio.run(each())


def called(name, arguments="{}", call_id="c1"):
    return {"tool_calls": [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


def test_an_agent_that_a_tool_calls_keeps_its_own_list(tmp_path):
    """The SDK gives it the configuration of the run, but not its session."""
    answers = [called("ask", '{"input": "And?"}'), "Yes.", "It said yes.", "Fine."]
    with ModelServer(answers) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 4_000)
        agent, text, given = driver.given("alice", "Hi")
        helper = Agent(name="helper", instructions="Help.", model=agent.model)
        agent.tools.append(helper.as_tool("ask", "Asks the helper."))
        say(agent, (text, given), ("Thanks", given))
        told = [text_of(each) for each in driver.told("alice")]
        driver.close()

    assert [each["content"] for each in server.requests[1].messages] == ["Help.", "And?"]
    assert told == ["Hi", "", "Yes.", "It said yes.", "Thanks", "Fine."]


@pytest.mark.parametrize(
    ("how", "is_told"),
    [({}, True), ({"input_filter": handoff_filters.remove_all_tools}, False), ({"nest_handoff_history": True}, True)],
)
def test_a_handoff_stores_nothing_twice(how, is_told, tmp_path):
    """Its filter may leave the call out, and what was said before: that is stored."""
    look = called("lookup", '{"key": "a"}', "c0")
    with ModelServer(["Hello.", look, called("transfer_to_other"), "Here.", "Fine."]) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 4_000)
        agent, text, given = driver.given("alice", "Hi")
        other = agent.clone(name="other", instructions="Another.")
        agent.handoffs = [handoff(other, **how)]
        last = say(agent, (text, given), ("Who?", given), ("Thanks", given)).last_agent
        told = [(each["role"], text_of(each)) for each in driver.told("alice")]
        shown = [each["role"] for each in server.requests[3].messages[1:]]
        driver.close()

    assert last.name == "agent"
    handed = [("assistant", ""), ("tool", '{"assistant": "other"}')] if is_told else []
    before = [("user", "Who?"), ("assistant", ""), ("tool", lookup("a"))]
    asked = [("user", "Hi"), ("assistant", "Hello."), *before, *handed]
    assert told == [*asked, ("assistant", "Here."), ("user", "Thanks"), ("assistant", "Fine.")]
    assert shown == [role for role, _ in asked]


def test_an_agent_serves_every_session(tmp_path):
    """A program makes its agents once: their tools answer in the session of the run."""
    look = called("search_memory", '{"query": "zebra", "since": null, "until": null, "skip": null}')
    with ModelServer([*["Noted."] * 12, look, "Nothing."]) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 2_000)
        agent, _, given = driver.given("alice", "")
        told = [(f"zebra {number} " + "word " * 90, given) for number in range(12)]
        say(agent, *told, ("Where is the zebra?", driver.given("bob", "")[2]))
        assert 'for "zebra"' in server.requests[-1].text
        assert "Noted" not in server.requests[-1].text
        assert "zebra 1" not in server.requests[-1].text
        driver.close()


def test_runs_at_once_store_each_message_once(tmp_path):
    """Each answers its own question, and all stay in one conversation; calls and results stand together."""
    with ModelServer(played) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 8_000)

        async def at_once():
            say = (driver.say("alice", f"step 3 {name}") for name in ("fig", "kiwi", "plum"))
            return await asyncio.gather(*say)

        said = asyncio.run(at_once())
        stored = told(driver, "alice")
        context = driver.context("alice")
        results = [text for role, text, *_ in stored if role == "tool"]
        calls = [call for _, _, *made in stored for call in made]
        assert results == [lookup(given["key"]) for _, given in calls]
        assert context.id == "alice"
        driver.close()
    assert said == [f"Answer to step 3 {name}." for name in ("fig", "kiwi", "plum")]
    assert sorted(map(str, stored)) == sorted(
        str(each) for name in ("fig", "kiwi", "plum") for each in talk(f"step 3 {name}")
    )


def test_a_run_does_not_answer_a_question_that_came_and_was_answered_meanwhile(tmp_path):
    asked, ended = Event(), Event()

    def answer(request):
        if request.messages[-1].get("content") == "step 1 kiwi":
            asked.set()
            assert ended.wait(60)
        return played(request)

    with ModelServer(answer) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 8_000)

        async def meanwhile():
            first = asyncio.create_task(driver.say("alice", "step 1 kiwi"))
            assert await asyncio.to_thread(asked.wait, 60)
            second = await driver.say("alice", "step 1 plum")
            ended.set()
            return await first, second, await driver.say("alice", "step 1 fig")

        said = asyncio.run(meanwhile())
        shown = str(server.requests[-1].messages)
        driver.close()
    assert said == tuple(f"Answer to step 1 {name}." for name in ("kiwi", "plum", "fig"))
    assert said[0] in shown
    assert said[1] in shown


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_approval_after_other_turns_goes_on_in_the_conversation(tmp_path, elsewhere):
    """Also in another process, with the state as JSON: nothing is stored twice, and no turn is lost."""
    answers = ["Hello.", called("lookup", '{"key": "a"}'), "Other.", "It is a.", "Bye."]
    with ModelServer(answers) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 4_000)

        async def talk_on():
            agent, _, given = driver.given("alice", "")
            agent.tools[0].needs_approval = True
            await Runner.run(agent, "Hi", **given)
            held = await Runner.run(agent, "Who?", **given)
            state = held.to_state()
            await Runner.run(agent, "Other?", **given)
            if elsewhere:
                agent, _, given = driver.given("alice", "")
                state = await RunState.from_json(agent, state.to_json())
            state.approve(state.get_interruptions()[0])
            await Runner.run(agent, state, **given)
            await Runner.run(agent, "Thanks", **given)

        asyncio.run(talk_on())
        stored = told(driver, "alice")
        assert driver.context("alice").id == "alice"
        driver.close()
    asked = [("user", "Who?"), ("assistant", "", ("lookup", {"key": "a"})), ("user", "Other?"), ("assistant", "Other.")]
    end = [("tool", lookup("a")), ("assistant", "It is a."), ("user", "Thanks"), ("assistant", "Bye.")]
    assert stored == [("user", "Hi"), ("assistant", "Hello."), *asked, *end]
    assert "late result" in server.requests[3].text


@pytest.mark.parametrize("how", ["say", "stream"])
def test_a_request_that_was_too_long_is_made_again_shorter(tmp_path, how):
    """Within the run, streamed or whole."""

    refused, after = lengths_after_refusal(OpenAIAgentsDriver, tmp_path / "agent.db", how=how)
    assert after < refused


def test_other_errors_go_to_the_policy_of_the_agent(tmp_path):
    """It is asked as often as it allows."""
    asked = []
    with ModelServer(["Hello."]) as server:
        driver = OpenAIAgentsDriver(tmp_path / "agent.db", server.base_url, 4_000)
        agent, text, given = driver.given("alice", "Hi")
        policy = ModelRetrySettings(
            max_retries=2, backoff={"initial_delay": 0}, policy=lambda each: asked.append(each.attempt) or True
        )
        agent.model_settings = ModelSettings(retry=policy)
        for _ in range(3):
            server.fails(Status(500))
        with pytest.raises(InternalServerError):
            Runner.run_sync(agent, text, **given)
        driver.close()
    assert asked == [1, 2]


def test_a_session_gives_back_what_it_was_given(session):
    """Items come back as they were added: the newest of them, or all; they can be taken back one by one."""
    call = {"type": "function_call", "name": "lookup", "arguments": "{}"}
    items = [
        {"role": "user", "content": "hello"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
        },
        {"role": "user", "content": "look"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "E"},
        {**call, "call_id": "one"},
        {**call, "call_id": "two"},
    ]

    async def steps():
        assert await session.get_items() == []
        assert await session.pop_item() is None
        await session.add_items(items[:2])
        await session.add_items(items[2:])
        assert await session.get_items() == items
        assert await session.get_items(2) == items[-2:]
        assert await session.get_items(0) == []
        assert [await session.pop_item() for _ in items] == items[::-1]
        assert await session.get_items() == []
        await session.add_items(items[:2])
        await session.clear_session()
        assert await session.get_items() == []
        await session.add_items(items[:1])
        assert await session.get_items() == items[:1]

    asyncio.run(steps())


OWN = "closed_rejects or connection or corrupt or dictionary or file_lock or post_commit or rolls_back"
OWN += " or uses_session_settings_limit or worker or write_lock"
"""tests of how the SDK's own SQLite session is made inside, and of a limit, which is memci's window here"""


def test_the_sdks_own_tests_of_sessions_pass():
    """Its tests of sessions and of their limits, in every way to run an agent, with memci's session in the place."""
    folder = Path(sys.prefix, "sdk")
    tests = [f"tests/memory/{each}.py" for each in ("test_session", "test_session_limit")]
    plugin = ["-p", "peer_session", "-p", "no:cacheprovider", "-q", "-k", f"not ({OWN})"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-m", "pytest", *plugin, *tests]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) == 50


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("openai_agents_agent.py", tmp_path)
