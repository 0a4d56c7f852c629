"""The MCP server, asked by the real client: in this process, over standard input, and over HTTP."""

import asyncio
import http.client
import json
import os
import socket
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from runpy import run_path
from signal import SIGTERM
from subprocess import PIPE, Popen
from threading import Thread

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from memci import Context, SQLiteStorage
from memci.errors import InvalidSetting
from memci.serve.mcp_server import ERROR, http_app, page_server
from memci.serve.store_tools import StoreTools

TOKEN = "a token for these tests"
READING = {"recall_page", "search_memory", "contents", "list_contexts"}


@pytest.fixture
def path(tmp_path):
    """A store with contexts of two owners."""
    with closing(SQLiteStorage(tmp_path / "agent.db")) as storage:
        with Context.open(storage, "trip to Oslo/1", owner="ada", window=2_000) as context:
            for number in range(12):
                answer = {"role": "assistant", "content": f"Take IC {number}. " * 8}
                context.append_turn(f"Which train goes to stop {number}?", answer, at="2026-03-02")
        with Context.open(storage, "bob", window=2_000) as context:
            context.append_turn("My bicycle is green.")
    return tmp_path / "agent.db"


@contextmanager
def served(path, **scope):
    """The server of the store at *path*."""
    with closing(StoreTools(lambda: SQLiteStorage(path), **scope)) as tools:
        yield page_server(tools, version="1")


async def asked(client):
    """Ask for everything once, and return the structured answers by tool."""
    arguments = {
        "list_contexts": {},
        "contents": {"limit": 3},
        "recall_page": {"page": 4},
        "search_memory": {"query": "Which train goes to stop 3?"},
        "append_turn": {"op_id": "1", "messages": [{"role": "user", "content": "And back?"}]},
    }
    answers = {name: await client.call_tool(name, given) for name, given in arguments.items()}
    assert not [answer for answer in answers.values() if answer.is_error]
    for answer in answers.values():
        assert json.loads(answer.content[0].text) == answer.structured_content
    return {name: answer.structured_content for name, answer in answers.items()}


def check(answers):
    """Check what `asked` got."""
    name = "trip to Oslo/1"
    line = {"context": name, "owner": "ada", "title": "Which train goes to stop 0?", "date": "2026-03-02"}
    assert answers["list_contexts"]["contexts"] == [{**line, "pages": 12, "messages": 24}]
    assert [each["page"] for each in answers["contents"]["pages"]] == [10, 11, 12]
    assert [each["text"] for each in answers["recall_page"]["messages"]] == [
        "Which train goes to stop 3?",
        "Take IC 3. " * 8,
    ]
    assert answers["search_memory"]["messages"][0]["uri"] == "memci://trip%20to%20Oslo%2F1/pages/4"
    assert answers["append_turn"] == {
        "context": name, "page": 13, "first_entry": 1, "messages": 1, "duplicate": False
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_every_tool_has_structured_results_and_schemas(path, mode):
    """Each tool describes its arguments and its result, and what it returns is that: the client checks it."""

    async def talk(server):
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            return tools, await asked(client)

    with served(path, owner="ada") as server:
        tools, answers = asyncio.run(talk(server))

    check(answers)
    assert {each.name for each in tools if each.annotations.read_only_hint} == READING
    assert {each.name for each in tools} == READING | {"append_turn"}
    for tool in tools:
        assert tool.description
        assert tool.output_schema["properties"]
        assert [name for name, each in tool.input_schema["properties"].items() if "description" not in each] == []


def test_an_error_is_an_answer_that_says_what_to_do(path):
    """Its name, its message, whether to repeat it; wrong arguments are named; the server goes on."""

    async def talk(server):
        async with Client(server) as client:
            return [
                await client.call_tool(name, arguments)
                for name, arguments in (
                    ("recall_page", {"page": 99}),
                    ("recall_page", {"page": 1, "context": "bob"}),
                    ("append_turn", {"op_id": "1", "messages": [{"role": "nobody", "content": "Hi."}]}),
                    ("search_memory", {"query": "train", "since": "no day at all"}),
                    ("recall_page", {"page": "many"}),
                )
            ]

    with served(path, owner="ada") as server:
        *typed, wrong = asyncio.run(talk(server))

    assert [(each.is_error, each.meta[ERROR]["error"]) for each in typed] == [
        (True, "PageNotFound"),
        (True, "InvalidSetting"),
        (True, "InvalidMessage"),
        (True, "InvalidSetting"),
    ]
    assert typed[0].meta[ERROR]["message"] == "no page 99: pages are #1 to #12"
    assert typed[0].meta[ERROR]["retryable"] is False
    assert all(each.structured_content is None for each in typed)
    assert "list_contexts" in typed[1].content[0].text
    assert wrong.is_error
    assert "page" in wrong.content[0].text


def test_pages_are_resources(path):
    """The contents of each context are listed, pages are read by their address, and a wrong address says why."""

    async def talk(server):
        async with Client(server) as client:
            listed = (await client.list_resources()).resources
            templates = (await client.list_resource_templates()).resource_templates
            contents = (await client.read_resource(str(listed[0].uri))).contents[0]
            first = json.loads(contents.text)["pages"][0]
            text = (await client.read_resource(first["uri"])).contents[0].text
            errors = []
            for uri in ("memci://bob/pages/1", "memci://trip%20to%20Oslo%2F1/pages/99", "memci://x/pages/y"):
                with pytest.raises(MCPError) as raised:
                    await client.read_resource(uri)
                errors.append(str(raised.value))
            return [str(each.uri) for each in listed], {each.uri_template for each in templates}, text, errors

    with served(path, owner="ada") as server:
        listed, templates, text, errors = asyncio.run(talk(server))

    assert listed == ["memci://trip%20to%20Oslo%2F1/contents"]
    assert templates == {"memci://{context}/pages/{page}", "memci://{context}/contents"}
    assert text.startswith("page #1\ncontext: trip to Oslo/1\n")
    assert "Which train goes to stop 0?" in text
    assert ["no context 'bob'" in errors[0], "#1 to #12" in errors[1], "no context 'x'" in errors[2]] == [True] * 3


def test_a_server_that_only_reads_offers_no_append(path):
    """The tool is not there, and calling it all the same is an error."""

    async def talk(server):
        async with Client(server) as client:
            return {each.name for each in (await client.list_tools()).tools}

    with served(path, read_only=True) as server:
        assert asyncio.run(talk(server)) == READING


@pytest.fixture
def port(path):
    """Serve the store over HTTP, and return the port."""
    with served(path, owner="ada") as server, socket.create_server(("127.0.0.1", 0)) as listening:
        settings = {"log_level": "critical", "access_log": False, "ws": "none", "timeout_keep_alive": 75}
        config = uvicorn.Config(http_app(server, token=TOKEN), **settings)
        running = uvicorn.Server(config)
        thread = Thread(target=running.run, args=([listening],))
        thread.start()
        yield listening.getsockname()[1]
        running.should_exit = True
        thread.join()


def test_the_command_serves_over_http(path):
    """It prints its address and a new token; the real client gets the same answers over HTTP."""
    command = [sys.executable, "-m", "memci", "mcp", str(path), "--owner", "ada", "--http", "0"]

    async def talk(url, token):
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as web,
            Client(streamable_http_client(url, http_client=web)) as client,
        ):
            return await asked(client)

    with Popen(command, stderr=PIPE, text=True, env=without_token()) as server:
        url, token = (server.stderr.readline().split()[-1] for _ in range(2))
        answers = asyncio.run(talk(url, token))
        server.terminate()

    check(answers)
    assert server.returncode == 128 + SIGTERM
    assert url.startswith("http://127.0.0.1:")


