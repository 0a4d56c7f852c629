"""The answer to one client: it relays the provider's answer, and hides the rounds in which memci's tools are called.

    relay      status, headers and bytes as they came
    rounds     provider ──▶ a call of memci's tools ──▶ answered, asked again … ──▶ the end of one answer

The rounds carry out the steps of `memci.context.loop`.
"""

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import anyio
import httpx2
from anyio.lowlevel import checkpoint
from starlette.types import Send

from ..context.async_context import in_thread
from ..context.loop import Ask, Run, Steps, next_step, rounds
from ..errors import BudgetExceeded, InvalidMessage, InvalidSetting, ModelRefused, StorageError
from ..formats.events import Events, load_object
from ..formats.streams import error_text
from ..formats.usage import reported
from .conversation import Conversation
from .metrics import Metrics
from .streams import ReplyStream, UsageTap, stream_of
from .wire import error_body

MOST_ROUNDS: Final = 8
"""requests to the model for one answer: seven recalls find what is to be found; in the last one it may call no tool"""
HOP: Final = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te"}
    | {b"trailer", b"transfer-encoding", b"upgrade"}
)
"""headers that concern one connection only: they are not forwarded"""
_EVENTS: Final = b"text/event-stream"
_CUT: Final = "the provider's answer ended early"
_LOG = logging.getLogger(__name__)


