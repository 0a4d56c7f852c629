"""A client's request, as it came over the wire: its list, and the same request with another list.

    {"model": "…", "system": […], "messages": […], "tools": […], "thinking": {…}}
        ──▶  items (the list, in the form that is compared), system (its text), tools, model, reply
        ──▶  with_view(items, …)       the same body with another list, memci's notice and tools

Marks of the prompt cache move from request to request, so the list is compared without them, and sent with its marks of
now (`memci.serve.marks`).
"""

import json
import re
import zlib
from collections.abc import Collection, Sequence
from typing import Any

import orjson

from ..errors import InvalidMessage
from ..formats.openai_responses import is_reference
from ..messages import Item, text_of
from . import marks

PATHS = {"/chat/completions": "openai_chat", "/responses": "openai_responses", "/v1/messages": "anthropic"}
"""the end of the path of each format's endpoint"""
GEMINI = re.compile(r"/models/[^/]+:\w+$").search
"""finds paths of Gemini's calls, as /v1beta/models/gemini-2.5-pro:generateContent"""
_LISTS = {"openai_chat": "messages", "openai_responses": "input", "anthropic": "messages"}
_SYSTEMS = {"openai_responses": "instructions", "anthropic": "system"}
_REPLY = ("max_completion_tokens", "max_output_tokens", "max_tokens")
_ELSEWHERE = ("previous_response_id", "conversation", "prompt", "background")
"""fields of Responses that put the list elsewhere than in the request, or the answer elsewhere than in the reply"""

_KINDS = {401: "authentication_error", 403: "permission_error", 413: "request_too_large", 429: "rate_limit_error"}
_KINDS |= {503: "overloaded_error", 529: "overloaded_error"}
"""types of Anthropic's errors by status, besides the types for all other statuses"""
_STATES = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 502: "UNAVAILABLE", 503: "UNAVAILABLE"}
"""names of Gemini's errors by status"""


class ClientRequest:
    """One request of a client to an endpoint of *format*.

    InvalidMessage if the body is no request of this format with its whole list.
    """

    def __init__(self, format: str, raw: bytes, plain: bytes) -> None:  # noqa: A002 -- as in `Context.request`
        """Read *plain*, the body without its compression."""
        self.format = format
        self.raw = raw
        """the body, byte for byte"""
        self.size = len(plain)  # of its text, in bytes
        self.body = _loads(plain)
        listed = self.body.get(_LISTS[format])
        if format == "openai_responses" and isinstance(listed, str):
            listed = [{"role": "user", "content": listed}]
        if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed) or not listed:
            raise InvalidMessage(_LISTS[format], "expected a list of objects that is not empty")
        if format == "openai_responses" and any(self.body.get(key) for key in _ELSEWHERE):
            raise InvalidMessage(_LISTS[format], f"with one of {', '.join(_ELSEWHERE)}, the server holds the list")
        if format == "openai_responses" and any(map(is_reference, listed)):
            raise InvalidMessage(_LISTS[format], "the server holds items that it refers to")
        known = str | None if format == "openai_responses" else str
        if not all(isinstance(each.get("role"), known) for each in listed):
            raise InvalidMessage(_LISTS[format], "expected a role in each of its objects")
        if not isinstance(self.body.get(_SYSTEMS.get(format, "")), str | list | None):
            raise InvalidMessage(_SYSTEMS[format], "expected a text or a list")
        if self.body.get("n") not in (None, 1):
            raise InvalidMessage("n", "expected 1: memci reads one answer")
        self._front: list[Item] = []
        """the system message in front of a list of Chat Completions"""
        if format == "openai_chat" and listed[0].get("role") in {"system", "developer"}:
            self._front, listed = listed[:1], listed[1:]
        self._listed: list[Item] = listed
        self.items = [marks.canonical(item) for item in listed]
        """the list, without a system message in front and without marks of the prompt cache"""
        tools = self.body.get("tools") or []
        self.tools: list[Any] = tools if isinstance(tools, list) else []
        functions = self.body.get("functions") or []
        self.schemas = [*self.tools, *functions] if isinstance(functions, list) else self.tools
        """those, and the functions of old, for the budget"""
        self.model = self.body.get("model") if isinstance(self.body.get("model"), str) else None
        sizes = [self.body[key] for key in _REPLY if type(self.body.get(key)) is int]
        self.reply = max(sizes, default=0)
        """tokens that the answer may have, 0 if the request has no bound"""

    @property
    def system(self) -> str:
        """The text of the system prompt with a ? for each half of a surrogate pair, "" if there is none."""
        if self.format == "openai_chat":
            told = text_of(self._front[0]) if self._front else ""
        else:
            told = text_of({"content": self.body.get(_SYSTEMS[self.format])})
        return told.encode("utf-8", "replace").decode()

    @property
    def echo(self) -> dict[str, Any]:
        """The fields that an answer of Responses repeats."""
        given = {key: self.body.get(key) for key in ("tools", "tool_choice", "instructions")}
        return {"tools": [], **{k: value for k, value in given.items() if value is not None or k == "instructions"}}

    @property
    def tool_names(self) -> set[str]:
        """The names of the client's own tools."""
        bodies = [each.get("function") or each for each in self.tools if isinstance(each, dict)]
        return {str(body.get("name")) for body in bodies if isinstance(body, dict)}

    def with_view(self, view: Sequence[Item], *, notice: str, tools: Collection[Any], last: bool = False) -> bytes:
        """Return the body with the list *view*, the *notice* behind the system prompt, and *tools* behind the others.

        Args:
            view: The items of a rendering; the client's own items are sent as the client wrote them.
            notice: "" for none.
            tools: In this format.
            last: Whether the model must answer without a tool.
        """
        fixed = marks.count([self.tools, self.body.get("system"), self._front]) + ("cache_control" in self.body)
        items = marks.restore(self.format, view, self._listed, fixed)
        body = {**self.body, **self._system(notice)}
        body[_LISTS[self.format]] = body.pop("_front", []) + items
        if tools:
            body["tools"] = [*self.tools, *tools]
        if last and body.get("tools"):
            body["tool_choice"] = {"type": "none"} if self.format == "anthropic" else "none"
        try:
            return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # half of a surrogate pair: it can be written as an escape only
            return json.dumps(body).encode()

    def _system(self, notice: str) -> dict[str, Any]:
        """Return the fields with the client's system prompt and *notice* behind it."""
        key = _SYSTEMS.get(self.format, "_front")
        if key == "_front":
            front = self._front[0] if self._front else {"role": "system", "content": ""}
            content = _behind(front.get("content"), notice)
            return {key: [{**front, "content": content}] if content else []}
        return {key: _behind(self.body.get(key), notice)} if notice else {}


