"""LiteLLM in memci's loop keeps memci's promises; its proxy stands behind the gateway."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # no network

import httpx
import litellm as library
import pytest
from openai import AsyncOpenAI, OpenAI

from memci import Context
from memci.adapters.agent import Agent
from memci.adapters.litellm import litellm
from memci.testing.adapters import AdapterConformance, lookup, played
from memci.testing.adapters.conformance import plainly, talk
from memci.testing.adapters.driver import PROMPT
from memci.testing.llm.server import ModelServer
from memci.tokens import counter_for
from tests.adapters.adapter_clients import ClientDriver, sends_everything
from tests.adapters.examples import run_example
from tests.adapters.providers import Provider

pytestmark = pytest.mark.filterwarnings("ignore")  # the library's own, of each import within a call


class LiteLLMDriver(ClientDriver):
    def given(self):
        return {"model": "openai/gpt-4o", "api_base": self.url, "api_key": "key", "num_retries": 0, "max_retries": 0}

    def agent(self, conversation, kind):
        client = litellm(asynchronous=kind is AsyncOpenAI, **self.given())
        return Agent(client, self.context(conversation), [lookup])


class TestLiteLLM(AdapterConformance):
    driver = LiteLLMDriver


class Plain(LiteLLMDriver):
    """A plain loop that sends everything, for benchmarks.adapters."""

    async def say(self, conversation, text):
        messages = self.contexts.setdefault("list", [{"role": "system", "content": PROMPT}])
        return await sends_everything(partial(library.acompletion, **self.given()), messages, text)

    def close(self):
        """There is nothing to close."""


@pytest.mark.parametrize("routed", [False, True])
def test_other_providers_are_asked_in_their_form(routed, tmp_path):
    """LiteLLM writes the window for Anthropic: parallel calls, a loop of tools within the budget, streams, usage."""
    with Provider(played) as provider, Context.open(tmp_path / "agent.db", "a", system=PROMPT, window=4_000) as context:
        model = {"model": "anthropic/claude-sonnet-4-5", "api_base": provider.url, "api_key": "key"}
        router = library.Router([{"model_name": "any", "litellm_params": model}]) if routed else library
        given = {"model": "any"} if routed else model
        agent = Agent(litellm(router, **given), context, [lookup])
        assert agent.run("look up apple, berry") == "Answer to look up apple, berry."
        assert "".join(agent.stream("look up nut, lime")) == "Answer to look up nut, lime."
        assert agent.run("step 16 date") == "Answer to step 16 date."
        assert provider.problems == []
        assert max(context.count(json.dumps(body)) for body in provider.bodies) < 5_000
        told = [plainly(message) for message in context.messages()]
        asked = ("look up apple, berry", "look up nut, lime", "step 16 date")
        assert told == [each for text in asked for each in talk(text)]
        assert len(context.calls()) == len(provider.bodies) == 21


@contextmanager
def started(command, port, folder):
    """Run *command* until it listens, and kill it at the end."""
    log = Path(folder, f"{port}.log")
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd=folder)
    try:
        for _ in range(600):
            with suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/").status_code:
                    break
            assert process.poll() is None, log.read_text()
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def test_the_proxy_gets_the_window(tmp_path):
    """A client that sends its whole list to the gateway, which stands before LiteLLM's proxy: each request fits."""
    with ModelServer(lambda request: f"You said {len(request.messages)}.") as server:
        params = {"model": "openai/gpt-4o", "api_base": server.base_url, "api_key": "key"}
        key = f"sk-{secrets.token_hex(32)}"
        settings = {"general_settings": {"master_key": key}}
        config = {"model_list": [{"model_name": "gpt-4o", "litellm_params": params}], **settings}
        (tmp_path / "config.yaml").write_text(json.dumps(config))
        ports = free_port(), free_port()
        proxy = [Path(sys.executable).with_name("litellm"), "--config", "config.yaml", "--port", str(ports[0])]
        with started([*proxy, "--host", "127.0.0.1"], ports[0], tmp_path) as url:
            gateway = [sys.executable, "-m", "memci", "serve", "agents.db", "--upstream", url, "--window", "6000"]
            with started([*gateway, "--port", str(ports[1])], ports[1], tmp_path) as gateway_url:
                client = OpenAI(base_url=f"{gateway_url}/v1", api_key=key, max_retries=0)
                told = [{"role": "system", "content": PROMPT}]
                for number in range(14):
                    told.append({"role": "user", "content": f"Say {number}. " + lookup(f"fig{number}") * 2})
                    reply = client.chat.completions.create(model="gpt-4o", messages=told)
                    told.append({"role": "assistant", "content": reply.choices[0].message.content})
        asked = [request.messages for request in server.requests if request.messages]
        assert len(asked) == 14
        assert asked[4] == told[:10]
        assert max(counter_for("gpt-4o")(json.dumps(each)) for each in asked) <= 6_000
        assert counter_for("gpt-4o")(json.dumps(told)) > 7_000
        assert lookup("fig13") in server.requests[-1].text


def test_the_example_runs(tmp_path):
    assert "agent: You asked: And which city did I ask about?" in run_example("litellm_agent.py", tmp_path)
