"""OpenAI's Responses: a flat list of items, one for each message, call, result and piece of reasoning.

    {"type": "reasoning", …} {"type": "message", "role": "assistant", …} {"type": "function_call", "call_id": "c1", …}
    {"type": "function_call_output", "call_id": "c1", "output": "…"}
                               ⇅
    assistant (reasoning, text, call c1)      tool (result of c1)

Items of the assistant in a row are one message, so that parallel calls stay together. Any item with a `call_id` is a
call or its result, also of tools that run elsewhere (`computer_call`, `shell_call`), unless the provider itself gives
the result (`program`). Every other item is opaque: it keeps its place, and the text names it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import InvalidMessage
from ..messages import FAILED, Enveloped, Item, Message, parts_of, text_of, tool_calls
from .breakpoints import RESPONSES
from .envelope import (
    INTERRUPTED,
    CallIds,
    Spoken,
    as_native,
    as_result,
    body_of,
    call_of,
    function_call,
    native_of,
    part_named,
    read_parts,
    safe_name,
    said_in,
    text_in,
    without_caller,
)

NAME = "openai_responses"
_ROLES = frozenset({"user", "assistant", "system", "developer"})
_FUNCTIONS = ("function_call", "custom_tool_call")
_RESULTS = {"tool_search_call": "tool_search_output"}  # types of results that do not have the name of their call's
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
_NO_IMAGE = f"data:image/png;base64,{_PIXEL}"
"""one pixel, in place of a screenshot that is not shown: the result of a computer has to have one"""
_OF_CLIENTS = frozenset(
    {"mcp_approval_response", "item_reference", "compaction_trigger", "configuration_update", "additional_tools"}
)
"""types of opaque items that the client sends by itself"""


def read(items: Iterable[tuple[str, Item]]) -> list[Message]:
    """Return the messages in *items*, each item with its path for errors. O(items)."""
    messages: list[Message] = []
    spoken: list[Item] = []

    def end() -> None:
        if spoken:
            messages.append(_assistant([*spoken]))
            spoken.clear()

    for path, item in items:
        kind = "item_reference" if is_reference(item) else item.get("type") or "message"
        if not isinstance(kind, str) or not isinstance(item.get("type"), str | None):
            raise InvalidMessage(f"{path}.type", f"expected a str, got {type(item.get('type')).__name__}")
        if kind == "message" and item.get("role") not in _ROLES:
            raise InvalidMessage(f"{path}.role", f"expected one of {', '.join(sorted(_ROLES))}")
        said = item.get("content")
        if kind == "message" and not isinstance(said, str | list) and (said or item["role"] != "assistant"):
            raise InvalidMessage(f"{path}.content", "expected a str or a list of parts")
        if not isinstance(item.get("call_id"), str | None) or (kind in _FUNCTIONS and not item.get("call_id")):
            raise InvalidMessage(f"{path}.call_id", "expected the id of the call (a str)")
        if _is_models(item, kind):
            spoken.append(item)
            continue
        end()
        if (call_id := _answered(item, kind)) is not None:
            content, unread = _said_by_tool(item.get("output"))
            message = as_result(call_id, content, failed=_has_failed(item))
        elif kind == "message":
            content, unread = _content(item["content"])
            message = {"role": item["role"], "content": content}
        else:
            message, unread = {"role": "user", "content": f"[{kind}]"}, [item]
        messages.append(Enveloped(message, as_native(NAME, [item], unread)))
    end()
    return messages


def write(messages: Sequence[Message]) -> list[Item]:
    """Return *messages*, without the system prompt, as items; messages of this format as they came. O(parts).

    An item whose companion is not here is left out (`_with_companions`), and so is what comes again
    (`_without_repeated_ids`); ids and names that are refused are replaced, one id for each call.
    """
    items: list[Item] = []
    kinds: dict[str, str] = {}
    for message in messages:
        native = native_of(message, NAME)
        made = native.items if native is not None else _made(message, kinds)
        if tool_calls(message):
            calls = [item for item in made if item.get("call_id") is not None]
            kinds = {item["call_id"]: _RESULTS.get(item["type"], f"{item['type']}_output") for item in calls}
        items += made
    ids = CallIds(plain=False)
    return [_repaired(item, ids) for item in _with_companions([*_without_repeated_ids(items)])]


def made_by(message: Message, model: str) -> Message:
    """Return *message* with the name of the *model* that made it, if it has items that no other can read."""
    native = native_of(message, NAME)
    if native is None or native.model or not any(map(_is_of_its_model, native.items)):
        return message
    return Enveloped(message, native._replace(model=model))


def readable_by(message: Message, model: str) -> Message:
    """Return *message* without thoughts and encrypted items that another model than *model* made. O(items).

    The items beside them lose their ids: the provider would look for what belonged to them.
    """
    native = native_of(message, NAME)
    if native is None or native.model in ("", model):
        return message
    left = [item for item in native.items if not _is_of_its_model(item)]
    left = [_without_id(item) if _may_lack_id(item) else item for item in left]
    return Enveloped(message, native._replace(items=left))


def _is_of_its_model(item: Item) -> bool:
    """Return whether only the model that made *item* can read it; a thought that is not encrypted is looked up."""
    return bool(item.get("encrypted_content")) or item.get("type") == "reasoning"


def is_reference(item: Item) -> bool:
    """Return whether *item* stands for one that the provider holds; its type may be left out."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and item.keys() <= {"id", "type"})


