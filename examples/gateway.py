"""A client of OpenAI's library behind the gateway: its window is kept, and its code does not change.

    pip install 'memci[serve,llm]'
    python examples/gateway.py

The provider is a server on this machine with scripted answers, so it needs no key and no network. With a real one,
`memci serve agents.db --upstream https://api.openai.com` is all that runs, and the client's base URL all that changes.
"""

import socket
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from openai import OpenAI

from memci.serve.gateway import app
from memci.testing.llm import ModelServer
from memci.testing.llm.server import Answer, Request


def answer(request: Request) -> Answer:
    """Answer as a model would that reads page 3 again when it is asked for it."""
    last = request.messages[-1]
    if last["role"] == "tool":
        return "You asked for the price of line 3." if "line 3" in last["content"] else "I can't find it."
    if "third" in last["content"] and "tools" in request.body:
        function = {"name": "recall_page", "arguments": '{"index": 3}'}
        return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}
    return "It is on the list."


with (
    ModelServer(answer) as provider,
    tempfile.TemporaryDirectory() as folder,
    socket.socket(proto=socket.IPPROTO_TCP) as listening,
):
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    gateway = app(Path(folder) / "agents.db", upstream=provider.base_url, window=4_000)
    server = uvicorn.Server(uvicorn.Config(gateway, log_level="warning", ws="none"))
    serving = Thread(target=server.run, args=([listening],))
    serving.start()

    client = OpenAI(base_url=f"http://127.0.0.1:{listening.getsockname()[1]}/v1", api_key="none")
    messages: list[Any] = [{"role": "system", "content": "You know the prices of a tram company."}]
    for number in [*range(1, 31), "third"]:
        text = "What was my third question?" if number == "third" else f"What is the price of line {number}? " * 20
        messages.append({"role": "user", "content": text})
        reply = client.chat.completions.create(model="gpt-4o", messages=messages)
        messages.append({"role": "assistant", "content": reply.choices[0].message.content})

    print("the client sends", len(messages) - 1, "messages, the provider got", len(provider.requests[-1].messages))
    print("the model:", messages[-1]["content"])
    client.close()
    server.should_exit = True
    serving.join()
