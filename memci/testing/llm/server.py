"""A model's server on this machine, over real HTTP: it speaks OpenAI's API and answers by a script.

    with ModelServer(["Hello!", {"title": "Violins"}]) as server:
        chat = Chat("any", base_url=server.base_url)
        chat(messages).text                             "Hello!"
        ask(chat, messages, Title, step="title")        Title(title="Violins")
        server.requests[0].messages                     the messages that the client sent

    server.answers(lambda request: f"You said {request.text}")      for each request from now on
    server.fails(Status(429, retry_after=7), Reset())               the next two requests; then it answers again

It answers chat completions (streamed and whole, with tool calls), embeddings and the list of models. It leaves no
thread or socket behind.
"""

import base64
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

import numpy as np

from ...llm import Reply, Usage
from ...memory.retrieval.embedders import Embedder
from ...memory.retrieval.hash_embedder import HashEmbedder
from ...messages import Message, text_of
from .scripted import ScriptedAnswer, reply_of, words

_JSON = "application/json"
_CHUNKED = {"Transfer-Encoding": "chunked"}


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP status instead of an answer."""

    code: int
    retry_after: float | str | None = None
    """seconds, or a date; None: a millisecond, so that tests do not wait for the client's next try"""
    error: str = ""  # the code of the error: "context_length_exceeded", …
    message: str = "as the script says"
    parameter: str | None = None  # the parameter that is wrong
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reset:
    """A reset of the connection before the answer begins."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer that is cut: a stream after some characters of its text, a whole answer in the middle of its JSON."""

    text: str
    after: int = 0  # characters of a stream that are sent


@dataclass(frozen=True, slots=True)
class Raw:
    """Raw bytes as an answer: malformed JSON, a page of HTML, a stream of your own."""

    body: str | bytes
    content_type: str = "application/json"
    status: int = 200


class Hang:
    """A wait until it is released; then the server gives the next answer of the script."""

    def __init__(self, *, blanks: bool = False) -> None:
        """Create one; with *blanks* it sends a blank every 20 ms, like servers that keep a connection alive."""
        self.blanks = blanks
        self.reached = Event()
        """set once a request hangs"""
        self.released = Event()

    def release(self) -> None:
        """Let the request continue."""
        self.released.set()


Fault = Status | Reset | Cut | Raw | Hang

Answer = ScriptedAnswer | Fault
"""a text; an assistant's message, if it has a role; another object, which is written as JSON; or a fault"""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    path: str
    body: dict[str, Any]
    headers: Mapping[str, str]

    @property
    def messages(self) -> list[Message]:
        """The messages of a chat."""
        return list(self.body.get("messages", ()))

    @property
    def text(self) -> str:
        """The text of the last message."""
        return text_of(self.messages[-1]) if self.messages else ""

    @property
    def answer(self) -> str:
        """The name of the schema that is wanted for the answer, "" if none is."""
        schema = (self.body.get("response_format") or {}).get("json_schema") or {}
        return str(schema.get("name", ""))


