"""The grammar of Anthropic's Messages.

reference   https://platform.claude.com/docs/en/api/messages/create
calling     https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
thinking    https://platform.claude.com/docs/en/build-with-claude/extended-thinking
caching     https://platform.claude.com/docs/en/build-with-claude/prompt-caching
system      https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
images      https://platform.claude.com/docs/en/build-with-claude/vision
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")  # ids of calls (reference: tool_use)
_TOOL: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # names of tools (reference: tools)
_TYPES: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_THINKING: Final = _TYPES["thoughts"]
_SERVERS: Final = re.compile(r"server_tool_use|(?!tool_result).+_tool_result|container_upload")
"""blocks of tools that the provider runs"""
_SERVER_USE: Final = re.compile(r"(server|mcp)_tool_use")
_SERVER_RESULT: Final = re.compile(r"(?!tool_result).+_tool_result")
_MOST_MARKS: Final = 4


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what Messages would refuse in *request*: the arguments of `client.messages.create`."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages: a list that is not empty is required"
        return
    if messages[0].get("role") != "user":
        yield "messages[0].role: the user speaks first"  # reference: messages
    used: set[str] = set()
    asked: list[str] = []
    running: set[str] = set()  # the provider's own tools that wait for the client's
    for at, message in enumerate(messages):
        path, role = f"messages[{at}]", message.get("role")
        if role not in {"user", "assistant", "system"}:
            yield f"{path}.role: {role!r} is no role"
            continue
        content = message.get("content")
        if isinstance(content, str):
            if not content.strip():  # reference: a text is not empty, and not only white space
                yield f"{path}.content: is empty"
            blocks: Sequence[Mapping[str, Any]] = ()
        elif not isinstance(content, list) or not content:
            yield f"{path}.content: expected a str or a list of blocks that is not empty"
            blocks = ()
        else:
            blocks = content
        if role == "system":
            yield from _place(messages, at)
        yield from _answers(blocks, asked, path)
        asked = []
        for number, block in enumerate(blocks):
            where = f"{path}.content[{number}]"
            yield from _block(block, role, where)
            if block.get("type") == "tool_use":
                if block.get("id") in used:  # reference: ids of calls are unique in a request
                    yield f"{where}.id: {block['id']!r} is that of another call"
                used.add(str(block.get("id")))
                asked.append(str(block.get("id")))
        if role == "assistant":
            yield from _order(blocks, path)
            yield from _server_tools(blocks, path, running, last=at == len(messages) - 1)
    if asked:
        yield f"messages: the calls {asked} at the end have no result"
    yield from _system(request.get("system", ()))
    yield from _tools(request.get("tools", ()))
    marks = sum(_marks(request.get(key)) for key in ("tools", "system", "messages"))
    if marks > _MOST_MARKS:  # caching: up to four breakpoints
        yield f"{marks} breakpoints of the cache, where {_MOST_MARKS} are allowed"


def _place(messages: Sequence[Mapping[str, Any]], at: int) -> Iterator[str]:
    """Yield violations in the place of the system message *at* (system): behind the user's, and before an answer."""
    if at == 0 or messages[at - 1].get("role") != "user":
        yield f"messages[{at}]: a system message is not behind one of the user"
    if at + 1 < len(messages) and messages[at + 1].get("role") != "assistant":
        yield f"messages[{at}]: a system message is not before one of the assistant"


def _answers(blocks: Sequence[Mapping[str, Any]], asked: Sequence[str], path: str) -> Iterator[str]:
    """Yield violations in the results among *blocks* (calling): all are in the next message, before other blocks."""
    kinds = [block.get("type") for block in blocks]
    given = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
    if sorted(given) != sorted(asked):
        yield f"{path}: results of {given}, where the message before has the calls {list(asked)}"
    if "tool_result" in kinds[len(given) :]:
        yield f"{path}: a block comes before a tool_result"


def _order(blocks: Sequence[Mapping[str, Any]], path: str) -> Iterator[str]:
    """Yield violations in the order of an assistant's *blocks*."""
    kinds = [str(block.get("type")) for block in blocks]
    if any(map(_SERVERS.fullmatch, kinds)):
        return  # thoughts, texts and calls may alternate between the steps of the provider's own tools
    if any(kind in _THINKING for kind in kinds) and kinds[0] not in _THINKING:
        yield f"{path}.content[0]: thoughts come first"  # thinking: a message with thoughts begins with them
    uses = kinds.count("tool_use")
    if "tool_use" in kinds[: len(kinds) - uses]:
        yield f"{path}: a block comes after a tool_use"  # calling: calls are the end of a message


