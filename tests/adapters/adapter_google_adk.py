"""Google ADK keeps memci's promises, with a model behind LiteLLM and with contents of Gemini's."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.lite_llm import LiteLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from memci.adapters.google_adk import MemciPlugin
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from memci.testing.formats import problems
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal

pytestmark = [  # LiteLLM's
    pytest.mark.filterwarnings("ignore:Item .* on TypedDict class:UserWarning"),
    pytest.mark.filterwarnings("ignore:Accessing the .* attribute on the instance:DeprecationWarning"),
]

USER = "ann@example.com"


def runner_of(plugin, agent):
    app = App(name="app", root_agent=agent, plugins=[plugin] if plugin is not None else [])
    return Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)


def said(text):
    return types.Content(role="user", parts=[types.Part(text=text)])


class GoogleADKDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = MemciPlugin(store, window=window, model="gpt-4o")
        model = LiteLlm("openai/gpt-4o", api_base=url, api_key="key", max_retries=0)
        self.runner = runner_of(self.memci, LlmAgent(name="agent", model=model, instruction=PROMPT, tools=[lookup]))

    def given(self, conversation, text, mode=StreamingMode.NONE):
        config = RunConfig(streaming_mode=mode)
        return {"user_id": USER, "session_id": conversation, "new_message": said(text), "run_config": config}

    async def say(self, conversation, text):
        events = [event async for event in self.runner.run_async(**self.given(conversation, text))]
        return events[-1].content.parts[-1].text

    def say_sync(self, conversation, text):
        events = [*self.runner.run(**self.given(conversation, text))]
        return events[-1].content.parts[-1].text

    async def stream(self, conversation, text):
        given = self.given(conversation, text, StreamingMode.SSE)
        events = [event async for event in self.runner.run_async(**given)]
        assert len([event for event in events if event.partial]) > 3
        return events[-1].content.parts[-1].text

    async def say_last(self, conversation, text):
        def last(key: str, tool_context: ToolContext) -> str:
            """Look up the key."""
            tool_context.actions.skip_summarization = True
            return lookup(key)

        last.__name__ = "lookup"
        runner = runner_of(self.memci, self.runner.agent.clone({"tools": [last]}))
        [event async for event in runner.run_async(**self.given(conversation, text))]

    def message(self, role, text, *, marked=False):
        return types.Content(role="user" if role == "user" else "model", parts=[types.Part(text=text)])

    def kinds(self):
        image = types.Part(inline_data=types.Blob(data=b"\xff\xfe\xfb" * 20, mime_type="image/png"))
        call = types.Part(function_call=types.FunctionCall(name="look", args={"n": 1}), thought_signature=b"\xff\x00")
        result = types.FunctionResponse(name="look", response={"n": [1]})
        return [
            types.Content(role="user", parts=[types.Part(text="Look."), image]),
            types.Content(role="model", parts=[types.Part(text="Hm.", thought=True), types.Part(text="Yes."), call]),
            types.Content(role="user", parts=[types.Part(function_response=result)]),
            types.Content(role="model", parts=[types.Part(text="Done."), image]),
        ]

    def same(self, message):
        return message.model_dump(mode="json", exclude_none=True)

    def context(self, conversation):
        return self.memci.conversations.context(self.memci.conversation(conversation, user_id=USER))

    def close(self):
        self.memci.conversations.close()


class TestGoogleADK(AdapterConformance):
    driver = GoogleADKDriver


class Plain(GoogleADKDriver):
    """The same without memci, for benchmarks.adapters."""

    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.runner = runner_of(None, self.runner.agent)


class Scripted(BaseLlm):
    """A model of Gemini's, which gives no ids to its calls, signs them, and thinks."""

    requests: list

    async def generate_content_async(self, llm_request, stream=False):
        asked = llm_request.model_dump(mode="json", by_alias=True, exclude_none=True, include={"contents", "config"})
        self.requests.append(asked)
        thought = types.Part(text="I think.", thought=True)
        last = llm_request.contents[-1].parts[-1]
        if last.text == "think":
            parts = [thought]
        elif last.text and last.text.startswith("look"):
            calls = [types.FunctionCall(name="lookup", args={"key": key}) for key in last.text.split()[1:]]
            parts = [thought, *(types.Part(function_call=call) for call in calls)]
            parts[1].thought_signature = b"\xff\x00signed"
        else:
            parts = [types.Part(text=f"Answer to {last.text}.")]
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=100, candidates_token_count=10)
        yield LlmResponse(content=types.Content(role="model", parts=parts), usage_metadata=usage)


