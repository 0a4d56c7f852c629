"""Providers' message formats: each one reads its native items into messages, and writes messages as native items.

    openai_chat          Chat Completions: the form in which memci itself understands messages
    openai_responses     Responses: a flat list of items
    anthropic            Messages: blocks, results within the user's messages
    gemini               contents: parts, results within the user's turns

    formats.read(values)                       ──▶  messages, each with the exact items that it was made from
    formats.write("gemini", messages)          ──▶  items: messages of this format as they came, others translated
    formats.request("anthropic", messages, …)  ──▶  the keyword arguments of the client's own call

It needs no SDK.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

from ..errors import InvalidMessage, InvalidSetting, brief
from ..messages import Enveloped, Item, Message, call_name, calls_of, plain, tool_calls
from ..messages import check as check_message
from ..model_catalog import reads_breakpoints
from . import anthropic, gemini, openai_chat, openai_responses
from .anthropic import without_thoughts as without_thoughts
from .detection import is_of_chat, undeclared, unwrapped
from .envelope import continues as continues
from .envelope import says_nothing
from .openai_responses import made_by as made_by
from .openai_responses import readable_by as readable_by

_FORMATS: Mapping[str, Any] = {each.NAME: each for each in (openai_chat, openai_responses, anthropic, gemini)}
FORMATS = tuple(_FORMATS)  # the names of the formats


def read(
    values: Iterable[object],
    default: str = openai_chat.NAME,
    *,
    waiting: Iterable[Message] = (),
    first: int = 0,
    opaque: bool = False,
) -> list[Message]:
    """Return the messages in *values*: native items, whole answers, SDK objects, texts of the user. O(items).

    Items of one format in a row are read together, so that parallel calls stay in one message.

    Args:
        values: In any format, also mixed.
        default: The format of items that look alike in several.
        waiting: Calls without a result: a result of Gemini's may name only the tool, not the call.
        first: A number from which no earlier call got its id: Gemini's calls may have none.
        opaque: Whether the values are a list that a client sends to its provider: instructions keep their role, and
            blocks of the user and of tools whose type no format declares are kept, for their provider only; else they
            are refused, as the provider does.

    Raises:
        InvalidSetting: If there is no format *default*.
        InvalidMessage: If a value does not follow its format; the error names the path.
    """
    check(default)
    found: list[tuple[str, str, Item]] = []
    for position, value in enumerate(values):
        path = f"messages[{position}]"
        with _refusing(path, default):
            found += _recognized(value, path, default, opaque=opaque)
    open_calls = [(call["id"], call_name(call)) for call in waiting]
    messages: list[Message] = []
    for form, run in groupby(found, key=lambda each: each[0]):
        numbers = (open_calls, first + len(messages)) if form == gemini.NAME else ()
        messages += _read_items(form, [(path, item) for _, path, item in run], *numbers)
        calls = [call for message in messages for call in _sound_calls(message)]
        open_calls = [(call["id"], call_name(call)) for call in calls if isinstance(call.get("id"), str)] or open_calls
    return messages


def check_native(message: Message) -> None:
    """Check that the provider's own items of a stored *message*, if it has any, make such a message. O(parts).

    InvalidMessage if they can't be sent, or make another message: who made them up did not use `read`.
    """
    if not isinstance(message, Enveloped):
        return
    form, items = message.native.format, message.native.items
    if form not in FORMATS or not items or not all(isinstance(item, dict) for item in items):
        raise InvalidMessage("items", "expected items of a known format")
    if form == openai_chat.NAME:
        found = [openai_chat.enveloped(item) for item in items]
    else:
        found = _read_items(form, [(f"items[{at}]", item) for at, item in enumerate(items)])
    for each in found:
        check_message(each)
    if [(each["role"], len(tool_calls(each))) for each in found] != [(message["role"], len(tool_calls(message)))]:
        raise InvalidMessage("items", "they are no items of this message")


def write(format: str, messages: Sequence[Message], *, media_inside: bool = False) -> list[Item]:  # noqa: A002
    """Return *messages*, without the system prompt, as items of *format*; those of this format as they came. O(parts).

    In Chat Completions results have only text: their media follow them, unless they stay *media_inside*.
    InvalidSetting if there is no such format.
    """
    check(format)
    inside = {"media_inside": True} if media_inside and format == openai_chat.NAME else {}
    items: list[Item] = _FORMATS[format].write(messages, **inside)
    return items


def spoken(format: str, messages: Iterable[Message]) -> list[Message]:  # noqa: A002
    """Return *messages* without empty answers: a request of *format* does not repeat them. O(messages)."""
    return [message for message in messages if not says_nothing(message, format)]


def write_answers(format: str, calls: Sequence[Message], answers: Sequence[Message]) -> list[Item]:  # noqa: A002
    """Return *answers* to *calls*, both in the form of Chat Completions, as items of *format*.

    In Chat Completions they stay whole, with their media, until `write` sends them. InvalidMessage if a call has no id.
    """
    if format == openai_chat.NAME:
        return list(answers)
    for position, call in enumerate(calls):
        if not isinstance(call.get("id"), str):
            raise InvalidMessage(f"reply.tool_calls[{position}].id", "every tool call has an id (a str)")
    asks: Message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    before: list[Message] = [{"role": "user", "content": "?"}, asks]
    return write(format, [*before, *answers])[len(write(format, before)) :] if answers else []


def tools(format: str, schemas: Iterable[Any]) -> list[Item]:  # noqa: A002
    """Return the *schemas* of tools, in the form of Chat Completions, as tools of *format*."""
    check(format)
    made: list[Item] = _FORMATS[format].tools([plain(schema, "tools") for schema in schemas])
    return made


def request(
    format: str,  # noqa: A002
    messages: Sequence[Message],
    *,
    system: Message | None = None,
    schemas: Iterable[Any] = (),
    stable: Sequence[int] = (),
    model: str | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments of the call of *format*'s own client. O(parts).

    A second schema of a name is left out. *stable* are the numbers of messages after which a part ends that the next
    requests will repeat. OpenAI's models, and others behind its form, get breakpoints there only if they read them.
    """
    given = [plain(schema, "tools") for schema in schemas]
    names = [call_name(schema) or schema.get("name") for schema in given]
    once = [schema for at, schema in enumerate(given) if names[at] is None or names[at] not in names[:at]]
    made = tools(format, once)
    module = _FORMATS[format]
    items = module.write(spoken(format, messages) or messages)  # no provider takes an empty list
    if format == gemini.NAME or (format != anthropic.NAME and not reads_breakpoints(model)):
        stable = ()
    ends = [
        len(module.write(spoken(format, messages[:count]))) - 1
        for count in (0, *stable)
        if count <= len(messages) and stable
    ]
    return {**module.request(items, system, made, ends), **({"tools": made} if made and format != gemini.NAME else {})}


