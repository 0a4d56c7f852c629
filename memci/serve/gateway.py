"""The gateway: a server between a client and its provider, which manages the client's window.

    from memci.serve.gateway import app
    application = app("agents.db", upstream="https://api.anthropic.com", window=100_000)   # uvicorn module:application

    POST …/chat/completions, …/responses, …/v1/messages       read; forwarded unchanged until something is archived
    GET  /healthz, /metrics                                    answered by the gateway
    everything else                                            forwarded unchanged, both ways

Any number of workers may share one store.
"""

import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Final

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from ..context.async_context import in_thread
from ..context.context import check_settings
from ..context.memory_client import load_numpy
from ..errors import BudgetExceeded, InvalidMessage, InvalidSetting, LimitExceeded, MemciError, StorageError
from ..settings import Policy
from ..storage import Storage
from ..storage.arguments import checked
from ..storage.opening import open_store
from ..tokens import counter_for
from .answer import HOP, ClientAnswer
from .conversation import Conversation, Options
from .door import Door, Identity, key_beside
from .metrics import Metrics, store_text
from .trimmed import Recent
from .wire import GEMINI, PATHS, ClientRequest, decompressed, error_body

ENVIRONMENT: Final = "MEMCI_GATEWAY"
"""the environment variable with the arguments of `app` as JSON, for workers that are started by name"""
MAX_BODY: Final = 64 * 2**20  # bytes of a request that memci reads, at most: twice what providers take
_SILENCE_SECONDS: Final = 600.0
"""seconds of silence of the provider before its answer counts as lost, as in the clients of OpenAI and Anthropic"""
_LOG = logging.getLogger(__name__)


@checked
def app(
    store: str | os.PathLike[str],
    *,
    upstream: str,
    window: int | None = None,
    model: str | None = None,
    token: str | None = None,
    hosts: Collection[str] = (),
    identity: str | None = None,
    credentials: Collection[str] = (),
    formats: Collection[str] = tuple(PATHS.values()),
    policy: Policy | None = None,
    max_body: int = MAX_BODY,
) -> Starlette:
    """Return the application that serves one store; each process that runs it opens the store for itself.

    Args:
        store: A path: a SQLite file for all conversations, or a folder.
        upstream: The provider's base URL, as the client had it.
        window: The context length in tokens; default: that of the model, which must be a known one then.
        model: The model whose rules count tokens; default: the first model that a conversation is sent to.
        token: The value that clients must send in the header `x-memci-token`; default: none.
        hosts: Names by which clients may call the gateway, besides those of this machine.
        identity: What of a request is the user, whose conversations share a memory: `header:NAME`, `field:NAME` (of the
            body, as `metadata.user_id`) or `credential`; default: each conversation has a memory of its own. Without
            *token*, the credentials of the request are part of it.
        credentials: Headers and query fields that are credentials, besides those with auth, key, token or cookie in
            their name.
        formats: The formats of the endpoints that are read; requests to others are forwarded.
        policy: The use of windows, for new and known conversations.
        max_body: Bytes of a request that memci reads, at most.

    Raises:
        InvalidSetting: If an argument is invalid, or the key beside the store can't be made.
    """
    url = httpx2.URL(upstream)
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidSetting("upstream", f"expected the base URL of a provider, got {upstream!r:.60}")
    if unknown := {*formats} - {*PATHS.values()}:
        raise InvalidSetting("formats", f"expected some of {', '.join(PATHS.values())}, got {', '.join(unknown)}")
    check_settings(window=window, model=model, policy=policy)
    declared = None if identity is None else Identity.parse(identity)
    named = frozenset(name.lower() for name in credentials)
    door = Door(key_beside(store), token, tuple(hosts), declared, named)
    metrics = Metrics()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # its lines name addresses, which may hold keys
    paths = {ending: form for ending, form in PATHS.items() if form in formats}

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[dict[str, Any]]:
        load_numpy(None, read_only=False)
        await in_thread(partial(counter_for(model), "memci"))  # load the vocabulary before the first request
        timeout = httpx2.Timeout(_SILENCE_SECONDS, connect=10.0, pool=None)
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
        storage = open_store(store)
        try:
            async with httpx2.AsyncClient(timeout=timeout, limits=limits) as client:
                yield {"storage": storage, "client": client}
        finally:
            storage.close()

    def own(text: Callable[[Storage], str], *, needs_token: bool) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            refused = door.refusal(request.headers, needs_token=needs_token)
            if refused is not None:
                return JSONResponse(error_body(None, *refused), refused[0])
            try:
                return PlainTextResponse(await in_thread(partial(text, request.state.storage)))
            except StorageError as error:
                return PlainTextResponse(f"{error}\n", 503)

        return answer

    gateway = Gateway(url, door, metrics, paths, Options(window, model, policy), max_body)
    health = own(_alive, needs_token=False)
    counted = own(lambda storage: metrics.text() + store_text(storage, os.fspath(store)), needs_token=True)
    routes = [Route("/healthz", health), Route("/metrics", counted), Mount("/", gateway)]
    made = Starlette(routes=routes, lifespan=lifespan)
    made.state.identity = door.identified()
    return made


def _alive(storage: Storage) -> str:
    storage.tickets()  # raises if the store can't be read
    return "ok\n"


