"""A provider on this machine that speaks three formats over HTTP, streamed and whole, and refuses what they refuse.

    with Upstream(lambda seen: Said("Hello!")) as provider:
        OpenAI(base_url=f"{provider.url}/v1")          Anthropic(base_url=provider.url)
        provider.seen[0].body                          what was sent, byte for byte
        provider.problems                              what the strict checkers say of all requests

`Said` is an answer in no format: texts, thoughts and calls. This module knows nothing of memci's gateway.
"""

import json
import socket
import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count, takewhile
from threading import Event, Thread
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from memci.testing.formats import problems

FORMATS = {
    "/v1/chat/completions": "openai_chat",
    "/v1/responses": "openai_responses",
    "/v1/messages": "anthropic",
}

IDS = count(1)
"""of answers and their items: no two are equal"""


@dataclass(frozen=True)
class Said:
    """What the model says: a text, then calls of tools, (id, name, arguments) each."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    thought: str = ""


@dataclass(frozen=True)
class Seen:
    """A request that arrived."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    format: str | None = None

    @property
    def json(self) -> dict[str, Any]:
        compressed = "content-encoding" in self.headers
        return json.loads(zlib.decompress(self.body, 47) if compressed else self.body)  # 47: gzip or zlib

    @property
    def items(self) -> list[dict[str, Any]]:
        """The list of the request."""
        return self.json["input" if self.format == "openai_responses" else "messages"]

    @property
    def text(self) -> str:
        """The text of the last item, "" if it has none."""
        return text_of(self.items[-1].get("content"))

    @property
    def results(self) -> list[str]:
        """The texts of the results at the end of the list."""
        if self.format == "anthropic":
            content = self.items[-1]["content"]
            blocks = content if isinstance(content, list) else []
            return [text_of(block["content"]) for block in blocks if block["type"] == "tool_result"]
        key, kind = ("content", "tool") if self.format == "openai_chat" else ("output", "function_call_output")
        found = takewhile(lambda item: kind in {item.get("role"), item.get("type")}, reversed(self.items))
        return [text_of(item[key]) for item in found][::-1]

    @property
    def tools(self) -> list[str]:
        """The names of its tools."""
        return [(tool.get("function") or tool)["name"] for tool in self.json.get("tools", ())]


@dataclass
class Upstream:
    """The provider. Its *script* is called with each request, in the server's thread."""

    script: Callable[[Seen], Said | Response]
    seen: list[Seen] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    hold: Event | None = None
    """a stream stops behind its first event until this is set"""
    split: int | None = None
    """bytes of a stream that are sent at a time, so that events are split; None: one event"""

    def __enter__(self) -> "Upstream":
        routes = [Route("/{path:path}", self._answer, methods=["GET", "POST", "DELETE"])]
        self._server = Served(Starlette(routes=routes))
        self.url = self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

    async def _answer(self, request: Request) -> Response:
        body = await request.body()
        form = FORMATS.get(request.url.path) if request.method == "POST" else None
        seen = Seen(request.url.path, dict(request.headers), body, form)
        self.seen.append(seen)
        if form is None:
            return Response(b"%b %b" % (request.url.path.encode(), body), headers={"x-request-id": "r1"})
        asked = seen.json
        if wrong := problems(form, {**asked, "input": as_list(asked.get("input"))}):
            self.problems += wrong
            return JSONResponse({"error": {"message": "; ".join(wrong), "type": "invalid_request_error"}}, 400)
        said = self.script(seen)
        if isinstance(said, Response):
            return said
        usage = len(body) // 4, sum(map(len, pieces(said.text))) // 4 + 1
        whole = WHOLE[form](said, asked.get("model", ""), usage)
        if not asked.get("stream"):
            return JSONResponse(whole, headers={"x-request-id": "r1"})
        return StreamingResponse(self._paced(STREAMS[form](whole)), media_type="text/event-stream")

    async def _paced(self, events: Iterator[bytes]) -> AsyncIterator[bytes]:
        if self.split is not None:
            raw = b"".join(events)
            for start in range(0, len(raw), self.split):
                yield raw[start : start + self.split]
            return
        for number, event in enumerate(events):
            if number == 1 and self.hold is not None:
                await anyio.to_thread.run_sync(self.hold.wait)
            yield event


class Served:
    """An ASGI application over HTTP, in a thread of this process, in a `with` block that gives its address."""

    def __init__(self, application: Any) -> None:
        self._application = application

    def __enter__(self) -> str:
        self._socket = socket.socket(proto=socket.IPPROTO_TCP)  # named: else asyncio collects small parts
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(256)
        config = uvicorn.Config(
            self._application,
            log_level="critical",
            http="h11",
            ws="none",
            server_header=False,
            date_header=False,
            timeout_keep_alive=75,  # longer than a client keeps a connection, however busy the machine is
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), daemon=True)
        self._thread.start()
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}"

    def __exit__(self, *error: object) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()


def text_of(content: Any) -> str:
    """The text of a content, a list of parts or a str."""
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def as_list(given: Any) -> Any:
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def pieces(text: str) -> list[str]:
    """*text* in pieces of 12 characters."""
    return [text[start : start + 12] for start in range(0, len(text), 12)]


