"""Gemini's contents: turns of `user` and `model`, made of parts; calls and results are parts, too.

    {"role": "model", "parts": [{"text": …}, {"functionCall": {"name": "book", "args": {…}}, "thoughtSignature": "…"}]}
    {"role": "user",  "parts": [{"functionResponse": {"name": "book", "response": {…}}}]}
                               ⇅
    assistant (text, call book)      tool (result of book)

Calls may have no id: they get one here (`gemini-7`), which is not sent, and a result belongs to the first waiting call
of its name. Keys may be in camelCase, as on the wire, or in snake_case. Understood are text, thoughts, calls, results,
inline data and files. Every other part is opaque: it keeps its place, and the text names it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from ..errors import InvalidMessage
from ..messages import FAILED, Enveloped, Item, Message, parts_of, text_of, tool_calls
from .envelope import (
    NO_NAME,
    NO_TEXT,
    Spoken,
    arguments_as_object,
    as_native,
    as_result,
    as_user,
    body_of,
    call_of,
    content_of,
    data_in,
    described,
    function_call,
    joined,
    read_parts,
    safe_name,
    said_in,
    split_results,
    text_in,
)
from .usage import snake_case

NAME = "gemini"
UNSIGNED = "skip_thought_signature_validator"
"""the signature of a call that another model made (ai.google.dev/gemini-api/docs/thought-signatures)"""
_STANDARD = str.maketrans("-_", "+/")  # from the base64 of URLs, which the SDK writes, to the standard one
_OWN_ID = re.compile(r"gemini-\d+")  # ids that memci gave to calls without one
_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
"""names of functions (ai.google.dev/api/caching, FunctionDeclaration)"""
_OF_RESULTS = ("function", "tool")  # roles of results in examples of the client's; a request has "user" for them
_CALLS = ("functionCall", "function_call", "functionResponse", "function_response")


def read(items: Iterable[tuple[str, Item]], waiting: Iterable[tuple[str, str]] = (), first: int = 0) -> list[Message]:
    """Return the messages in *items*, each item with its path for errors. O(parts).

    *waiting* are the calls without a result: (id, name). New ids of calls are made from numbers after *first*.
    """
    messages: list[Message] = []
    calls = list(waiting)
    made = first + len(calls)
    for path, item in items:
        role, parts = item.get("role", "user"), item.get("parts")
        if role not in ("user", "model", *_OF_RESULTS):
            raise InvalidMessage(f"{path}.role", "expected 'user' or 'model'")
        if role == "model" and parts is None:
            parts = []  # the model said nothing
        if (
            not isinstance(parts, list)
            or not (parts or role == "model")
            or not all(isinstance(part, dict) for part in parts)
        ):
            raise InvalidMessage(f"{path}.parts", "expected a list of parts that is not empty")
        for number, part in enumerate(parts):
            _check_names(part, f"{path}.parts[{number}]")
        if role == "model":
            message = _assistant(item, parts, made)
            made += len(tool_calls(message))
            calls = [(call["id"], call_of(call)[0]) for call in tool_calls(message)]
            messages.append(message)
        else:
            messages += _user(item, parts, calls)
    return messages


def write(messages: Sequence[Message]) -> list[Item]:
    """Return *messages*, without the system prompt, as contents. O(parts).

    A message that came in this format is written as it came, except for empty texts, which are refused. The user
    speaks first; the results of one step share one content, and so do messages of the model in a row.
    """
    names: dict[str, str] = {}  # of the calls before, by their ids, which may come again in a later message

    def made(message: Message) -> Item:
        return _made(message, names)

    def named() -> Iterator[Message]:
        for message in messages:
            names.update((call["id"], call_of(call)[0]) for call in tool_calls(message))
            yield message

    items = joined(named(), NAME, made, "parts", parts_of, apart="model")
    for at, item in enumerate(items):
        if item.get("role") not in ("user", "model"):  # older clients leave it out, or name the function
            items[at] = {**item, "role": "user"}
        parts = parts_of(item.get("parts"))
        if any(_is_empty(part) or _has_odd_name(part) for part in parts):
            said = [_named(part) for part in parts if not _is_empty(part)]
            items[at] = {**items[at], "parts": said or [{"text": NO_TEXT}]}
    if items and items[0].get("role") == "model":
        items.insert(0, {"role": "user", "parts": [{"text": NO_TEXT}]})
    return items


def _has_odd_name(part: Item) -> bool:
    """Return whether *part* calls or answers a function by a name that this format refuses."""
    body = _value(part, "functionCall") or _value(part, "functionResponse")
    return body is not None and not _NAME.fullmatch(str(body.get("name")))


def _named(part: Item) -> Item:
    """Return *part* with a name that this format takes."""
    if not _has_odd_name(part):
        return part
    key = next(key for key in _CALLS if part.get(key) is not None)
    name = safe_name(str(part[key].get("name")))
    return {**part, key: {**part[key], "name": name if _NAME.fullmatch(name) else f"_{name}"}}


def tools(schemas: Iterable[Message]) -> list[Item]:
    """Return *schemas* of Chat Completions as one tool of this format; schemas of this format stay."""
    functions, others = [], []
    for schema in schemas:
        if isinstance(body := schema.get("function"), Mapping):
            functions.append({**described(body), "parametersJsonSchema": body.get("parameters") or {"type": "object"}})
        else:
            others.append(dict(schema))
    return [*others, *([{"functionDeclarations": functions}] if functions else [])]


def request(items: list[Item], system: Message | None, tools_: list[Item], _ends: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of `client.models.generate_content`. Its cache needs no breakpoints."""
    config: dict[str, Any] = {"system_instruction": text_of(system)} if system is not None else {}
    if tools_:
        config["tools"] = tools_
    return {"contents": items, **({"config": config} if config else {})}