def _without_repeated_ids(items: Iterable[Item]) -> Iterator[Item]:
    """Yield *items* with ids of items that come once: the provider refuses a second one. O(items).

    A message or a call with an id that came before loses it; another item is left out. An id that begins with "_" is
    none: a framework puts it where a provider gave none, and reads it itself (`__fake_id__` of the Agents SDK).
    """
    taken: set[str] = set()
    for item in items:
        kind, item_id = item.get("type") or "message", str(item.get("id") or "_")
        if item_id.startswith("_") or not (kind == "message" or _is_models(item, kind)):
            yield item
        elif item_id not in taken:
            taken.add(item_id)
            yield item
        elif _may_lack_id(item):
            yield _without_id(item)


def _may_lack_id(item: Item) -> bool:
    return "call_id" in item or (item.get("type") or "message") == "message"


def _without_id(item: Item) -> Item:
    return {key: value for key, value in item.items() if key != "id"}


def _with_companions(items: Sequence[Item]) -> list[Item]:
    """Return *items* without those that the provider refuses alone.

    reasoning                needs an item of the model directly behind it
    mcp_approval_response    needs its mcp_approval_request before it
    program_output           needs its program before it; without it, a call that the program made is one of the model's
    """
    asked = {str(item.get("id")) for item in items if item.get("type") == "mcp_approval_request"}
    programs = {str(item.get("call_id")) for item in items if item.get("type") == "program"}
    kept: list[Item] = []
    follows = False  # whether the item behind is the model's
    for item in reversed(items):
        kind = item.get("type") or "message"
        if kind == "mcp_approval_response" and str(item.get("approval_request_id")) not in asked:
            continue
        if kind == "program_output" and str(item.get("call_id")) not in programs:
            continue
        item = without_caller(item, "caller_id", programs)  # noqa: PLW2901
        if kind == "reasoning" and not follows:
            continue
        kept.append(item)
        follows = _is_models(item, kind)
    return kept[::-1]


def _is_models(item: Item, kind: str) -> bool:
    """Return whether *item* of this *kind* is the model's."""
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in _OF_CLIENTS and _answered(item, kind) is None


def _answered(item: Item, kind: str) -> str | None:
    """Return the id of the call that *item* of this *kind* answers, None if it is no result."""
    given = item.get("call_id", item.get("id") if kind == "local_shell_call_output" else None)
    return given if isinstance(given, str) and kind.endswith("_output") and not _is_hosted(item) else None