def chat(said: Said, model: str, usage: tuple[int, int]) -> dict[str, Any]:
    calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for id_, name, given in said.calls
    ]
    message = {"role": "assistant", "content": said.text or None, **({"tool_calls": calls} if calls else {})}
    if said.thought:  # as OpenRouter has them
        signed = {"type": "reasoning.text", "text": said.thought, "signature": f"of {said.thought}", "index": 0}
        message |= {"reasoning": said.thought, "reasoning_details": [signed]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
    made = {"id": f"chatcmpl-{next(IDS)}", "object": "chat.completion", "created": 1_700_000_000, "model": model}
    return {**made, "choices": [choice], "usage": counted}


def chat_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    choice = whole["choices"][0]
    message = choice["message"]

    def piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
        made = {"index": 0, "delta": delta, "finish_reason": finish}
        return (
            b"data: %b\n\n"
            % json.dumps({**whole, "object": "chat.completion.chunk", "choices": [made], "usage": None}).encode()
        )

    yield piece({"role": "assistant", "content": ""})
    for signed in message.get("reasoning_details", ()):
        for text in pieces(signed["text"]):
            yield piece({"reasoning": text, "reasoning_details": [{**signed, "text": text, "signature": None}]})
        yield piece({"reasoning_details": [{"type": signed["type"], "signature": signed["signature"], "index": 0}]})
    for text in pieces(message["content"] or ""):
        yield piece({"content": text})
    for index, call in enumerate(message.get("tool_calls", ())):
        body = call["function"]
        yield piece({"tool_calls": [{**call, "index": index, "function": {"name": body["name"], "arguments": ""}}]})
        for text in pieces(body["arguments"]):
            yield piece({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
    yield piece({}, choice["finish_reason"])
    yield b"data: %b\n\n" % json.dumps({**whole, "object": "chat.completion.chunk", "choices": []}).encode()
    yield b"data: [DONE]\n\n"


def messages(said: Said, model: str, usage: tuple[int, int]) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = []
    if said.thought:
        blocks.append({"type": "thinking", "thinking": said.thought, "signature": "c2lnbmVk"})
    if said.text:
        blocks.append({"type": "text", "text": said.text})
    blocks += [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in said.calls]
    made = {"id": f"msg_{next(IDS)}", "type": "message", "role": "assistant", "model": model, "content": blocks}
    counted = {"input_tokens": usage[0], "cache_read_input_tokens": 0, "output_tokens": usage[1]}
    return {**made, "stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None, "usage": counted}


def messages_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps({"type": kind, **fields}).encode())

    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield event("message_start", message=begun)
    yield event("ping")
    for index, block in enumerate(whole["content"]):
        empty = {"text": {"text": ""}, "tool_use": {"input": {}}, "thinking": {"thinking": "", "signature": ""}}
        yield event("content_block_start", index=index, content_block={**block, **empty[block["type"]]})
        if block["type"] == "thinking":
            for text in pieces(block["thinking"]):
                yield event("content_block_delta", index=index, delta={"type": "thinking_delta", "thinking": text})
            signed = {"type": "signature_delta", "signature": block["signature"]}
            yield event("content_block_delta", index=index, delta=signed)
        elif block["type"] == "text":
            for text in pieces(block["text"]):
                yield event("content_block_delta", index=index, delta={"type": "text_delta", "text": text})
        else:
            for text in pieces(json.dumps(block["input"])):
                yield event(
                    "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": text}
                )
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": whole["usage"]["output_tokens"]})
    yield event("message_stop")


def responses(said: Said, model: str, usage: tuple[int, int]) -> dict[str, Any]:
    items: list[dict[str, Any]] = []
    if said.thought:
        items.append({"id": f"rs_{next(IDS)}", "type": "reasoning", "summary": [], "encrypted_content": said.thought})
    if said.text:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        items.append(
            {"id": f"m_{next(IDS)}", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        )
    items += [
        {"id": f"fc_{id_}", "type": "function_call", "call_id": id_, "name": name, "arguments": json.dumps(given)}
        | {"status": "completed"}
        for id_, name, given in said.calls
    ]
    made = {
        "id": f"resp_{next(IDS)}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "model": model,
    }
    counted = {
        "input_tokens": usage[0],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage[1],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(usage),
    }
    asked = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "instructions": "echoed"}
    return {**made, **asked, "output": items, "usage": counted}


def responses_stream(whole: dict[str, Any]) -> Iterator[bytes]:
    number = -1

    def event(kind: str, **fields: Any) -> bytes:
        nonlocal number
        number += 1
        data = {"type": kind, "sequence_number": number, **fields}
        return b"event: %b\ndata: %b\n\n" % (kind.encode(), json.dumps(data).encode())

    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
        yield event("response.output_item.added", output_index=index, item={**item, **empty})
        if item["type"] == "message":
            part = item["content"][0]
            yield event("response.content_part.added", **at, content_index=0, part={**part, "text": ""})
            for text in pieces(part["text"]):
                yield event("response.output_text.delta", **at, content_index=0, delta=text, logprobs=[])
            yield event("response.output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield event("response.content_part.done", **at, content_index=0, part=part)
        elif item["type"] == "function_call":
            for text in pieces(item["arguments"]):
                yield event("response.function_call_arguments.delta", **at, delta=text)
            yield event("response.function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.completed", response=whole)


WHOLE = {"openai_chat": chat, "openai_responses": responses, "anthropic": messages}
STREAMS = {"openai_chat": chat_stream, "openai_responses": responses_stream, "anthropic": messages_stream}