class ModelServer:
    """A scripted server. Use it in a `with` block, or call `start` and `close`."""

    def __init__(
        self,
        answers: Iterable[Answer] | Callable[[Request], Answer] = (),
        *,
        api_key: str | None = None,
        usage: bool = True,
        chunk: int | None = None,
    ) -> None:
        """Set the answers. Nothing is served before `start`.

        Args:
            answers: See the method `answers`.
            api_key: The only key that it accepts; None: any.
            usage: Whether it reports the cost of a call.
            chunk: The bytes of a stream that are sent at a time, to split characters; None: one event.
        """
        self.requests: list[Request] = []
        """all requests, in order"""
        self.embedder: Embedder = HashEmbedder(64)
        """the source of the embeddings"""
        self.api_key = api_key
        self.usage = usage
        self.chunk = chunk
        self._script: deque[Answer] | Callable[[Request], Answer] = deque()
        self._faults: deque[Fault] = deque()
        self._refused: tuple[str, ...] = ()
        self._mistakes: list[BaseException] = []
        self._stopped = Event()
        self._lock = Lock()
        self._http: _Server | None = None
        self._thread: Thread | None = None
        self.answers(answers)

    @property
    def base_url(self) -> str:
        """The address for a client."""
        assert self._http is not None, "the server runs inside the `with` block"
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def answers(self, answers: Iterable[Answer] | Callable[[Request], Answer]) -> None:
        """Set the answers from now on: one per request, or a function that is called in any thread.

        After the last one, each request fails with status 500.
        """
        self._script = answers if callable(answers) else deque(answers)

    def fails(self, *faults: Fault) -> None:
        """Let the next requests of any kind fail, one for each fault; then answer again."""
        with self._lock:
            self._faults.extend(faults)

    def hangs(self) -> Hang:
        """Let the next request hang until the returned `Hang` is released or the server stops."""
        hang = Hang()
        self.fails(hang)
        return hang

    def refuses(self, *parameters: str) -> None:
        """Refuse each request that has one of these *parameters*, or a `response_format` of such a type."""
        self._refused = parameters

    def start(self) -> "ModelServer":
        """Start to serve; a `with` block does it, too."""
        self._stopped.clear()
        self._http = _Server(self)
        self._thread = Thread(target=self._http.serve_forever, args=(0.01,), name="memci-model-server", daemon=True)
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop: release hanging requests, close connections, end threads."""
        assert self._http is not None and self._thread is not None, "the server was started"
        self._stopped.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def __enter__(self) -> "ModelServer":
        return self.start()

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        """Stop. Raise an error of the script's own function, if nothing else was raised."""
        self.close()
        if self._mistakes and error is None:
            raise self._mistakes[0]

    def _next(self, request: Request) -> Answer:
        """Return the answer to *request*. It is called in the thread of the connection."""
        if request.path == "/v1/embeddings":
            return Raw(written(embeddings(request.body, self.embedder)))
        if request.path == "/v1/models":
            return Raw(written(models()))
        if request.path != "/v1/chat/completions":
            return Status(404, message=f"no {request.path} here")
        if callable(self._script):
            try:
                return self._script(request)
            except Exception as error:
                self._mistakes.append(error)
                return Status(500, message=f"the script raised {type(error).__name__}")
        with self._lock:
            return self._script.popleft() if self._script else Status(500, message="the script has no more answers")

    def _refusal(self, request: Request) -> Fault | None:
        """Return the fault of a *request* that fails before the script sees it."""
        if self.api_key is not None and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return Status(401, error="invalid_api_key", message="this is not the key")
        kind = (request.body.get("response_format") or {}).get("type")
        for name in self._refused:
            if name in request.body or name == kind:
                return Status(400, error="unsupported_parameter", message=f"{name} is not known here")
        with self._lock:
            return self._faults.popleft() if self._faults else None


