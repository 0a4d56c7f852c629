"""Items of Chat Completions that adapters write: schemas of tools, usage, media, arguments of calls.

    tool_schema("lookup", "Looks up.", {…})      {"type": "function", "function": {"name": "lookup", …}}
    media("data:image/png;base64,…", "image/png")      {"type": "image_url", "image_url": {"url": "data:…"}}

Adapters of all frameworks use them.
"""

import json
from base64 import b64encode
from typing import Any

from ..errors import InvalidSetting
from ..formats.envelope import function_call
from ..messages import text_of

Item = dict[str, Any]


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


def usage_of(read: int | None, written: int | None, cached: int | None) -> Item | None:
    """Return the usage of a call in the form of Chat Completions; None if the framework does not know it."""
    if not read:
        return None
    details = {"cached_tokens": cached or 0}
    return {"prompt_tokens": read, "completion_tokens": written or 0, "prompt_tokens_details": details}


def data_url(kind: str, data: bytes) -> str:
    """Return *data* of the media type *kind* as a URL."""
    return f"data:{kind};base64,{b64encode(data).decode()}"


def media(url: str, kind: str, name: str | None = None) -> Item:
    """Return the media at *url* as a part: an image if its media type *kind* is one, else a file."""
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url, **({"filename": name} if name else {})}}


def assistant_item(content: Any, calls: list[Item], thoughts: list[Item]) -> Item:
    """Return a message of the assistant, with its calls and thoughts if it has any."""
    item: Item = {"role": "assistant", "content": content or (None if calls else "")}
    if calls:
        item["tool_calls"] = calls
    return item | ({"thinking_blocks": thoughts} if thoughts else {})


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
