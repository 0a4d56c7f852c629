"""Pydantic AI keeps memci's promises, with and without a history of its own."""

import asyncio

from pydantic_ai import Agent, ToolOutput
from pydantic_ai import messages as parts
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from memci.adapters.pydantic_ai import Memci
from memci.messages import text_of
from memci.testing.adapters import AdapterConformance, Driver, lookup
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer
from tests.adapters.examples import run_example
from tests.adapters.overflow import lengths_after_refusal


class PydanticAIDriver(Driver):
    def __init__(self, store, url, window):
        super().__init__(store, url, window)
        self.memci = Memci(store, window=window, model="gpt-4o")
        self.histories = {}

    def agent(self):
        provider = OpenAIProvider(base_url=self.url, api_key="key")
        model = OpenAIChatModel("gpt-4o", provider=provider)
        return Agent(model, capabilities=self.capabilities(), tools=[lookup], **self.prompt())

    def capabilities(self):
        return [self.memci]

    def prompt(self):
        return {"instructions": PROMPT}

    def given(self, conversation):
        return {"conversation_id": conversation}

    def ended(self, conversation, result):
        return result.output

    async def say(self, conversation, text):
        return self.ended(conversation, await self.agent().run(text, **self.given(conversation)))

    def say_sync(self, conversation, text):
        return self.ended(conversation, self.agent().run_sync(text, **self.given(conversation)))

    async def stream(self, conversation, text):
        async with self.agent().run_stream(text, **self.given(conversation)) as result:
            parts = [part async for part in result.stream_text(delta=True, debounce_by=None)]
        assert len(parts) > 1
        return "".join(parts)

    async def say_last(self, conversation, text):
        provider = OpenAIProvider(base_url=self.url, api_key="key")
        given = {"output_type": ToolOutput(lookup, name="lookup"), **self.prompt()}
        agent = Agent(OpenAIChatModel("gpt-4o", provider=provider), capabilities=self.capabilities(), **given)
        self.ended(conversation, await agent.run(text, **self.given(conversation)))

    def message(self, role, text, *, marked=False):
        if role == "user":
            return parts.ModelRequest([parts.UserPromptPart([text, *([parts.CachePoint()] if marked else [])])])
        return parts.ModelResponse([parts.TextPart(text)])

    def kinds(self):
        image, pdf = (
            parts.BinaryContent(b"\xff\xfe\xfb" * 20, media_type=each) for each in ("image/png", "application/pdf")
        )
        links = [
            parts.ImageUrl("https://x.test/a.png", vendor_metadata={"detail": "low"}),
            parts.DocumentUrl("https://x.test/a.pdf"),
        ]
        links += [parts.AudioUrl("https://x.test/a.wav"), parts.VideoUrl("https://x.test/a.mp4")]
        signed = {"signature": "SIG", "provider_name": "anthropic"}
        native = {"tool_call_id": "n", "provider_name": "openai"}
        results = [["one", image], image, {"n": [1]}]
        return [
            parts.ModelRequest([parts.UserPromptPart(["Look.", parts.CachePoint(), image, pdf, *links])]),
            parts.ModelResponse(
                [parts.ThinkingPart("Hm.", id="rs_1", **signed), parts.TextPart("Yes."), *self.calls(5)]
            ),
            *[
                parts.ModelRequest([parts.ToolReturnPart("look", each, tool_call_id=f"c{at}")])
                for at, each in enumerate(results)
            ],
            parts.ModelRequest([parts.ToolReturnPart("look", "no", tool_call_id="c3", outcome="denied")]),
            parts.ModelRequest([parts.ToolReturnPart("look", "late", tool_call_id="c4", outcome="failed")]),
            parts.ModelResponse(
                [
                    parts.NativeToolCallPart("web_search", {"query": "x"}, **native),
                    parts.NativeToolReturnPart("web_search", {"found": [1]}, **native),
                    parts.TextPart("It is "),
                    parts.TextPart("7.", id="msg_1"),
                    parts.FilePart(image),
                ]
            ),
        ]

    def calls(self, count):
        return [parts.ToolCallPart("look", {"key": "a" * 20}, tool_call_id=f"c{at}") for at in range(count)]

    def same(self, message):
        (found,) = parts.ModelMessagesTypeAdapter.dump_python([message], mode="json")
        left = {"timestamp", "content_file_digests", "args"}
        plain = {"n": [1]}, '{"n":[1]}'  # a result without media is sent as text
        return [
            {key: str(plain) if each in plain else each for key, each in part.items() if key not in left}
            for part in found["parts"]
        ]

    def context(self, conversation):
        return self.memci.conversations.context(conversation)

    def close(self):
        self.memci.conversations.close()


class TestPydanticAI(AdapterConformance):
    driver = PydanticAIDriver


class KeepsItsHistory(PydanticAIDriver):
    """The program keeps the messages, and the prompt stands in the first of them."""

    def prompt(self):
        return {"system_prompt": PROMPT}

    def given(self, conversation):
        return {"conversation_id": conversation, "message_history": self.histories.get(conversation)}

    def ended(self, conversation, result):
        self.histories[conversation] = result.all_messages()
        return result.output


class TestPydanticAIHistory(AdapterConformance):
    driver = KeepsItsHistory


class Plain(KeepsItsHistory):
    """The same without memci, for benchmarks.adapters."""

    def capabilities(self):
        return []


def test_what_a_program_stopped_to_read_is_not_stored(tmp_path):
    """Pydantic AI does not keep it either."""
    with ModelServer(lambda request: f"It is {request.text}") as server:
        driver = PydanticAIDriver(tmp_path / "agent.db", server.base_url, 4_000)

        async def run():
            async with driver.agent().run_stream("One?", **driver.given("a")) as result:
                async for _ in result.stream_text(debounce_by=None):
                    break
            await driver.say("a", "Two?")

        asyncio.run(run())
        told = [text_of(each) for each in driver.told("a")]
        driver.close()
    assert told == ["One?", "Two?", "It is Two?"]


def test_a_request_that_is_too_long_becomes_shorter(tmp_path):
    refused, next_one = lengths_after_refusal(PydanticAIDriver, tmp_path / "agent.db")
    assert next_one < refused


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("pydantic_ai_agent.py", tmp_path)