def call(item: Item) -> Message | None:
    """Return *item*, a part or its call, as a call of Chat Completions; None if it is no call."""
    body = _value(item, "functionCall") or (item if "args" in item and "name" in item else None)
    if not isinstance(body, dict):
        return None
    name = str(body.get("name"))
    return function_call(str(body.get("id") or name), name, body.get("args") or {})


def _check_names(part: Item, path: str) -> None:
    for kind in ("functionCall", "functionResponse"):
        body = _value(part, kind)
        if body is None:
            continue
        if not isinstance(body, dict) or not isinstance(body.get("name"), str):
            raise InvalidMessage(f"{path}.{kind}.name", "expected the name of the function (a str)")
        if not isinstance(body.get("id"), str | None):
            raise InvalidMessage(f"{path}.{kind}.id", "expected the id of the call (a str)")


def _value(part: Item, key: str) -> Any:
    """Return the value of *key*, in camelCase or in snake_case; None if there is none."""
    return part.get(key, part.get(snake_case(key)))


def _assistant(item: Item, parts: Sequence[Item], made: int) -> Message:
    said = Spoken()
    for part in parts:
        call, signature = _value(part, "functionCall"), _value(part, "thoughtSignature")
        if call is not None:
            call_id = call.get("id") or f"gemini-{made + len(said.calls)}"
            said.calls.append(function_call(call_id, str(call.get("name")), call.get("args") or {}))
        elif isinstance(part.get("text"), str) and part.get("thought"):
            said.reasoning.append(part["text"])
        elif isinstance(part.get("text"), str):
            said.parts.append({"type": "text", "text": part["text"]})
        elif not signature or len(part) > 1:
            said.opaque.append(part)
            continue
        said.hidden.append(signature)
    return said.enveloped(NAME, [item])


def _user(item: Item, parts: Sequence[Item], waiting: list[tuple[str, str]]) -> list[Enveloped]:
    """Return a message for each result, and one for each run of other parts.

    Media directly behind a result are a part of it, as `write` has them.
    """
    messages: list[Enveloped] = []
    for result, own in split_results(parts, lambda part: _value(part, "functionResponse") is not None):
        unread: list[Item] = []
        if result:
            message = _result(_value(own[0], "functionResponse"), waiting)
        else:
            beside = takewhile(lambda part: bool(_value(part, "inlineData") or _value(part, "fileData")), own)
            media = list(beside) if messages else []
            if media:
                last = messages[-1]
                native = last.native._replace(items=[{**item, "parts": [*last.native.items[0]["parts"], *media]}])
                content = [*parts_of(last["content"]), *parts_of(read_parts(media, _part)[0])]
                messages[-1] = Enveloped({**last, "content": content}, native)
            own = own[len(media) :]  # noqa: PLW2901 -- the rest of it
            said, unread = read_parts(own, _part)
            message = {"role": "user", "content": said}
        if own:
            items = [{**item, "parts": own}]
            messages.append(Enveloped(message, as_native(NAME, items, unread, joins=bool(messages))))
    return messages