def from_environment() -> Starlette:
    """Return the application with the arguments in the variable MEMCI_GATEWAY: for workers, which are new processes."""
    arguments = json.loads(os.environ[ENVIRONMENT])
    preset = arguments.pop("preset", None)
    return app(policy=Policy(preset=preset) if preset else None, **arguments)


@dataclass(frozen=True)
class Gateway:
    """Forwards requests to the provider, and its answers to the clients."""

    upstream: httpx2.URL
    door: Door
    metrics: Metrics
    paths: Mapping[str, str]  # the formats that are read, by the ends of their paths
    options: Options
    max_body: int
    recent: Recent = field(default_factory=Recent)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as long as its client is connected."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1003, "reason": "memci reads requests over HTTP"})
            return
        request = Request(scope, receive)
        headers, client = request.headers, scope["state"]["client"]
        posted = (form for end, form in self.paths.items() if request.method == "POST" and scope["path"].endswith(end))
        form = next(posted, None)
        speaks = form or (
            "anthropic" if "anthropic-version" in headers else "gemini" if GEMINI(scope["path"]) else None
        )
        answer = ClientAnswer(client, send, speaks, self.metrics)
        with suppress(ClientDisconnect):
            if (refused := self.door.refusal(headers)) is not None:
                await answer.refuse(*refused)
            elif form is None and {"content-length", "transfer-encoding"} & set(headers):
                await answer.relay(self._upstream_request(request, request.stream()), view="passed")
            elif form is None:
                async with _until_disconnect(receive):
                    await answer.relay(self._upstream_request(request, None), view="passed")
            elif (raw := await self._read(request)) is None:
                await answer.refuse(413, f"the request is larger than {self.max_body:,} bytes")
            else:
                async with _until_disconnect(receive):
                    try:
                        await self._manage(form, request, raw, answer)
                    except MemciError as error:
                        _LOG.warning("a request was refused: %s", error)
                        told = f"{error} (memci serve: --window)" if isinstance(error, BudgetExceeded) else str(error)
                        await answer.refuse(503 if isinstance(error, StorageError) else 400, told)

    async def _manage(self, form: str, asked: Request, raw: bytes, answer: ClientAnswer) -> None:
        """Answer a request whose list of messages memci reads."""
        storage = asked.scope["state"]["storage"]
        began = perf_counter()
        try:
            request = ClientRequest(form, raw, decompressed(raw, asked.headers.get("content-encoding"), self.max_body))
            query = asked.scope["query_string"].decode("latin-1")
            caller = self.door.caller(asked.headers, query, request.body)
            making = partial(Conversation, storage, caller, self.options, request, self.recent)
            conversation = await in_thread(making, Conversation.close)
        except (InvalidMessage, LimitExceeded) as error:
            said = isinstance(error, InvalidMessage) and error.path == "body"  # it quotes nothing of the messages
            reason = str(error) if said else type(error).__name__
            _LOG.warning("a request that memci can't read was forwarded unchanged: %s", reason)
            self.metrics.count("requests", format=form, view="passed")
            await answer.relay(self._upstream_request(asked, raw), view="passed")
            return
        self.metrics.add_wait(perf_counter() - began)
        self.metrics.count("requests", format=form, view="rewritten" if conversation.rewritten else "untouched")
        self.metrics.count("forks", conversation.forks)
        self.metrics.count("gate_tokens", conversation.gate_tokens)
        try:
            made = partial(self._upstream_request, asked, plain=True)
            if conversation.rewritten or not await answer.relay(made(raw), view="untouched", conversation=conversation):
                await answer.rounds(partial(made, rewritten=True), conversation)
        finally:
            for name, calls in conversation.called.items():
                self.metrics.count("tool_calls", calls, tool=name)
            with anyio.CancelScope(shield=True):
                await in_thread(conversation.close)

    def _upstream_request(
        self,
        request: Request,
        body: bytes | AsyncIterator[bytes] | None,
        *,
        plain: bool = False,
        rewritten: bool = False,
    ) -> httpx2.Request:
        """Return the request to the provider.

        *plain*: ask for an uncompressed answer, so that memci can read it; *rewritten*: *body* is made by memci.
        """
        scope, dropped = request.scope, HOP | {b"host", b"expect"}
        dropped |= ({b"accept-encoding"} if plain else set()) | ({b"content-encoding"} if rewritten else set())
        headers = request.headers.raw
        if isinstance(body, bytes) or any(name == b"transfer-encoding" for name, _ in headers):
            dropped |= {b"content-length"}  # with chunks it would not be the length
        kept = [each for each in headers if each[0] not in dropped and not each[0].startswith(b"x-memci-")]
        if plain:
            kept.append((b"accept-encoding", b"identity"))
        prefix = self.upstream.raw_path.rstrip(b"/").removesuffix(b"/v1")  # the paths of clients contain it
        query = scope["query_string"]
        path = prefix + (scope.get("raw_path") or scope["path"].encode()) + (b"?" + query if query else b"")
        return httpx2.Request(request.method, self.upstream.copy_with(raw_path=path), headers=kept, content=body)

    async def _read(self, request: Request) -> bytes | None:
        """Return the body of *request*, None if it is too large."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self.max_body:
                return None
        return bytes(body)


@asynccontextmanager
async def _until_disconnect(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block when the client goes away."""
    async with anyio.create_task_group() as group:

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            group.cancel_scope.cancel()

        group.start_soon(watch)
        yield
        group.cancel_scope.cancel()
