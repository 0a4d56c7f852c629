"""An answer of a type: asked for, read and validated; asked for again at most twice, then the answer is rejected.

    class Title(BaseModel):
        title: str

    title = ask(chat, [{"role": "user", "content": "Name this: …"}], Title, step="title").title

The answer of a model is a proposal. Code fences and prose around one JSON object are ignored; all else is checked by
pydantic and by *check*. This module knows nothing of servers: it works with any `memci.llm.ChatModel`.
"""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import AnswerRejected, InvalidSetting, brief
from ..messages import Message
from .model import ChatModel, Reply, checked_reply
from .usage import Ledger, Spent

if TYPE_CHECKING:
    from pydantic import BaseModel

T = TypeVar("T", bound="BaseModel")

LARGEST = 200_000  # characters of an answer, at most
TRIES = 3
_STARTS = 64  # places where an object may begin that are tried, at most

Check = Callable[[T], T]
OnRejected = Callable[[str, str], None]


def ask(
    chat: ChatModel,
    messages: Sequence[Message],
    answer: type[T],
    *,
    step: str,
    check: Check[T] | None = None,
    tries: int = TRIES,
    max_tokens: int | None = None,
    on_rejected: OnRejected | None = None,
) -> T:
    """Return the answer to *messages*, as a value of type *answer*.

    Args:
        chat: The model.
        messages: What it is asked.
        answer: A pydantic model.
        step: What the call is for, in one word.
        check: Returns the value, or another one. To reject it: a ValueError of one line, which the model then reads.
        tries: How many answers are looked at, from 1 to 3.
        max_tokens: Of an answer, at most. None: *chat* decides.
        on_rejected: Called with the step and the reason for each answer that is rejected.

    Raises:
        AnswerRejected: If the last answer was rejected, too.
        ModelError: As *chat* raises it.
    """
    if type(tries) is not int or not 1 <= tries <= TRIES:
        raise InvalidSetting("tries", f"expected 1 to {TRIES}; got {brief(tries)}")
    ledger = getattr(chat, "ledger", None)
    asked, attempt = messages, 0
    bound: dict[str, Any] = {} if max_tokens is None else {"max_tokens": max_tokens}
    while True:
        reply = checked_reply(chat(asked, step=step, answer=answer, attempt=attempt, **bound), step)
        try:
            return value_of(reply, answer, check)
        except ValueError as error:
            reason, cause = " ".join(str(error).split())[:200] or "it was not accepted", error
        if isinstance(ledger, Ledger):
            ledger.add(step, Spent(rejected=1))
        if on_rejected is not None:
            on_rejected(step, reason)
        attempt += 1
        if attempt == tries:
            raise AnswerRejected(step, f"{reason} ({tries} answers)" if tries > 1 else reason) from cause
        asked = _noted(messages, f"Your last answer was not accepted: {reason}. Answer again.")


def value_of(reply: Reply, answer: type[T], check: Check[T] | None = None) -> T:
    """Return the value of type *answer* that a reply holds; a ValueError says why it holds none, in one line."""
    from pydantic import ValidationError

    if reply.finish == "length":
        raise ValueError("it was cut at the length limit: answer shorter")
    if reply.finish == "content_filter" or reply.message.get("refusal"):
        raise ValueError("it was refused")
    try:
        value = answer.model_validate_json(json.dumps(json_object(reply.text), allow_nan=False))
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from error
    return value if check is None else check(value)


def json_object(text: str) -> dict[str, Any]:
    """Return the one JSON object in *text*, with anything else around it. O(length)."""
    if len(text) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} characters")
    text = text.rpartition("</think>")[2]
    found: list[dict[str, Any]] = []
    start = text.find("{")
    for _ in range(_STARTS):
        if start < 0:
            break
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
        except json.JSONDecodeError:
            end = start + 1
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        else:
            found.append(value)
        start = text.find("{", end)
    if len(found) != 1:
        raise ValueError("it has no JSON object" if not found else "it has more than one JSON object")
    return found[0]


def _noted(messages: Sequence[Message], note: str) -> list[Message]:
    """Return *messages* with a note in the last one if it is the user's: not every model takes two in a row."""
    last = messages[-1] if messages else {}
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*messages[:-1], {**last, "content": f"{last['content']}\n\n{note}"}]
    return [*messages, {"role": "user", "content": note}]


def _first_fault(error: Any) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = [str(part)[:40] for part in first["loc"]]
    if first["type"] == "extra_forbidden":  # the last name is one that the model invented
        place = place[:-1]
    return f"{'.'.join(place) or 'the object'}: {first['msg']}"
