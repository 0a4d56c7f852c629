"""Typed answers: the model is asked for an object, which is read and validated; it is asked up to three times.

The answer of a model is untrusted. Code fences and prose around one JSON object are ignored; pydantic and *check*
validate the object. It works with any `memci.llm.ChatModel`.
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

LARGEST = 200_000  # characters of an answer, at most: no step of memci needs a tenth of them
TRIES = 3  # answers that are looked at, at most: a model that fails three times rarely succeeds later
_STARTS = 64  # places where an object may begin, at most: it bounds the time for a hostile answer

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
    """Return the answer to *messages* as a value of type *answer*.

    Args:
        chat: The model.
        messages: The prompt.
        answer: A pydantic model.
        step: The purpose of the call, in one word.
        check: Returns the value, or another one. To reject it, raise a ValueError of one line, which the model reads.
        tries: How many answers are looked at, from 1 to 3.
        max_tokens: The most tokens of an answer. None: *chat* decides.
        on_rejected: Called with the step and the reason for each rejected answer.

    Raises:
        AnswerRejected: If the last answer is rejected, too.
        ModelError: As *chat* raises it.
    """
    if type(tries) is not int or not 1 <= tries <= TRIES:
        raise InvalidSetting("tries", f"expected 1 to {TRIES}; got {brief(tries)}")
    check_model(answer)
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
        asked = _add_note(messages, f"Your last answer was not accepted: {reason}. Answer again.")


def check_model(answer: object) -> None:
    """Raise InvalidSetting if *answer* is no pydantic model, as whose object an answer is read."""
    if not hasattr(answer, "model_json_schema"):
        raise InvalidSetting("output", f"expected a pydantic model (class Trip(BaseModel): …), got {brief(answer)}")


def value_of(reply: Reply, answer: type[T], check: Check[T] | None = None) -> T:
    """Return the value of type *answer* in *reply*; a ValueError of one line says why there is none."""
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
    """Return the only JSON object in *text*, whatever is around it. O(length)."""
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


def _add_note(messages: Sequence[Message], note: str) -> list[Message]:
    """Return *messages* with a note in the user's last one: not every model takes two messages of the user in a row."""
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