@pytest.fixture
def gemini(tmp_path):
    """Give what runs a scripted Gemini: its plugin, its model, and what says something to it."""
    memci, model = MemciPlugin(tmp_path / "agent.db", window=4_000), Scripted(model="scripted", requests=[])
    runner = runner_of(memci, LlmAgent(name="agent", model=model, instruction=PROMPT, tools=[lookup]))

    def say(text, user="ann"):
        return [*runner.run(user_id=user, session_id="a", new_message=said(text))]

    yield memci, model, say
    memci.conversations.close()


def test_geminis_calls_keep_their_signatures(gemini):
    """Contents of Gemini's are asked as it wants them, within the budget, thoughts and signatures as they came."""
    memci, model, say = gemini
    for number in range(8):
        say(f"look kiwi{number} plum{number}")
    context = memci.conversations.context("ann/a")
    assert context.id == "ann/a"
    assert context.report().pages["archived"]
    for asked in model.requests:
        config = asked["config"]
        assert problems("gemini", {"contents": asked["contents"], "config": {"tools": config["tools"]}}) == []
        assert config["systemInstruction"].startswith(PROMPT)
    thought, *calls = model.requests[-1]["contents"][-2]["parts"]
    assert thought == {"text": "I think.", "thought": True}
    assert [call.get("thoughtSignature") for call in calls] == ["_wBzaWduZWQ=", None]
    assert len(context.calls()) == len(model.requests) == 16


def test_what_adk_does_not_send_again_is_no_edit(gemini):
    """A reply of thoughts only leaves the list of ADK, and the conversation goes on where it was."""
    memci, _, say = gemini
    for text in ("hello", "think", "look kiwi", "on"):
        say(text)
    assert memci.conversations.context("ann/a").id == "ann/a"
    assert [text for text in ("hello", "think", "on") if text not in str(memci.conversations.messages("ann/a"))] == []


def test_sessions_of_two_users_do_not_mix(gemini):
    """Two users may name their sessions alike."""
    memci, model, say = gemini
    say("the password is zebra", "ann")
    say("hello", "bob/a")
    assert "zebra" not in str(model.requests[-1])
    assert memci.conversation("a", user_id="bob/a") == "bob%2Fa/a"


def test_an_agent_below_has_a_list_of_its_own(tmp_path):
    """Who is handed the conversation sees what ADK shows it, beside the list of the root."""
    memci = MemciPlugin(tmp_path / "agent.db", window=4_000)

    class Root(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            call = types.FunctionCall(name="transfer_to_agent", args={"agent_name": "writer"})
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(function_call=call)]))

    writer = LlmAgent(name="writer", model=Scripted(model="scripted", requests=[]), description="Writes.")
    runner = runner_of(memci, LlmAgent(name="root", model=Root(model="root"), sub_agents=[writer]))
    for text in ("hello", "on"):
        (*_, last) = runner.run(user_id="ann", session_id="a", new_message=said(text))
        assert last.content.parts[0].text.startswith("Answer to")
    assert [memci.conversations.context(name).id for name in ("ann/a", "ann/a/writer")] == ["ann/a", "ann/a/writer"]
    assert "hello" in str(memci.conversations.messages("ann/a/writer"))
    memci.conversations.close()


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(GoogleADKDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("google_adk_agent.py", tmp_path)
