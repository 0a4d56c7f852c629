"""Plain chats: a conversation as other programs store it becomes a context.

    [{"role": "system", …}, {"role": "user", …}, …]    {"messages": […]}    or a message per line

The messages are appended one after another to a context in RAM, which is then stored in one transaction. The caller
passes the function that opens a context. This module knows nothing of windows.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from ..errors import InvalidMessage, InvalidSetting, brief
from ..messages import Message, MessageLike, text_of
from ..storage import EphemeralStorage, Storage
from .export import exported
from .export_format import fields_of, stripped
from .import_ import imported
from .loader import check_free

_SYSTEM = ("system", "developer")


class Appending(Protocol):
    """A context, as far as it is needed here."""

    def append_turn(self, *messages: MessageLike) -> object:
        """Append *messages*."""
        ...


def chat_of(lines: Iterable[str]) -> list[Message]:
    """Return the messages of the chat in *lines*. O(characters).

    Raises:
        InvalidSetting: If they are not a chat; it names the line or the message.
    """
    texts = [stripped(number, line) for number, line in enumerate(lines, 1)]
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
        storage: The store that gets the context.
        messages: A chat; if it has a system prompt, that is the first message.
        id: The id of the new context.
        open_context: Opens the context *id* in the store that it is called with, with the system prompt of the chat or
            None.

    Raises:
        InvalidSetting: If there is a context *id*, there are no messages, or a system prompt is not the first message.
        InvalidMessage: If a provider would not accept a message; it names the message.
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
        raise InvalidSetting(
            "file", f"{where}: expected a message, an object with role and content, got {brief(value)}"
        )
    return value
