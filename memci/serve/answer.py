"""The answer to one client: what the provider sends, as it comes, and the rounds that the client does not see.

    relay      status, headers and bytes as they came
    rounds     provider ──▶ a call of memci's tools ──▶ answered, asked again … ──▶ the end of one answer

This module knows nothing of how a window is kept.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from functools import partial
from typing import Any, Final

import anyio
import httpx2

from ..context.async_context import in_thread
from ..errors import InvalidSetting, StorageError
from ..formats.events import Events
from ..formats.usage import reported
from .conversation import Conversation
from .metrics import Metrics
from .replies import merged
from .streams import ReplyStream, UsageTap, echoed, stream_of
from .wire import error_body

MOST_ROUNDS: Final = 8
"""times that the model is asked for one answer; in the last one it may call no tool"""
_STREAM: Final = "text/event-stream"
_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-authenticate", b"te", b"trailer", b"transfer-encoding"})
_SIZED: Final = frozenset({b"content-length", b"content-encoding"})
_LOG = logging.getLogger(__name__)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class ClientAnswer:
    """Sends one answer to a client of *format* (None: as OpenAI's expect errors)."""

    def __init__(self, send: Send, format: str | None, metrics: Metrics) -> None:  # noqa: A002
        self._send = send
        self._format = format
        self._metrics = metrics
        self._begun = False

    async def refuse(self, status: int, message: str) -> None:
        """Send an error of the gateway's own; within a stream, as an event."""
        self._metrics.count("refused", status=status)
        body = error_body(self._format, status, message)
        if not self._begun:
            await self._start(status, [(b"content-type", b"application/json")])
            await self._part(json.dumps(body).encode(), more=False)
            return
        if self._format == "openai_responses":
            body = {"type": "error", "code": body["error"]["code"], "message": message, "param": None, **body}
        name = b"" if self._format == "openai_chat" else b"event: error\n"
        await self._part(name + b"data: " + json.dumps(body).encode() + b"\n\n", more=False)

    async def relay(
        self,
        client: httpx2.AsyncClient,
        request: httpx2.Request,
        *,
        view: str | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        """Send what the provider answers to *request*, as it comes; the *conversation* learns what it cost."""
        response = await self._asked(client, request)
        if response is None:
            return
        tap = UsageTap()
        try:
            await self._start(response.status_code, _kept(response, _HOP), view=view)
            async for chunk in response.aiter_raw():
                if conversation is not None:
                    tap.feed(chunk)  # before the client has it, and goes
                await self._part(chunk)
            await self._part(b"", more=False)
        except httpx2.HTTPError as error:  # the connection is cut for the client, too: the answer is not whole
            _LOG.warning("the provider's answer ended early: %s", type(error).__name__)
        finally:
            with anyio.CancelScope(shield=True):  # also if the client has gone: it may, behind the last event
                await response.aclose()
                if conversation is not None and response.status_code == httpx2.codes.OK:
                    await in_thread(partial(self._cost, conversation, tap.usage))

    async def rounds(
        self, client: httpx2.AsyncClient, made: Callable[[bytes], httpx2.Request], conversation: Conversation
    ) -> None:
        """Send what the provider answers to the *conversation*; calls of memci's tools are answered inside.

        Raises:
            MemciError: If they can't be answered or stored.
        """
        form, body = conversation.request.format, conversation.sent
        echo = {key: conversation.request.body.get(key) for key in ("tools", "tool_choice", "instructions")}
        echo = {key: value for key, value in echo.items() if value is not None or key == "instructions"}
        echo.setdefault("tools", [])
        stream = stream_of(form, conversation.own, echo)
        replies: list[dict[str, Any]] = []
        for number in range(1, MOST_ROUNDS + 1):
            response = await self._asked(client, made(body))
            if response is None:
                return
            try:
                if response.status_code != httpx2.codes.OK:
                    await self._failed(response)
                    return
                stream.begin(final=number == MOST_ROUNDS)
                if response.headers.get("content-type", "").startswith(_STREAM):
                    goes_on = await self._streamed(response, stream, conversation)
                else:
                    goes_on = await self._whole(response, stream, conversation, replies, echo)
            except httpx2.HTTPError as error:
                _LOG.warning("the provider's answer ended early: %s", type(error).__name__)
                return
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()
            if not goes_on:
                return
            body = await in_thread(partial(conversation.body, last=number == MOST_ROUNDS - 1))

    async def _streamed(self, response: httpx2.Response, stream: ReplyStream, conversation: Conversation) -> bool:
        """Send one round of a stream, and return whether another one follows."""
        if not self._begun:
            await self._start(200, _kept(response, _HOP | _SIZED), view="rewritten")
        events, stored = Events(), False
        try:
            async for chunk in response.aiter_bytes():
                for event in events.feed(chunk):
                    shown = stream.shown(event)
                    if stream.ended and not stored:
                        stored = True  # before the client sees the end, and comes back
                        await self._store(stream, conversation)
                    if shown:
                        await self._part(shown)
            if not stream.ended:
                return False  # it was cut: so is the client's
            if not stream.goes_on:
                await self._part(events.rest(), more=False)
        finally:
            with anyio.CancelScope(shield=True):  # also if the client has gone: it may, behind the last event
                await in_thread(partial(self._cost, conversation, stream.usage))
        return stream.goes_on

    async def _whole(
        self,
        response: httpx2.Response,
        stream: ReplyStream,
        conversation: Conversation,
        replies: list[dict[str, Any]],
        echo: dict[str, Any],
    ) -> bool:
        """Read one round, send the answer if it is the last one, and return whether another one follows."""
        form, raw = conversation.request.format, await response.aread()
        try:
            reply = stream.reply = json.loads(raw)
            stream.calls  # noqa: B018 -- whether it can be read
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            _LOG.warning("an answer was passed on as it came, memci can't read it")
            await self._start(200, _kept(response, _HOP | _SIZED), view="rewritten")
            await self._part(raw, more=False)
            return False
        stream.ended = True
        replies.append(reply)
        await self._store(stream, conversation)
        await in_thread(partial(self._cost, conversation, reply.get("usage")))
        if stream.goes_on:
            return True
        if len(replies) > 1 or stream.calls.own or form == "openai_responses":
            whole = merged(form, replies, conversation.own)
            whole = echoed(whole, echo) if form == "openai_responses" else whole
            raw = json.dumps(whole, ensure_ascii=False).encode("utf-8", "surrogatepass")
        await self._start(200, _kept(response, _HOP | _SIZED), view="rewritten")
        await self._part(raw, more=False)
        return False

    async def _store(self, stream: ReplyStream, conversation: Conversation) -> None:
        """Store the reply of this round if it calls memci's tools, with their answers."""
        found = stream.calls
        if found.own and not found.cut and not stream.final:
            for name in await in_thread(partial(conversation.answered, stream.reply)):
                self._metrics.count("tool_calls", tool=name)

    def _cost(self, conversation: Conversation, usage: object) -> None:
        try:
            if usage:
                cost = reported(usage)
                self._metrics.count("tokens", cost.input, kind="input")
                self._metrics.count("tokens", cost.cached_read, kind="cached")
                self._metrics.count("tokens", cost.output, kind="output")
                conversation.cost(usage)
        except InvalidSetting:
            _LOG.warning("what a call cost can't be read")
        except StorageError as error:
            _LOG.warning("what a call cost is not stored: %s", error)

    async def _failed(self, response: httpx2.Response) -> None:
        """Send an error of the provider's, as it came; within a stream, as an event."""
        if self._begun:
            await response.aread()
            await self.refuse(response.status_code, f"the provider answered {response.status_code} to a further step")
            return
        await self._start(response.status_code, _kept(response, _HOP), view="rewritten")
        async for chunk in response.aiter_raw():
            await self._part(chunk)
        await self._part(b"", more=False)

    async def _asked(self, client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response | None:
        """Return the beginning of the provider's answer; None if there is none, and the client was told so."""
        try:
            response = await client.send(request, stream=True)
        except httpx2.HTTPError as error:
            _LOG.warning("the provider can't be reached: %s", type(error).__name__)
            await self.refuse(502, f"the provider can't be reached ({type(error).__name__}): check --upstream")
            return None
        self._metrics.count("upstream", status=response.status_code)
        return response

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]], *, view: str | None = None) -> None:
        self._begun = True
        named = [(b"x-memci-view", view.encode())] if view else []
        await self._send({"type": "http.response.start", "status": status, "headers": [*headers, *named]})

    async def _part(self, part: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": part, "more_body": more})


def _kept(response: httpx2.Response, dropped: Iterable[bytes]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in dropped]