def _result(answer: Item, waiting: list[tuple[str, str]]) -> Message:
    """Return the message of an *answer* to one of the calls that are *waiting*, and take the call out of them."""
    name, call_id, response = str(answer.get("name")), answer.get("id"), answer.get("response") or {}
    # a call without an id gets another one from memci each time that it is read: the name finds it then
    matches = [*(each for each in waiting if each[0] == call_id), *(each for each in waiting if each[1] == name)]
    if matches:
        waiting.remove(matches[0])
    said = response if isinstance(response, Mapping) else {"output": response}
    failed = bool(said.get("error")) and not {"output", "result"} & said.keys()
    text = said.get("output", said.get("result", said.get("error") if len(said) == 1 else None))
    text = text if isinstance(text, str) else call_of(function_call("", "", response))[1]
    media = read_parts(parts_of(answer.get("parts")), _part)[0]
    content = content_of([*parts_of(text), *parts_of(media)]) or ""
    return as_result(matches[0][0] if matches else str(call_id or name), content, failed=failed)


def _part(part: Item) -> Message | None:
    """Return a part of the user, or of a result, as one of Chat Completions; None if it can't be read."""
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    data, file = _value(part, "inlineData"), _value(part, "fileData")
    if isinstance(data, Mapping):
        kind, content = str(_value(dict(data), "mimeType")), str(data.get("data")).translate(_STANDARD)
        if kind.startswith("image/"):
            return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{content}"}}
        if kind.startswith("audio/"):
            return {"type": "input_audio", "input_audio": {"data": content, "format": kind[6:]}}
        return {"type": "file", "file": {"file_data": f"data:{kind};base64,{content}"}}
    if isinstance(file, Mapping):
        return {"type": "file", "file": {"file_id": str(_value(dict(file), "fileUri"))}}
    return None


def _is_empty(part: Item) -> bool:
    """Return whether *part* is an empty text, and carries no signature."""
    return part.get("text") == "" and not _value(part, "thoughtSignature")


def _made(message: Message, names: Mapping[str, str]) -> Item:
    """Return a message of Chat Completions as a content."""
    if message["role"] == "tool":
        call_id, text = message["tool_call_id"], text_of(message)
        own = {} if _OWN_ID.fullmatch(call_id) else {"id": call_id}
        answer = {
            **own,
            "name": names.get(call_id) or NO_NAME,
            "response": {"error" if message.get(FAILED) else "output": text},
        }
        media = [made for part in parts_of(message["content"]) if "text" not in (made := _made_part(part))]
        return {"role": "user", "parts": [{"functionResponse": answer}, *media]}
    message = as_user(message)
    parts = [_made_part(part) for part in parts_of(said_in(message))]
    for call in tool_calls(message):
        name, arguments = call_of(call)
        own = {} if _OWN_ID.fullmatch(call["id"]) else {"id": call["id"]}
        made = {"functionCall": {**own, "name": name, "args": arguments_as_object(arguments)}}
        parts.append(made if call is not tool_calls(message)[0] else {**made, "thoughtSignature": UNSIGNED})
    return {"role": "model" if message["role"] == "assistant" else "user", "parts": parts or [{"text": NO_TEXT}]}


def _made_part(part: Message) -> Item:
    if (text := text_in(part)) is not None:
        return {"text": text}
    if (data := data_in(part)) is not None:
        return {"inlineData": {"mimeType": data[0], "data": data[1]}}
    audio = body_of(part, "input_audio")
    match part.get("type"):
        case "image_url" if url := body_of(part, "image_url").get("url"):
            return {"fileData": {"fileUri": url}}
        case "input_audio" if audio.get("data"):
            return {"inlineData": {"mimeType": f"audio/{audio.get('format')}", "data": audio.get("data")}}
        case "file" if uri := body_of(part, "file").get("file_id"):
            return {"fileData": {"fileUri": uri}}
        case kind:
            return {"text": f"[{kind}]"}
