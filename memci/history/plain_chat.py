"""Plain chats: what other programs keep of a conversation becomes a context.

    [{"role": "system", …}, {"role": "user", …}, …]    {"messages": […]}    or a message per line

Its messages are appended one after another to a context in RAM, which then goes to the store as a whole. This module
knows nothing of windows; it is told how to open a context.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..errors import InvalidMessage, InvalidSetting
from ..messages import Message, MessageLike, text_of
from ..storage import EphemeralStorage, Storage
from .export import exported
from .import_ import check_free, imported
from .lines import fields_of

_SYSTEM = ("system", "developer")


class Appending(Protocol):
    """What is needed of a context."""

    def append_turn(self, *messages: MessageLike) -> object:
        """Store *messages*."""
        ...


def chat_of(lines: Iterable[str]) -> list[Message]:
    """Return the messages of the chat that *lines* are. O(characters).

    Raises:
        InvalidSetting: If they are none; it says which line.
    """
    texts = [line.rstrip("\r\n") for line in lines]
    try:
        whole = fields_of("\n".join(texts))
    except ValueError:
        return [
            _message(_value(number, text), f"line {number:,}") for number, text in enumerate(texts, 1) if text.strip()
        ]
    if isinstance(whole, dict) and "role" not in whole:
        whole = whole.get("messages")
    if isinstance(whole, dict):
        whole = [whole]
    if not isinstance(whole, list):
        raise InvalidSetting(
            "file", 'expected an export of memci, or a chat: […], {"messages": […]}, a message per line'
        )
    return [_message(value, f"messages[{position}]") for position, value in enumerate(whole)]


def imported_chat(
    storage: Storage,
    messages: Sequence[Message],
    *,
    id: str,  # noqa: A002
    open_context: Callable[[Storage, str | None], Appending],
) -> str:
    """Store *messages* as the new context *id*, whole or not at all, and return its id. O(messages), all in memory.

    Args:
        storage: Where to.
        messages: A chat; a system prompt comes first, if there is one.
        id: The context's name.
        open_context: Opens the context *id* in a store that it is given, with the chat's system prompt, or None.

    Raises:
        InvalidSetting: If there is such a context, or nothing to store; or a system prompt comes later.
        InvalidMessage: If a message is not one that a provider accepts; it says which.
    """
    check_free(storage, id)
    prompt, skipped = None, 0
    if messages and messages[0].get("role") in _SYSTEM:
        prompt, skipped = text_of(messages[0]), 1
    if len(messages) == skipped:
        raise InvalidSetting(
            "file", "the chat has no messages: expected at least one of a user, an assistant or a tool"
        )
    scratch = EphemeralStorage()
    context = open_context(scratch, prompt)
    for position, message in enumerate(messages[skipped:], skipped):
        if message.get("role") in _SYSTEM:
            raise InvalidSetting(
                "file", f"messages[{position}] is a system prompt: a context has one, which comes first; take it out"
            )
        try:
            context.append_turn(message)
        except InvalidMessage as error:
            path = error.path.removeprefix("messages[0]").removeprefix("message")
            raise InvalidMessage(f"file: messages[{position}]{path}", error.reason) from None
    return imported(storage, exported(scratch, id), id=id)


def _value(number: int, text: str) -> Any:
    try:
        return fields_of(text)
    except ValueError as error:
        raise InvalidSetting(
            "file", f"line {number:,}: not valid JSON ({error}); expected an export of memci, or a chat"
        ) from None


def _message(value: Any, where: str) -> Message:
    if not isinstance(value, dict) or "role" not in value:
        raise InvalidSetting("file", f"{where}: expected a message, an object with role and content, got {value!r:.60}")
    return value