class _Server(ThreadingHTTPServer):
    """Keeps its connections, to close them when it stops: a client may leave one open for the next request."""

    def __init__(self, script: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.script = script
        self._answering: dict[socket.socket, Thread] = {}
        self._guard = Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        # a daemon, so that a test that forgets to stop the server ends
        answering = Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._answering = {each: thread for each, thread in self._answering.items() if thread.is_alive()}
        self._answering[request] = answering
        answering.start()

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection, answering in self._answering.items():
            with self._guard, suppress(OSError):  # the client was faster
                connection.shutdown(socket.SHUT_RDWR)
            answering.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: tests close connections on purpose."""


class _Connection(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        try:
            body = {} if self.command == "GET" else json.loads(self.rfile.read(length))
        except ValueError:
            body = None
        script = self.server.script
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path.partition("?")[0], body if isinstance(body, dict) else {}, headers)
        with script._lock:
            script.requests.append(request)
        if isinstance(body, dict):
            self._send(script._refusal(request) or script._next(request), request)
        else:
            self._send(Status(400, message="the request is no JSON object"), request)

    do_GET = do_POST  # noqa: N815 -- the standard library's name

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the standard library's name
        """Print nothing."""

    def _hang(self, hang: Hang, request: Request) -> None:
        script = self.server.script
        if hang.blanks:
            self._head(200, "text/event-stream" if request.body.get("stream") else _JSON, _CHUNKED)
        hang.reached.set()
        while not (hang.released.wait(0.02) or script._stopped.is_set()):
            if hang.blanks:
                self._part(b"\n")
        if hang.blanks:
            self.close_connection = True
        else:
            self._send(script._next(request), request)

    def _send(self, answer: Answer, request: Request) -> None:
        if isinstance(answer, Hang):
            self._hang(answer, request)
        elif isinstance(answer, Reset):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif isinstance(answer, Status):
            error = {"type": "error", "code": answer.error or None, "param": answer.parameter}
            body = written({"error": {"message": answer.message, **error}})
            wait = ("Retry-After-Ms", 1) if answer.retry_after is None else ("Retry-After", answer.retry_after)
            self._whole(answer.code, _JSON, body, {**answer.headers, wait[0]: wait[1]})
        elif isinstance(answer, Raw):
            body = answer.body.encode("utf-8", "surrogatepass") if isinstance(answer.body, str) else answer.body
            self._whole(answer.status, answer.content_type, body)
        elif request.body.get("stream"):
            self._stream(answer, request)
        else:
            given = answer.text if isinstance(answer, Cut) else answer
            reply = reply_of(given, request.messages)
            body = written(completion(reply, str(request.body.get("model", "")), usage=self.server.script.usage))
            self._whole(200, _JSON, body, sent=len(body) // 2 if isinstance(answer, Cut) else None)

    def _whole(
        self, status: int, kind: str, body: bytes, headers: Mapping[str, object] | None = None, sent: int | None = None
    ) -> None:
        self._head(status, kind, {"Content-Length": len(body), **(headers or {})})
        self.wfile.write(body[:sent])
        self.close_connection |= sent is not None

    def _stream(self, answer: ScriptedAnswer | Cut, request: Request) -> None:
        script, cut = self.server.script, isinstance(answer, Cut)
        reply = reply_of(answer.text[: answer.after] if isinstance(answer, Cut) else answer, request.messages)
        usage = script.usage and bool((request.body.get("stream_options") or {}).get("include_usage"))
        pieces = stream(reply, str(request.body.get("model", "")), usage=usage and not cut)
        parts = [*(b"data: %b\n\n" % written(piece) for piece in pieces), b"data: [DONE]\n\n"]
        if cut:
            del parts[-2:]  # why it ended, and that it did
        if script.chunk is not None:
            whole = b"".join(parts)
            parts = [whole[start : start + script.chunk] for start in range(0, len(whole), script.chunk)]
        self._head(200, "text/event-stream; charset=utf-8", _CHUNKED)
        for part in parts:
            self._part(part)
        if cut:
            self.close_connection = True
        else:
            self._part(b"")

    def _head(self, status: int, kind: str, headers: Mapping[str, object]) -> None:
        self.send_response_only(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()

    def _part(self, part: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))


_MADE = 1_700_000_000
"""the creation time of every object, in seconds since 1970 UTC: it is constant, so that bytes can be compared"""


def completion(reply: Reply, model: str, *, usage: bool = True) -> dict[str, Any]:
    """Return a whole completion."""
    choice = {"index": 0, "message": reply.message, "finish_reason": reply.finish, "logprobs": None}
    whole = _made("chat.completion", model, choice)
    return {**whole, "usage": usage_fields(reply.usage)} if usage else whole


def stream(reply: Reply, model: str, *, usage: bool) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a streamed completion; with *usage*, the last one has the usage."""

    def piece(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return _made("chat.completion.chunk", model, {"index": 0, "delta": delta, "finish_reason": finish})

    yield piece({"role": "assistant", "content": ""})
    for key, value in reply.message.items():
        if key not in {"role", "content", "tool_calls"}:
            yield from (piece({key: part}) for part in (words(value) if isinstance(value, str) else [value]))
    yield from (piece({"content": part}) for part in words(text_of(reply.message)))
    for index, call in enumerate(reply.message.get("tool_calls") or []):
        body = call["function"]
        yield piece({"tool_calls": [{**call, "index": index, "function": {**body, "arguments": ""}}]})
        for part in words(body["arguments"]):
            yield piece({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield piece({}, reply.finish)
    if usage:
        yield {**piece({}), "choices": [], "usage": usage_fields(reply.usage)}


def _made(kind: str, model: str, choice: dict[str, Any]) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": _MADE, "model": model, "choices": [choice]}


def usage_fields(usage: Usage) -> dict[str, Any]:
    """Return *usage* in the fields of OpenAI's API."""
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    }


def embeddings(body: dict[str, Any], embedder: Embedder) -> dict[str, Any]:
    """Return the vectors of *embedder* that the request *body* asks for."""
    given = body.get("input")
    texts = [given] if isinstance(given, str) else list(given or [])
    rows: list[Any] = np.asarray(embedder(texts), "<f4").tolist()
    if body.get("encoding_format") == "base64":
        rows = [base64.b64encode(np.asarray(row, "<f4").tobytes()).decode() for row in rows]
    data = [{"object": "embedding", "index": index, "embedding": row} for index, row in enumerate(rows)]
    tokens = sum(len(text) // 4 + 1 for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": body.get("model"), "data": data, "usage": usage}


def models() -> dict[str, Any]:
    """Return the list of models. Requests may name any other model, too."""
    return {"object": "list", "data": [{"id": "scripted", "object": "model", "created": _MADE, "owned_by": "memci"}]}


def written(value: object) -> bytes:
    """Return the JSON of *value*."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