def decompressed(raw: bytes, coding: str | None, most: int) -> bytes:
    """Return the body *raw* without its compression.

    InvalidMessage if it is damaged, has more than *most* bytes, or its *coding* is none of gzip, deflate and zstd.
    """
    coding = (coding or "identity").lower()
    if coding == "identity":
        return raw
    try:
        reader, damaged = _reader(coding)
    except (ImportError, KeyError):
        raise InvalidMessage("body", f"memci does not read its coding {coding!r:.40}") from None
    try:
        body: bytes = reader.decompress(raw, most)
    except damaged:
        raise InvalidMessage("body", f"it can't be decompressed: {coding}") from None
    if not reader.eof:
        raise InvalidMessage("body", f"it is cut, or larger than {most:,} bytes")
    return body


def _reader(coding: str) -> tuple[Any, type[Exception]]:
    """Return what decompresses *coding*, and its error.

    KeyError if the coding is not known; ImportError if it is zstd and neither Python (3.14) nor backports.zstd has it.
    """
    if coding != "zstd":
        return zlib.decompressobj({"gzip": 31, "deflate": 15}[coding]), zlib.error
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        from backports import zstd  # type: ignore[import-not-found, unused-ignore]
    return zstd.ZstdDecompressor(), zstd.ZstdError


def error_body(format: str | None, status: int, message: str) -> dict[str, Any]:  # noqa: A002
    """Return an error in the form that clients of *format* expect (None: OpenAI's clients)."""
    if format == "gemini":
        return {"error": {"code": status, "message": message, "status": _STATES.get(status, "INVALID_ARGUMENT")}}
    if format == "anthropic":
        kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = {429: "rate_limit_error"}.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": f"memci_{status}"}}


def _behind(content: Any, text: str) -> Any:
    """Return *content* (a text, a list of parts, or None) with *text* behind it."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}] if text else content
    return "\n\n".join(part for part in (content, text) if part)


def _loads(raw: bytes) -> dict[str, Any]:
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:  # large integers, halves of surrogate pairs
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError):
            raise InvalidMessage("body", "it is no JSON") from None
    if not isinstance(body, dict):
        raise InvalidMessage("body", "expected an object")
    return body
