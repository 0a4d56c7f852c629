"""The grammar of OpenAI's Responses.

reference   https://platform.openai.com/docs/api-reference/responses/create
calling     https://platform.openai.com/docs/guides/function-calling
reasoning   https://platform.openai.com/docs/guides/reasoning
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # names of functions (reference: tools)
_LONGEST_ID: Final = 64  # characters of a call_id (reference: input)
_TYPES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_INPUT, _CALLS = _TYPES["input"], _TYPES["calls"]
_PARTS: Final = dict.fromkeys(("user", "system", "developer"), _INPUT) | {"assistant": _TYPES["answer"]}
_OUTPUTS: Final = {result: call for call, result in _CALLS.items()}
_MODELS: Final = {*_CALLS, *_TYPES["models"]}
_KNOWN: Final = {*_MODELS, *_OUTPUTS, *_TYPES["others"]}


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what Responses would refuse in *request*: the arguments of `client.responses.create`."""
    items = request.get("input")
    if not isinstance(request.get("instructions", ""), str):
        yield "instructions: expected a str"
    if not isinstance(items, list) or not items:
        yield "input: a list that is not empty is required"
        return
    waiting: dict[str, str] = {}
    called: set[object] = set()
    taken: set[object] = set()
    for at, item in enumerate(items):
        untyped = "item_reference" if item.keys() <= {"id", "type"} else "message"
        path, kind = f"input[{at}]", item.get("type") or untyped
        if kind == "message" or kind in _MODELS:
            if item.get("id") in taken:  # reference: the id of an item is unique
                yield f"{path}.id: {item['id']!r} is that of another item"
            taken |= {item["id"]} if item.get("id") is not None else set()
        if kind not in _KNOWN:
            yield f"{path}.type: {kind!r} is no type of an item"
        elif kind == "message":
            yield from _message(item, path)
        elif kind in _CALLS:
            yield from _call(item, kind, path)
            if item.get("call_id") in called:  # calling: a result names one call
                yield f"{path}.call_id: {item['call_id']!r} is that of another call"
            called.add(item.get("call_id"))
            waiting[str(item.get("call_id"))] = _CALLS[kind]
        elif kind in _OUTPUTS:
            given = item.get("call_id", item.get("id") if kind == "local_shell_call_output" else None)
            if waiting.pop(str(given), None) != kind:
                yield f"{path}.call_id: no {_OUTPUTS[kind]} before it waits for {given!r}"
            yield from _output(item.get("output"), kind, path)
    yield from _companions(items)
    if waiting:
        yield f"input: the calls {list(waiting)} have no result"
    yield from _tools(request.get("tools", ()))


def _call(item: Mapping[str, Any], kind: str, path: str) -> Iterator[str]:
    """Yield violations in a call (calling): a result is paired with it by the call_id."""
    if not isinstance(item.get("call_id"), str) or not item["call_id"]:
        yield f"{path}.call_id: is missing"
    elif len(item["call_id"]) > _LONGEST_ID:
        yield f"{path}.call_id: expected at most {_LONGEST_ID} characters"
    if kind == "function_call" and not all(isinstance(item.get(key), str) for key in ("name", "arguments")):
        yield f"{path}: expected a name and arguments, as texts"
    elif kind == "function_call" and not _NAME.fullmatch(item["name"]):
        yield f"{path}.name: {item['name']!r} is no name of a tool"


def _companions(items: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the items that have to be beside others."""
    approvals = {str(item.get("id")) for item in items if item.get("type") == "mcp_approval_request"}
    for at, item in enumerate(items):
        given = str(item.get("approval_request_id"))
        if item.get("type") == "mcp_approval_response" and given not in approvals:
            # reference: an approval names a request in the input
            yield f"input[{at}].approval_request_id: the input has no request {given!r}"
        if item.get("type") == "reasoning":
            # reasoning: an item of reasoning is followed by the item that it led to
            after = items[at + 1] if at + 1 < len(items) else {"role": "user"}
            own = after.get("role") == "assistant" if after.get("type", "message") == "message" else False
            if not own and after.get("type") not in _MODELS:
                yield f"input[{at}]: no item of the model follows the reasoning"


def _message(item: Mapping[str, Any], path: str) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in _PARTS:
        yield f"{path}.role: {role!r} is no role"
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{path}.content: expected a str or a list of parts that is not empty"
        return
    for at, part in enumerate(content):
        if part.get("type") not in _PARTS[role]:
            yield f"{path}.content[{at}]: the role {role} may not have the part {part.get('type')!r}"
        else:
            yield from _part(part, f"{path}.content[{at}]")


def _output(output: Any, kind: str, path: str) -> Iterator[str]:
    if kind == "computer_call_output":
        screenshot = isinstance(output, dict) and output.get("type") == "computer_screenshot"
        if not screenshot or not any(isinstance(output.get(key), str) for key in ("image_url", "file_id")):
            yield f"{path}.output: expected a computer_screenshot with an image_url or a file_id"
        return
    if kind == "shell_call_output" and not isinstance(output, list):
        yield f"{path}.output: expected a list of outcomes"
    if kind not in {"function_call_output", "custom_tool_call_output"} or isinstance(output, str):
        return
    if not isinstance(output, list):
        yield f"{path}.output: expected a str or a list of parts"
        return
    for at, part in enumerate(output):
        if part.get("type") not in _INPUT:
            yield f"{path}.output[{at}]: a result may not have the part {part.get('type')!r}"
        else:
            yield from _part(part, f"{path}.output[{at}]")


def _part(part: Mapping[str, Any], path: str) -> Iterator[str]:
    kind = part["type"]
    if kind in {"input_text", "output_text"} and not isinstance(part.get("text"), str):
        yield f"{path}.text: is missing"
    if kind == "input_image" and not (isinstance(part.get("image_url"), str) or isinstance(part.get("file_id"), str)):
        yield f"{path}: an image has an image_url or a file_id"
    if kind == "input_file" and not any(isinstance(part.get(key), str) for key in ("file_id", "file_data", "file_url")):
        yield f"{path}: a file has a file_id, file_data or a file_url"


def _tools(tools: Any) -> Iterator[str]:
    for at, tool in enumerate(tools):
        # reference: the name is beside the type, not under `function` as in Chat Completions
        if not isinstance(tool.get("type"), str) or isinstance(tool.get("function"), dict):
            yield f"tools[{at}]: it is no tool of Responses"
        elif tool["type"] == "function" and not (isinstance(tool.get("name"), str) and tool["name"]):
            yield f"tools[{at}].name: is missing"
