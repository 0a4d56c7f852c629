"""The grammar of OpenAI's Chat Completions.

reference  https://platform.openai.com/docs/api-reference/chat/create
calling    https://platform.openai.com/docs/guides/function-calling
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_PARTS: Final[Mapping[str, list[str]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_FIELDS: Final = {"text": str, "refusal": str, "image_url": dict, "input_audio": dict, "file": dict}
"""the type of the value under the key of a part's type"""
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # names of functions (reference: tools)
_LONGEST_ID: Final = 64  # characters of the id of a call (reference: tool_calls)


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what Chat Completions would refuse in *request*: the arguments of `client.chat.completions.create`."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: a list that is not empty is required"
        return
    waiting: list[str] = []
    for at, message in enumerate(messages):
        path, role = f"messages[{at}]", message.get("role")
        if role not in _PARTS:
            yield f"{path}.role: {role!r} is no role"
            continue
        # calling: every call is answered by a tool message, directly behind the message that has the calls
        if role == "tool":
            if message.get("tool_call_id") in waiting:
                waiting.remove(message["tool_call_id"])
            else:
                yield f"{path}.tool_call_id: no call before it waits for {message.get('tool_call_id')!r}"
        elif waiting:
            yield f"{path}: the calls {waiting} before it have no result"
            waiting = []
        yield from _content(message, path)
        if "tool_calls" in message:
            yield from _calls(message, path)
            waiting = [str(call.get("id")) for call in message["tool_calls"] or []]
    if waiting:
        yield f"messages: the calls {waiting} at the end have no result"
    yield from _tools(request.get("tools", ()))


def _content(message: Mapping[str, Any], path: str) -> Iterator[str]:
    role, content = message["role"], message.get("content")
    if content is None:
        # reference: the content of an assistant is required unless there are calls (or a refusal, or audio)
        if role != "assistant" or not any(
            message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio")
        ):
            yield f"{path}.content: is missing"
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{path}.content: expected a str or a list of parts that is not empty"
        return
    for at, part in enumerate(content):
        kind = part.get("type")
        if kind not in _PARTS[role]:
            yield f"{path}.content[{at}]: the role {role} may not have the part {kind!r}"
        elif not isinstance(part.get(kind), _FIELDS[kind]):
            yield f"{path}.content[{at}].{kind}: is missing"
        elif kind == "text" and not part["text"]:
            yield f"{path}.content[{at}].text: is empty"
        elif kind == "image_url" and not isinstance(part["image_url"].get("url"), str):
            yield f"{path}.content[{at}].image_url.url: is missing"


def _calls(message: Mapping[str, Any], path: str) -> Iterator[str]:
    calls = message["tool_calls"]
    if message["role"] != "assistant" or not isinstance(calls, list) or not calls:
        yield f"{path}.tool_calls: expected a list of an assistant's that is not empty"
        return
    ids = [call.get("id") for call in calls]
    if len({*ids}) < len(ids):
        yield f"{path}.tool_calls: two calls have the same id: {ids}"
    for at, call in enumerate(calls):
        kind, text = ("custom", "input") if call.get("type") == "custom" else ("function", "arguments")
        body = call.get(kind)
        if call.get("type") != kind or not isinstance(body, dict) or not isinstance(call.get("id"), str):
            yield f"{path}.tool_calls[{at}]: expected an id, a type and its body"
        elif not isinstance(body.get("name"), str) or not isinstance(body.get(text), str):
            yield f"{path}.tool_calls[{at}].{kind}: expected a name and {text}, as texts"
        elif not _NAME.fullmatch(body["name"]):
            yield f"{path}.tool_calls[{at}].{kind}.name: {body['name']!r} is no name of a tool"
        elif not 0 < len(call["id"]) <= _LONGEST_ID:
            yield f"{path}.tool_calls[{at}].id: expected 1 to {_LONGEST_ID} characters"


def _tools(tools: Any) -> Iterator[str]:
    for at, tool in enumerate(tools):
        kind = tool.get("type")
        if kind not in {"function", "custom"} or not isinstance(tool.get(kind), dict):
            yield f"tools[{at}]: expected a function or a custom tool"
        elif not _NAME.fullmatch(str(tool[kind].get("name"))):
            yield f"tools[{at}].{kind}.name: {tool[kind].get('name')!r} is no name of a tool"