def _is_hosted(item: Item) -> bool:
    """Return whether *item* is a call that the provider itself answers, or its answer: both are the model's."""
    return item.get("type") in {"program", "program_output"} or item.get("execution") == "server"


def _repaired(item: Item, ids: CallIds) -> Item:
    """Return *item* with an id of its call and a name that the provider takes, and without an empty list of parts."""
    kind, name = item.get("type") or "message", item.get("name")
    if item.get("content") == [] and "role" in item:
        return {**item, "content": ""}
    if (answered := _answered(item, kind)) is not None:
        new = ids.of_result(answered)
        return {**item, **{key: new for key in ("id", "call_id") if item.get(key) == answered}}
    if isinstance(item.get("call_id"), str) and not _is_hosted(item):
        item = {**item, "call_id": ids.of_call(item["call_id"])}
    if kind in _FUNCTIONS:
        item = {**item, "name": safe_name(str(name))}
    return item


def tools(schemas: Iterable[Message]) -> list[Item]:
    """Return *schemas* of Chat Completions as tools of this format; schemas of this format stay."""
    bodies = [(schema, schema.get("function")) for schema in schemas]
    return [{"type": "function", **body} if isinstance(body, dict) else dict(schema) for schema, body in bodies]


def request(items: list[Item], system: Message | None, _tools: list[Item], ends: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of `client.responses.create`, with breakpoints of the cache at the positions *ends*.

    The instructions can't be marked: the first mark behind them is theirs, too.
    """
    prompt = {"instructions": text_of(system)} if system is not None else {}
    return {**prompt, "input": RESPONSES.mark(items, ends)}


def call(item: Item) -> Message | None:
    """Return *item* as a call of Chat Completions, None if it is no call."""
    if item.get("type") not in _FUNCTIONS:
        return None
    return tool_calls(_assistant([item]))[0]


def _assistant(items: list[Item]) -> Message:
    said = Spoken()
    for item in items:
        match item.get("type", "message"):
            case "message":
                content, unread = _content(item.get("content") or "")
                said.parts.extend(parts_of(content))
                said.hidden.extend(unread)
            case "function_call":
                call_id, name = str(item.get("call_id")), str(item.get("name"))
                said.calls.append(function_call(call_id, name, item.get("arguments", "")))
            case "custom_tool_call":
                body = {"name": str(item.get("name")), "input": str(item.get("input", ""))}
                said.calls.append({"id": str(item.get("call_id")), "type": "custom", "custom": body})
            case "reasoning":
                texts = [*(item.get("summary") or []), *(item.get("content") or [])]
                said.reasoning.extend(str(text.get("text", "")) for text in texts)
                said.hidden.append(item.get("encrypted_content"))
            case kind if isinstance(item.get("call_id"), str) and not _is_hosted(item):
                known = {"type", "id", "call_id", "status"}
                arguments = {key: value for key, value in item.items() if key not in known}
                said.calls.append(function_call(item["call_id"], kind, arguments))
            case _:
                said.opaque.append(item)
    return said.enveloped(NAME, items)


def _content(content: str | list[Item]) -> tuple[str | list[Message], list[Item]]:
    """Return *content* as that of a message, and the parts of it that can't be read."""
    return (content, []) if isinstance(content, str) else read_parts(content, _part)


def _said_by_tool(output: object) -> tuple[str | list[Message], list[Item]]:
    """Return the *output* of a call as `_content` does: of the user's tool, a computer or a shell."""
    if isinstance(output, list) and all(isinstance(each, dict) and "stdout" in each for each in output):
        return "\n".join(str(each[key]) for each in output for key in ("stdout", "stderr") if each.get(key)), []
    if isinstance(output, str | list):
        return _content(output)
    if isinstance(output, dict) and output.get("type") == "computer_screenshot":
        return _content([{**output, "type": "input_image" if output.get("image_url") else "input_file"}])
    return json.dumps(output, ensure_ascii=False), []


def _has_failed(item: Item) -> bool:
    """Return whether *item*, a result, says that the call failed: a patch by its status, a shell by its exit codes."""
    output = item.get("output")
    ends = [body_of(each, "outcome") for each in output if isinstance(each, dict)] if isinstance(output, list) else []
    return item.get("status") == "failed" or any(
        each.get("exit_code") or each.get("type") == "timeout" for each in ends
    )


def _part(part: Item) -> Message | None:
    """Return a part of this format as one of Chat Completions; None if it can't be read."""
    match part.get("type"):
        case "input_text" | "output_text" | "summary_text" | "text" | "refusal" as kind:
            return {"type": "text", "text": str(part.get("refusal" if kind == "refusal" else "text", ""))}
        case "input_image" if part.get("image_url"):
            image = {"url": part["image_url"], **({"detail": part["detail"]} if part.get("detail") else {})}
            return {"type": "image_url", "image_url": image}
        case "input_file":
            kept = {key: part[key] for key in ("file_data", "file_id", "filename") if part.get(key)}
            return {"type": "file", "file": kept}
        case "input_audio":
            return {"type": "input_audio", "input_audio": part.get("input_audio")}
    return None


def _made(message: Message, kinds: Mapping[str, str]) -> list[Item]:
    """Return a message of Chat Completions as items; *kinds* are the types of results, by the ids of their calls."""
    role, content = message["role"], said_in(message)
    if role == "tool":
        call_id = message["tool_call_id"]
        failed = bool(message.get(FAILED)) or content == INTERRUPTED
        return [_made_result(kinds.get(call_id, "function_call_output"), call_id, content, failed=failed)]
    items: list[Item] = []
    if role != "assistant":
        parts = content if isinstance(content, str) else [_made_part(part) for part in content]
        items.append({"role": role, "content": parts or ""})
    elif content or not tool_calls(message):
        made = map(_made_part, parts_of(content))
        items.append(
            {"role": "assistant", "content": "\n".join(part.get("text", f"[{part['type']}]") for part in made)}
        )
    for call in tool_calls(message):
        name, arguments = call_of(call)
        call_id = call["id"]
        if call.get("type") == "custom":
            items.append({"type": "custom_tool_call", "call_id": call_id, "name": name, "input": arguments})
        else:
            items.append({"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments})
    return items


def _made_result(kind: str, call_id: str, content: str | list[Message], *, failed: bool) -> Item:
    """Return the result of a call as an item of this *kind*, whose output has a form of its own."""
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else [*map(_made_part, content)]
    text = "\n".join(str(part["text"]) for part in parts if part["type"] == "input_text")
    output: object = content if isinstance(content, str) else parts
    match kind:
        case "computer_call_output":
            image = next((part["image_url"] for part in parts if part["type"] == "input_image"), _NO_IMAGE)
            output = {"type": "computer_screenshot", "image_url": image}
        case "shell_call_output":
            output = [{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": int(failed)}}]
        case "local_shell_call_output":
            return {"type": kind, "id": call_id, "call_id": call_id, "output": text}
        case "tool_search_output":
            return {"type": kind, "call_id": call_id, "execution": "client", "tools": []}
        case "apply_patch_call_output":
            return {"type": kind, "call_id": call_id, "status": "failed" if failed else "completed", "output": text}
        case _:
            pass
    return {"type": kind, "call_id": call_id, "output": output}


def _made_part(part: Message) -> Item:
    if (text := text_in(part)) is not None:
        return {"type": "input_text", "text": text}
    image, file = body_of(part, "image_url"), body_of(part, "file")
    match part.get("type"):
        case "image_url" if url := image.get("url"):
            return {"type": "input_image", "image_url": url, "detail": image.get("detail") or "auto"}
        case "file" if file:
            return {"type": "input_file", **file}
    return {**part_named(part), "type": "input_text"}