def calls(value: object, default: str = openai_chat.NAME) -> tuple[str, list[Message]]:
    """Return the format of *value*, and its tool calls in the form of Chat Completions.

    *value* is a reply (a whole answer, a message, a list of items) or one call in any format's form.
    InvalidMessage if it is none of these.
    """
    if isinstance(value, Sequence) and not isinstance(value, str):
        items = [plain(each, f"reply[{at}]") for at, each in enumerate(value)]
        form = next((found for each in items if (found := unwrapped(each)[0]) is not None), default)
        return form, [call for each in read(items, form) for call in calls_of(each)]
    if isinstance(value, str):
        raise InvalidMessage("reply", f"expected the client's reply or its message, got its text {brief(value)}")
    item = plain(value, "reply")
    for each in _FORMATS.values():
        with _refusing("reply", each.NAME):
            if (call := each.call(item)) is not None:
                return each.NAME, [call]
    found, items = unwrapped(item)
    form = found or default
    if found is None or form == openai_chat.NAME:
        return form, calls_of(items[0])
    return form, [call for each in read([item], form) for call in calls_of(each)]


def check(format: object) -> None:  # noqa: A002
    """Raise InvalidSetting unless *format* is the name of a format."""
    if not isinstance(format, str) or format not in FORMATS:
        raise InvalidSetting("format", f"expected one of {', '.join(map(repr, FORMATS))}, got {brief(format)}")


def _recognized(value: object, path: str, default: str, *, opaque: bool) -> Iterator[tuple[str, str, Item]]:
    """Yield the items of *value*, each with its format and its path; InvalidMessage for a block of no type."""
    form, items = (openai_chat.NAME, [value]) if isinstance(value, Enveloped) else unwrapped(plain(value, path))
    whole = len(items) == 1
    form = form or _shared_form(items[0], default, received=opaque)
    for at, item in enumerate(items):
        where = path if whole else f"{path}[{at}]"
        strange = None if isinstance(item, Enveloped) else undeclared(form, item)
        if strange is not None and not opaque and form != openai_chat.NAME:  # `messages.check` refuses those
            raise InvalidMessage(f"{where}.{strange}", f"{form} has no block of this type")
        kept = strange is not None and opaque and form == openai_chat.NAME
        yield form, where, openai_chat.enveloped(item) if kept else item


def _read_items(form: str, items: Sequence[tuple[str, Item]], *more: Any) -> list[Message]:
    """Return the messages in *items* of *form*, each item with its path; InvalidMessage if they do not follow it."""
    with _refusing(items[0][0], form):
        found: list[Message] = _FORMATS[form].read(items, *more)
    return found


@contextmanager
def _refusing(path: str, form: str) -> Iterator[None]:
    """Raise InvalidMessage about *path* if a value of a type that *form* does not have can't be read."""
    try:
        yield
    except InvalidMessage:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        raise InvalidMessage(path, f"a field of it has another type than in {form}") from None


def _shared_form(item: Item, default: str, *, received: bool) -> str:
    """Return the format of *item*, which looks alike in several: *default* if a list of texts may be its blocks.

    An item without a role can only be one of Responses, of a type that is not known here. What a client sent to its
    provider (*received*) is in its format, and instructions keep their role; not every model of Anthropic's takes them.
    """
    if received and default == anthropic.NAME and item.get("role") == "system":
        return default
    if "role" not in item and default == openai_responses.NAME:
        return default
    listed = isinstance(item.get("content"), list) and "tool_calls" not in item and item.get("role") != "tool"
    own = listed and default != gemini.NAME and (received or not is_of_chat(item, default))
    return default if own else openai_chat.NAME


def _sound_calls(message: Message) -> list[Message]:
    """Return the tool calls of a *message* that may not be checked yet, none if they are malformed."""
    try:
        return calls_of(message)
    except InvalidMessage:
        return []
