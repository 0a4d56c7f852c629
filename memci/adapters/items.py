"""Items of Chat Completions that adapters write, with what only the framework can read.

    tool_schema("lookup", "Looks up.", {…})      {"type": "function", "function": {"name": "lookup", …}}
    media("data:image/png;base64,…", "image/png")      {"type": "image_url", "image_url": {"url": "data:…"}}
    exact({"role": "user", "content": "Hi"}, {"text": "Hi", "cache": True}, {"text": "Hi"})
        {"role": "user", "content": "Hi", "own": {"text": "$content", "cache": True}}

Where a framework's message holds more than its item, the item keeps the message's own form under `own`, with references
to what the item has already. So an adapter loads what it dumped, whatever types the framework has.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import InvalidSetting
from ..formats.envelope import function_call, split_data_url
from ..formats.usage import CallsCost
from ..messages import text_of

Item = dict[str, Any]
OWN = "own"  # the key of an item with what only the framework can read
_SHORT = 12  # characters of a value that costs no more than a reference to it
_URLS = str.maketrans("-_", "+/")  # from the base64 of URLs to the standard one


def check_name(name: object, example: str) -> str:
    """Return the *name* of a conversation.

    Raises:
        InvalidSetting: If it is empty; *example* shows how to give one.
    """
    if not name:
        raise InvalidSetting("conversation", f"say which conversation it is: {example}")
    return str(name)


def tool_schema(name: str, description: str | None, parameters: Any) -> Item:
    """Return the schema of a tool in the form of Chat Completions."""
    described = {"description": description} if description else {}
    return {"type": "function", "function": {"name": name, **described, "parameters": parameters}}


def usage_of(read: int | None, written: int | None, cached: int | None) -> CallsCost | None:
    """Return the cost of a call as a framework reports it; None if the framework does not know it."""
    return CallsCost(1, read, cached or 0, 0, written or 0) if read else None


def data_url(kind: str, data: bytes) -> str:
    """Return *data* of the media type *kind* as a URL."""
    return f"data:{kind};base64,{b64encode(data).decode()}"


def media(url: str, kind: str, name: str | None = None) -> Item:
    """Return the media at *url* as a part: an image if its media type *kind* is one, else a file."""
    if kind.startswith("image"):
        return {"type": "image_url", "image_url": {"url": url}}
    if not url.startswith("data:"):
        form = next((each for each in ("audio", "video") if kind.startswith(each)), "document") + "_url"
        return {"type": form, form: {"url": url}}
    return {"type": "file", "file": {"file_data": url, **({"filename": name} if name else {})}}


def media_in(part: Item) -> tuple[str, str, str | None] | None:
    """Return the media type of *part*, its URL and its name, as `media` got them; None if it is no media."""
    kind = str(part.get("type"))
    body = part.get(kind)
    if not isinstance(body, dict) or not (url := body.get("url") or body.get("file_data")):
        return None
    data = split_data_url(str(url))
    return data[0] if data else kind.removesuffix("_url") + "/*", str(url), body.get("filename")


def assistant_item(content: Any, calls: list[Item]) -> Item:
    """Return a message of the assistant, with its calls if it has any."""
    item: Item = {"role": "assistant", "content": content or (None if calls else "")}
    return item | ({"tool_calls": calls} if calls else {})


def exact(item: Item, own: Any, read: Any) -> Item:
    """Return *item*, with the framework's *own* form of the message unless *read*, the form of the item alone, is it.

    *own* is JSON, which may hold bytes. Its values that stand in *item* become references to them.
    """
    return item if own == read else {**item, OWN: _packed(own, dict(_values(item)))}


def own_of(item: Item) -> Any:
    """Return the framework's own form that `exact` stored in *item*; None if there is none, or if it was clipped."""
    try:
        return _unpacked(item[OWN], item) if OWN in item else None
    except (LookupError, TypeError, ValueError):
        return None


def _values(value: Any, path: str = "$") -> Iterator[tuple[str, str]]:
    """Yield the long texts in *value* with references to them, the base64 of a data URL with one of its own."""
    if isinstance(value, str) and len(value) >= _SHORT:
        yield value, path
        if (data := split_data_url(value)) is not None:
            yield data[1], f"$64/{path[1:]}"
    elif isinstance(value, (dict, list)):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(each, f"{path}/{key}" if path != "$" else f"${key}")


def _packed(own: Any, known: Mapping[str, str]) -> Any:
    if isinstance(own, bytes):
        data = b64encode(own).decode()
        return f"$bytes/{known.get(data, '$=' + data)[1:]}"
    if isinstance(own, str):
        found = known.get(own) or (known.get(own.translate(_URLS)) if len(own) >= _SHORT else None)
        return found or ("$=" + own if own.startswith("$") else own)
    if isinstance(own, dict):
        if found := known.get(json.dumps(own, ensure_ascii=False, default=str)):
            return f"$json/{found[1:]}"  # the arguments of a call
        return {key: _packed(each, known) for key, each in own.items()}
    return [_packed(each, known) for each in own] if isinstance(own, (list, tuple)) else own


def _unpacked(packed: Any, item: Item) -> Any:
    if isinstance(packed, dict):
        return {key: _unpacked(each, item) for key, each in packed.items()}
    if isinstance(packed, list):
        return [_unpacked(each, item) for each in packed]
    if not isinstance(packed, str) or not packed.startswith("$"):
        return packed
    if packed.startswith("$="):
        return packed[2:]
    kind, _, rest = packed[1:].partition("/")
    if kind == "bytes":
        return b64decode(_unpacked("$" + rest, item))
    if kind == "json":
        return json.loads(_unpacked("$" + rest, item))
    value: Any = item
    for key in (rest if kind == "64" else packed[1:]).split("/"):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value if kind != "64" else (split_data_url(value) or ("", None))[1]


def arguments_as_given(text: str) -> Any:
    """Return the arguments of a call as an object, or *text* itself if the object would be written differently."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    exact = isinstance(value, dict) and function_call("", "", value)["function"]["arguments"] == text
    return value if exact else text


def text_within(content: Any) -> str:
    """Return the text in the *content* of a message, a str or parts."""
    return text_of({"role": "user", "content": content})