class ClientAnswer:
    """Sends one answer to a client of *format*; None: errors have the form of OpenAI's."""

    def __init__(self, client: httpx2.AsyncClient, send: Send, format: str | None, metrics: Metrics) -> None:  # noqa: A002
        self._client = client
        """the client of the provider"""
        self._send = send
        self._format = format
        self._metrics = metrics
        self._begun = False
        self._streams = False
        """whether the answer that has begun is a stream of events"""

    async def refuse(self, status: int, message: str) -> None:
        """Send an error of the gateway itself; within a stream, as an event. Another answer that has begun is cut."""
        self._metrics.count("refused", status=status)
        body = error_body(self._format, status, message)
        if not self._begun:
            await self._start(status, [(b"content-type", b"application/json")])
            await self._part(json.dumps(body).encode(), more=False)
            return
        if not self._streams:
            return
        if self._format == "openai_responses":
            body = {"type": "error", "code": body["error"]["code"], "message": message, "param": None, **body}
        name = b"" if self._format == "openai_chat" else b"event: error\n"
        await self._part(name + b"data: " + json.dumps(body).encode() + b"\n\n", more=False)

    async def relay(
        self,
        request: httpx2.Request,
        *,
        view: str | None = None,
        conversation: Conversation | None = None,
    ) -> bool:
        """Forward the provider's answer to *request* as it comes, and store its usage in *conversation*.

        Return whether it is answered. If it was too long for the provider, nothing is forwarded, and the view of
        *conversation* is shorter now.
        """
        tap = UsageTap()
        async with self._response(request) as response:
            if response is None:
                return True
            if conversation is not None and response.is_error and await self._shorten(conversation, response):
                return False
            if conversation is not None and not _is_stream(response):
                await response.aread()  # an answer that is cut gets another status
            try:
                await self._forward(response, view, tap)
            finally:
                if conversation is not None and response.status_code == httpx2.codes.OK:
                    await self._cost(conversation, tap.usage)
        return True

    async def _shorten(self, conversation: Conversation, response: httpx2.Response) -> bool:
        """Return whether *response* says that the request was too long, and the view of *conversation* is shorter."""
        refused = await _refusal(response)
        try:
            return await in_thread(partial(conversation.shorten, refused))
        except BudgetExceeded:
            return False

    async def rounds(self, made: Callable[[bytes], httpx2.Request], conversation: Conversation) -> None:
        """Send the provider's answer to *conversation*; calls of memci's tools are answered inside.

        *made* returns the request with a body.
        """
        stream = stream_of(conversation.client.format, conversation.own, conversation.client.echo)
        steps = rounds(conversation, MOST_ROUNDS)
        step, body = next_step(steps, None), conversation.sent
        while isinstance(step, Ask):
            last, step = step.last, None
            async with self._response(made(body)) as response:
                if response is None:
                    return
                if response.status_code != httpx2.codes.OK:
                    refused = await _refusal(response)
                    try:
                        step = await in_thread(partial(next_step, steps, refused))
                    except (ModelRefused, BudgetExceeded):
                        await self._fail(response)
                        return
                else:
                    stream.begin(final=last)
                    if _is_stream(response):
                        step = await self._send_stream(response, stream, conversation, steps)
                    elif self._begun:  # the client reads a stream
                        await response.aread()
                        await self._fail(response)
                    else:
                        step = await self._send_whole(response, stream, conversation, steps)
            if isinstance(step, Ask):
                body = await in_thread(partial(conversation.next_request, last=step.last))

    async def _send_stream(
        self, response: httpx2.Response, stream: ReplyStream, conversation: Conversation, steps: Steps
    ) -> Ask | Run | None:
        """Send one round of a stream, and return the step that follows it."""
        events, step, kept = Events(), None, False
        try:
            async for chunk in response.aiter_bytes():
                if not self._begun:
                    await self._start(200, self._headers(response), view="rewritten")
                for event in events.feed(chunk):
                    shown = stream.shown(event)
                    if stream.ended and not kept:
                        kept = True  # before the client sees the end and sends its next request
                        step = await in_thread(partial(next_step, steps, stream))
                    if shown:
                        await self._part(shown)
            if not stream.ended and not stream.failed:
                await self.refuse(502, _CUT)
            elif step is None:
                await self._part(events.rest(), more=False)
        finally:
            await self._cost(conversation, stream.usage)
        return step

    async def _send_whole(
        self, response: httpx2.Response, stream: ReplyStream, conversation: Conversation, steps: Steps
    ) -> Ask | Run | None:
        """Read one round, send the answer if it is the last one, and return the step that follows it."""
        raw = await response.aread()
        try:
            stream.take(json.loads(raw))
        except (AttributeError, IndexError, InvalidMessage, KeyError, TypeError, ValueError):
            _LOG.warning("an answer that memci can't read was forwarded unchanged")
            await self._fail(response)
            return None
        step = await in_thread(partial(next_step, steps, stream))
        await self._cost(conversation, stream.reply.get("usage"))
        if step is None:
            await self._start(200, self._headers(response), view="rewritten")
            await self._part(stream.whole(raw), more=False)
        return step

    async def _cost(self, conversation: Conversation, usage: object) -> None:
        """Count and store the *usage* of a round, even if the client has gone: it may go after the last event."""

        def store() -> None:
            cost = reported(usage)
            self._metrics.count("tokens", cost.input, kind="input")
            self._metrics.count("tokens", cost.cached_read, kind="cached")
            self._metrics.count("tokens", cost.output, kind="output")
            conversation.cost(cost)

        with anyio.CancelScope(shield=True):
            try:
                if usage:
                    await in_thread(store)
            except InvalidSetting:
                _LOG.warning("the usage of a call can't be read")
            except StorageError as error:
                _LOG.warning("the usage of a call is not stored: %s", error)

    async def _fail(self, response: httpx2.Response) -> None:
        """Forward what the provider answers in place of a round; within a stream, say it in an event."""
        if not self._begun:
            await self._forward(response, "rewritten", UsageTap())
            return
        said = load_object(response.content) or {}
        reason = f": {error_text(said['error'])}" if said.get("error") else ""
        status = response.status_code if response.is_error else 502
        await self.refuse(status, f"the provider answered {response.status_code} to a further step{reason}")

    async def _forward(self, response: httpx2.Response, view: str | None, tap: UsageTap) -> None:
        """Forward *response* as it comes: a stream event by event, so that an error can follow one that is cut."""
        whole = response.is_stream_consumed
        headers = self._headers(response) if whole else _without(response, HOP)
        await self._start(response.status_code, headers, view=view)
        if whole:
            tap.feed(response.content)
            tap.end()
            await self._part(response.content)
        elif _is_stream(response) and "content-encoding" not in response.headers:
            async for chunk in response.aiter_raw():
                if events := tap.feed(chunk):  # before the client has them and may go
                    await self._part(events)
            await self._part(tap.end())
        else:
            async for chunk in response.aiter_raw():
                await self._part(chunk)
        await self._part(b"", more=False)

    def _headers(self, response: httpx2.Response) -> list[tuple[bytes, bytes]]:
        """Return the headers of *response* for a client that gets its content, decoded if that is possible."""
        codings = {each.strip() for each in response.headers.get("content-encoding", "identity").lower().split(",")}
        known = {"identity", *(each.strip() for each in self._client.headers["accept-encoding"].split(","))}
        return _without(response, HOP | {b"content-length"} | ({b"content-encoding"} if codings <= known else set()))

    @asynccontextmanager
    async def _response(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response | None]:
        """Yield the beginning of the provider's answer; None if there is none, and then the client gets an error.

        An answer that ends early ends the block, and is an error for the client, too.
        """
        try:
            response = await self._client.send(request, stream=True)
        except httpx2.HTTPError as error:
            away = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout | httpx2.UnsupportedProtocol)
            told = "the provider can't be reached" if away else "the provider gave no answer"
            _LOG.warning("%s: %s", told, type(error).__name__)
            await self.refuse(502, f"{told} ({type(error).__name__})" + (": check --upstream" if away else ""))
            yield None
            return
        self._metrics.count("upstream", status=response.status_code)
        try:
            yield response
        except httpx2.HTTPError as error:
            _LOG.warning("%s: %s", _CUT, type(error).__name__)
            await self.refuse(502, f"{_CUT} ({type(error).__name__})")
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]], *, view: str | None = None) -> None:
        self._begun = True
        self._streams = any(name == b"content-type" and value.lower().startswith(_EVENTS) for name, value in headers)
        named = [(b"x-memci-view", view.encode())] if view else []
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *named]})

    async def _part(self, part: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": more})
        await checkpoint()  # so that a client that went is seen before the next part


async def _refusal(response: httpx2.Response) -> ModelRefused:
    """Return the error that *response* says, and keep its body."""
    return ModelRefused("chat", (await response.aread()).decode(errors="replace"))


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith(_EVENTS.decode())


def _without(response: httpx2.Response, dropped: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in dropped]