def _server_tools(blocks: Sequence[Mapping[str, Any]], path: str, running: set[str], *, last: bool) -> Iterator[str]:
    """Yield violations in the tools that the provider runs (calling): their results are in the same message.

    The last message may wait for them; one that also calls a tool of the client gets them in a later message.
    """
    kinds = [str(block.get("type")) for block in blocks]
    waits = last or "tool_use" in kinds
    asked = {str(block.get("id")) for block, kind in zip(blocks, kinds, strict=True) if _SERVER_USE.fullmatch(kind)}
    given = {
        str(block.get("tool_use_id"))
        for block, kind in zip(blocks, kinds, strict=True)
        if _SERVER_RESULT.fullmatch(kind)
    }
    if given - asked - running:
        yield f"{path}: results of {sorted(given - asked - running)}, where no tool of the provider has these ids"
    running |= asked
    running -= given
    if asked - given and not waits:
        yield f"{path}: the provider's tools {sorted(asked - given)} have no result"


def _block(block: Mapping[str, Any], role: str, path: str) -> Iterator[str]:
    kind = block.get("type")
    allowed = kind in _TYPES[role] if role in {"user", "system"} else True
    if not isinstance(kind, str) or not allowed or (role == "assistant" and kind != "text" and kind in _TYPES["user"]):
        yield f"{path}.type: {kind!r} may not be in a message of the {role}"
    if "cache_control" in block and kind in _THINKING:
        yield f"{path}.cache_control: thoughts can't be marked"  # caching: what can't be cached
    if kind == "text" and not str(block.get("text") or "").strip():
        yield f"{path}.text: is empty"  # reference: a text is not empty, and not only white space
    if kind in _THINKING and not all(isinstance(block.get(key), str) for key in _THINKING[kind]):
        yield f"{path}: a thought has {' and '.join(_THINKING[kind])}"
    if kind in {"image", "document"}:
        yield from _source(block, path)
    if kind == "tool_use":
        if not _ID.fullmatch(str(block.get("id"))):
            yield f"{path}.id: {block.get('id')!r} has other characters than letters, digits, _ and -"
        if not isinstance(block.get("name"), str) or not _TOOL.fullmatch(block["name"]):
            yield f"{path}.name: {block.get('name')!r} is no name of a tool"
        if not isinstance(block.get("input"), dict):
            yield f"{path}.input: expected an object"
    if kind == "tool_result":
        content = block.get("content", "")
        if not isinstance(content, str | list):
            yield f"{path}.content: expected a str or a list of blocks"
        for number, each in enumerate(content if isinstance(content, list) else ()):
            if each.get("type") not in _TYPES["result"]:
                yield f"{path}.content[{number}].type: {each.get('type')!r} may not be in a result"
            yield from _block(each, "result", f"{path}.content[{number}]")


def _source(block: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield violations in the source of an image or a document (images; reference: document)."""
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    media = source.get("media_type") if isinstance(source, dict) else None
    texts = {"base64": "data", "text": "data", "url": "url", "file": "file_id"}
    if kind == "content" and block["type"] == "document":
        return
    if kind not in texts or (kind == "text" and block["type"] == "image"):
        yield f"{path}.source.type: {kind!r} is no type of a source"
    elif not isinstance(source, dict) or not isinstance(source.get(texts[kind]), str) or not source[texts[kind]]:
        yield f"{path}.source.{texts[kind]}: is missing"
    elif kind == "base64" and media not in (_TYPES["images"] if block["type"] == "image" else {"application/pdf"}):
        yield f"{path}.source.media_type: {media!r} is no media type of {block['type']}s"
    elif kind == "url" and not source["url"].startswith(("https://", "http://")):
        yield f"{path}.source.url: is no URL"


def _system(system: Any) -> Iterator[str]:
    for at, block in enumerate(() if isinstance(system, str) else system):
        yield from _block(block, "system", f"system[{at}]")


def _tools(tools: Any) -> Iterator[str]:
    names = [tool.get("name") for tool in tools]
    if len({*names}) < len(names):
        yield f"tools: two tools have the same name: {names}"  # reference: names are unique
    for at, tool in enumerate(tools):
        if not _TOOL.fullmatch(str(tool.get("name"))):
            yield f"tools[{at}].name: {tool.get('name')!r} is no name of a tool"
        if "type" not in tool and (tool.get("input_schema") or {}).get("type") != "object":
            yield f"tools[{at}].input_schema: expected the schema of an object"


def _marks(value: Any) -> int:
    """Return the number of breakpoints in *value*, at any depth."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(_marks(value[key]) for key in ("content",) if key in value)
    return sum(map(_marks, value)) if isinstance(value, list) else 0
