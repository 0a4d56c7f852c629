"""Providers' message formats: each one reads its native items into messages, and writes messages as native items.

    openai_chat          Chat Completions: the form in which memci itself understands messages
    openai_responses     Responses: a flat list of items
    anthropic            Messages: blocks, results within the user's messages
    gemini               contents: parts, results within the user's turns

    formats.read("anthropic", items)      ──▶  messages, each with the exact items that it was made from
    formats.write("gemini", messages)     ──▶  items: those of this format as they came, others made from the message

This package knows nothing of windows, tokens or storage, and needs no SDK.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import InvalidSetting, brief
from ..messages import Message
from . import anthropic, gemini, openai_chat, openai_responses
from .envelope import Item

_FORMATS: Mapping[str, Any] = {each.NAME: each for each in (openai_chat, openai_responses, anthropic, gemini)}
FORMATS = tuple(_FORMATS)
"""the names of the formats"""


def read(format: str, items: Iterable[Item], *, waiting: Iterable[tuple[str, str]] = ()) -> list[Message]:  # noqa: A002
    """Return the messages that *items* hold, each with the items that it was made from. O(items).

    Args:
        format: One of `FORMATS`.
        items: Native items, as JSON objects.
        waiting: (id, name) of the calls that have no result yet: Gemini may answer them by name.

    Raises:
        InvalidSetting: If there is no such format.
        InvalidMessage: If an item is none of this format; the error names the path.
    """
    check(format)
    messages: list[Message] = gemini.read(items, waiting) if format == gemini.NAME else _FORMATS[format].read(items)
    return messages


def write(format: str, messages: Sequence[Message]) -> list[Item]:  # noqa: A002
    """Return *messages*, without the system prompt, as items of *format*; what came in it stands as it came. O(parts).

    Raises:
        InvalidSetting: If there is no such format.
    """
    check(format)
    items: list[Item] = _FORMATS[format].write(messages)
    return items


def tools(format: str, schemas: Iterable[Message]) -> list[Item]:  # noqa: A002
    """Return the *schemas* of tools, in the form of Chat Completions, as *format* wants them."""
    check(format)
    made: list[Item] = _FORMATS[format].tools(schemas)
    return made


def check(format: object) -> None:  # noqa: A002
    """Raise InvalidSetting unless *format* is the name of one."""
    if format not in FORMATS:
        raise InvalidSetting("format", f"expected one of {', '.join(map(repr, FORMATS))}, got {brief(format)}")
