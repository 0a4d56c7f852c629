"""Messages that are none: a typed error that teaches, and nothing has changed."""

import math
from collections import OrderedDict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from memci import Context
from memci.errors import InvalidMessage, LimitExceeded
from memci.storage import Storage

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
HELLO = {"role": "user", "content": "Hello"}


def user(content: object, **extra: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content, **extra}


def calls(*made: object) -> dict[str, object]:
    """Return an assistant's message with these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


WRONG_MESSAGES = {
    "no role": ({"content": "x"}, "role", "'user', 'assistant' or 'tool'"),
    "wrong role": ({"role": "bot", "content": "x"}, "role", "'bot'"),
    "role of another type": ({"role": 7, "content": "x"}, "role", "7"),
    "role that is a list": ({"role": ["user"], "content": "x"}, "role", "user"),
    "function": ({"role": "function", "name": "f", "content": "x"}, "role", "tool_calls"),
    "call id on a user's message": (user("x", tool_call_id=["x"]), "tool_call_id", "list"),
    "name that is no text": (user("x", name=7), "name", "int"),
    "no content": ({"role": "user"}, "content", "missing"),
    "content None": (user(None), "content", "str or a list"),
    "content int": (user(3), "content", "int"),
    "content dict": (user({"type": "text"}), "content", "dict"),
    "part that is no object": (user(["x"]), "content[0]", "str"),
    "part without a type": (user([{"text": "x"}]), "content[0].type", "type"),
    "text part without text": (user([{"type": "text"}]), "content[0].text", "text"),
    "empty message": ({}, "role", "missing"),
    "half an emoji": ({"role": "user", "content": [{"type": "text", "text": "\ud83d"}]}, ".content[0].text", "half"),
    "half a key": ({"role": "user", "content": "Hi", "\ud83d": 1}, "['\\ud83d']", "half"),
    "a refusal that is no text": ({"role": "assistant", "content": None, "refusal": ["x"]}, ".refusal", "a str"),
    "a part of no format": (
        {"role": "user", "content": [{"type": "banana"}]},
        ".content[0].type",
        "Chat Completions has no",
    ),
    "user who calls": (user("x", tool_calls=[CALL]), "tool_calls", "assistant"),
    "tool_calls dict": ({"role": "assistant", "content": None, "tool_calls": {"a": 1}}, "tool_calls", "list"),
    "call that is no object": (calls("x"), "tool_calls[0]", "object"),
    "call without id": (calls({"type": "function", "function": {"name": "f", "arguments": "{}"}}), "[0].id", "id"),
    "call without function": (calls({"id": "c", "type": "function"}), "tool_calls[0].function", "name"),
    "call without name": (calls({"id": "c", "function": {"arguments": "{}"}}), "function.name", "name"),
    "arguments that are an object": (
        calls({"id": "c", "function": {"name": "f", "arguments": {}}}),
        "function.arguments",
        "str of JSON",
    ),
    "result without an id": ({"role": "tool", "content": "x"}, "tool_call_id", "str"),
    "result of id None": ({"role": "tool", "tool_call_id": None, "content": "x"}, "tool_call_id", "str"),
    "result that nobody asked for": ({"role": "tool", "tool_call_id": "c9", "content": "x"}, "tool_call_id", "'c9'"),
    "NaN": (user("x", score=math.nan), "score", "nan"),
    "infinity": (user("x", score=[1.0, -math.inf]), "score[1]", "inf"),
    "tuple": (user("x", tags=("a", "b")), "tags", "list"),
    "tuple within parts": (user([{"type": "text", "text": "x", "at": (1, 2)}]), "content[0].at", "list"),
    "int key": (user("x", meta={1: "a"}), "meta", "key 1"),
    "None key": (user("x", meta={None: "a"}), "meta", "key None"),
    "date": (user("x", at=datetime(2026, 5, 12, tzinfo=UTC)), "at", "isoformat"),
    "bytes": (user("x", raw=b"abc"), "raw", "base64"),
    "set": (user("x", tags={"a"}), "tags", "list"),
    "decimal": (user("x", price=Decimal("1.5")), "price", "Decimal"),
    "object": (user("x", it=object()), "it", "object"),
    "a number for a message": (7, "", "int"),
    "None for a message": (None, "", "NoneType"),
    "a list for a message": ([HELLO], "", "list"),
    "bytes for a message": (b"hello", "", "bytes"),
    "a class for a message": (dict, "", "type"),
}


@pytest.mark.parametrize("name", WRONG_MESSAGES)
def test_a_wrong_message_is_refused_with_its_path_and_all_that_came_with_it(
    context: Context, refused: Any, name: str
) -> None:
    """An append that holds one wrong message stores none, and says which one, where and what was expected."""
    message, path, says = WRONG_MESSAGES[name]

    error = refused(lambda: context.append_turn(HELLO, message), InvalidMessage)

    assert isinstance(error, InvalidMessage)
    assert error.path.startswith("messages[1]")
    assert error.path.endswith(path)
    assert says in str(error)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("name", WRONG_MESSAGES)
def test_a_wrong_message_is_refused_when_it_is_pending(context: Context, refused: Any, name: str) -> None:
    """What can't be appended can't be rendered either, with the same error."""
    message, path, says = WRONG_MESSAGES[name]

    error = refused(lambda: context.render(HELLO, message), InvalidMessage)

    assert isinstance(error, InvalidMessage)
    assert error.path.startswith("messages[1]")
    assert error.path.endswith(path)
    assert says in str(error)


def test_a_message_that_contains_itself_is_refused(context: Context, refused: Any) -> None:
    """A loop has no JSON."""
    loop: dict[str, object] = user("x")
    loop["me"] = loop

    error = refused(lambda: context.append_turn(loop), InvalidMessage)

    assert "messages[0]" in str(error)


def test_a_message_of_ten_megabytes_is_refused(context: Context, refused: Any) -> None:
    """The limit is named with its value."""
    huge = user("x" * 10_000_000)

    error = refused(lambda: context.append_turn(HELLO, huge), LimitExceeded)

    assert isinstance(error, LimitExceeded)
    assert (error.value >= 10_000_000, error.at_most) == (True, 8 * 2**20)
    assert "bytes" in error.limit


def test_too_many_messages_in_one_append_are_refused(context: Context, refused: Any) -> None:
    """One call takes a bounded number of messages."""
    error = refused(lambda: context.append_turn(*["x"] * 10_001), LimitExceeded)

    assert "10,001" in str(error)


def test_a_mapping_and_a_subclass_of_str_are_taken_as_what_they_equal(storage: Storage) -> None:
    """An OrderedDict is a dict, and a str that is more than a str comes back as a str."""

    class Text(str):
        __slots__ = ()

    context = Context.open(storage, id="x", window=2_000)

    context.append_turn(OrderedDict(role="user", content=Text("Hello")))

    (message,) = context.recall_page(1)
    assert (type(message), type(message["content"]), message) == (dict, str, HELLO)


def test_a_message_that_is_changed_after_its_append_stays_as_it_was(storage: Storage) -> None:
    """What was appended is a copy."""
    context = Context.open(storage, id="x", window=2_000)
    message = user([{"type": "text", "text": "Hello"}])
    context.append_turn(message)

    message["content"][0]["text"] = "Goodbye"  # type: ignore[index]

    assert "Goodbye" not in str(context.render())
    assert "Goodbye" not in str(context.recall_page(1))