def without_token():
    """The environment of a command that makes its token."""
    return {name: value for name, value in os.environ.items() if name != "MEMCI_TOKEN"}


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 200),
        ({"authorization": ""}, 401),
        ({"authorization": "Bearer another token"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"host": "attacker.example"}, 421),
        ({"origin": "http://attacker.example"}, 403),
    ],
)
@pytest.mark.parametrize("modern", [True, False])
def test_only_this_machine_with_the_token_is_served(port, changed, status, modern):
    """No token, another one, a name that leads here from elsewhere, a page of another site: all are refused."""
    method = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
    method["params"] = {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}
    }  # fmt: skip
    headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    headers["accept"] = "application/json, text/event-stream"
    if modern:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        method = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", "/mcp", json.dumps(method), headers | changed)
        answer = connection.getresponse()
        body = answer.read()

    assert answer.status == status, body
    assert (b"result" in body) == (status == 200)


def test_a_short_token_and_a_taken_port_are_refused(path, command):
    """Both are named before anything is served."""
    with served(path) as server, pytest.raises(InvalidSetting, match="at least 16 characters"):
        http_app(server, token="short")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = command("mcp", path, "--http", taken.getsockname()[1])

    assert result.exit_code == 2
    assert "can't be opened on port" in result.stderr


def test_wrong_options_are_one_line(command, path, tmp_path):
    """A store that is not there, and options that do not fit together, end the command with 2."""
    assert command("mcp", tmp_path / "none.db").exit_code == 2
    assert command("mcp", path, "--read-only", "--window", 2_000).exit_code == 2
    assert command("mcp", path, "--http", 0, "--token", "short").exit_code == 2


def test_lines_that_cannot_be_read_are_answered_over_standard_input(path):
    """No JSON, half of a surrogate pair, endless lists: each is an error with its id, and the next is served."""
    asked = '{"jsonrpc": "2.0", "id": %s, "method": "tools/call", "params": {"name": "%s", "arguments": %s}}'
    begin = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin}),
        "no JSON",
        asked % (1, "search_memory", '{"query": "\\ud800"}'),
        asked % ('"two"', "append_turn", "[" * 3_000 + "]" * 3_000),
        asked % (3, "recall_page", '{"page": 1e400}'),
        asked % (4, "recall_page", '{"page": 1, "context": "trip to Oslo/1"}'),
    ]
    command = [sys.executable, "-m", "memci", "mcp", str(path)]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True) as server:
        answers = []
        for line in lines:
            server.stdin.write(line + "\n")
            server.stdin.flush()
            answers.append(json.loads(server.stdout.readline()))
        server.terminate()

    assert [each["id"] for each in answers] == [0, None, 1, "two", 3, 4]
    assert [each.get("error", {}).get("code") for each in answers[1:4]] == [-32700] * 3
    assert "error" in answers[4] or answers[4]["result"]["isError"]
    assert "Which train goes to stop 0?" in json.dumps(answers[5]["result"])


def test_the_example_runs_over_standard_input(tmp_path, monkeypatch, capsys):
    """`memci mcp` is what a coding agent starts: the example's real client searches, reads and appends."""
    monkeypatch.chdir(tmp_path)

    run_path(str(Path(__file__).parents[2] / "examples" / "mcp_client.py"))

    assert capsys.readouterr().out.splitlines() == [
        "found: page #12, memci://alice/pages/12",
        "user: Which train goes to stop 12?",
        "assistant: Stop 12 is served by IC 84. Stop 12 is s",
        "stored: page #31",
        "page #12",
    ]
