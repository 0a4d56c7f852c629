r"""smolagents' prose as messages of Chat Completions, and back: a step's calls and their results are one group.

    "Calling tools:\n[{'id': 'c1', …}]", "Observation:\nfound"  ⇄  {"tool_calls": […]}, {"role": "tool", …}

The prose that is written back is the same, byte for byte.
"""

import ast
from base64 import b64decode
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO

from PIL import Image
from smolagents.models import ChatMessage, MessageRole, get_clean_message_list

from ..formats.envelope import function_call
from ..messages import parts_of, text_of
from .items import Item, arguments_as_given, media_in, text_within

_CALLS, _RESULTS, _ERROR = "Calling tools:\n", "Observation:\n", "Error:\n"
Group = tuple[ChatMessage, ...]  # one message, or the calls of a step with their results


def group_steps(messages: Iterable[ChatMessage]) -> list[Group]:
    """Group *messages*: the calls of a step with their results and images. An error may belong to no call."""
    groups: list[Group] = []
    for message in messages:
        came_back = message.role == MessageRole.TOOL_RESPONSE and not text_within(message.content).startswith(_ERROR)
        seen = message.role == MessageRole.USER and all(part["type"] == "image" for part in parts_of(message.content))
        if (came_back or seen) and groups and groups[-1][0].role == MessageRole.TOOL_CALL:
            groups[-1] = (*groups[-1], message)
        else:
            groups.append((message,))
    return groups


def dump(group: Group) -> Iterator[Item]:
    """Write *group* as messages of Chat Completions: each call with its line of the observation, else the first one."""
    first, *results = group
    text = text_within(first.content)
    if first.role != MessageRole.TOOL_CALL:
        role = "assistant" if first.role == MessageRole.ASSISTANT else "user"
        said = _parts(first)
        if text or len(said) > 1:
            yield {"role": role, "content": said if len(said) > 1 else text}
        return
    calls = [
        function_call(str(each["id"]), each["function"]["name"], each["function"]["arguments"])
        for each in ast.literal_eval(text.removeprefix(_CALLS))
    ]
    yield {"role": "assistant", "content": None, "tool_calls": calls}
    if results:
        images = [part for each in results if each.role == MessageRole.USER for part in _parts(each)]
        texts = [text_within(each.content) for each in results if each.role != MessageRole.USER]
        found = "\n".join(texts).removeprefix(_RESULTS)
        lines = found.split("\n")
        texts = lines if len(lines) == len(calls) and all(lines) else [found, *[""] * (len(calls) - 1)]
        for call, line in zip(calls, texts, strict=True):
            content = [*images, *parts_of(line)] if images else line
            yield {"role": "tool", "tool_call_id": call["id"], "content": content}
            images = []


def load(items: Sequence[Item]) -> Iterator[Group]:
    """Read messages of Chat Completions."""
    made: list[ChatMessage] = []
    for item in items:
        if calls := item.get("tool_calls"):
            made.append(message_of(MessageRole.TOOL_CALL, _CALLS + str([*map(_call, calls)])))
        elif item["role"] == "tool":
            if images := [_piece(part) for part in parts_of(item["content"]) if part["type"] != "text"]:
                made.append(ChatMessage(MessageRole.USER, images))
            if text := text_of(item):
                follows = made and made[-1].role == MessageRole.TOOL_RESPONSE
                before = text_within(made.pop().content) + "\n" if follows else _RESULTS
                made.append(message_of(MessageRole.TOOL_RESPONSE, before + text))
        else:
            role = MessageRole.ASSISTANT if item["role"] == "assistant" else MessageRole.USER
            made.append(ChatMessage(role, [*map(_piece, parts_of(item["content"]))]))
    return iter(group_steps(made))


def _call(call: Item) -> Item:
    """Return *call* as smolagents writes it: arguments that are an object as one."""
    name, text = call["function"]["name"], call["function"]["arguments"]
    return {**call, "function": {"name": name, "arguments": arguments_as_given(text)}}


def _parts(message: ChatMessage) -> list[Item]:
    """Return the content of *message* as parts of Chat Completions."""
    (item,) = get_clean_message_list([message], convert_images_to_image_urls=True)
    return list(item["content"])


def _piece(part: Item) -> Item:
    """Return *part* of Chat Completions as smolagents has it: images are objects."""
    _, url, _ = media_in(part) or ("", "", None)
    if not url.startswith("data:image/"):
        return part
    return {"type": "image", "image": Image.open(BytesIO(b64decode(url.partition(",")[2])))}


def message_of(role: MessageRole, text: str) -> ChatMessage:
    """Return *text* as a message."""
    return ChatMessage(role, [{"type": "text", "text": text}])
