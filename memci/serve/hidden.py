"""Hidden rounds: calls of memci's tools with their results, which are in the log and not in the client's list.

    log      user   assistant: recall_page   tool   assistant: text          hidden: the second and the third
    client   user                                   assistant: text  user
             ──▶  user   assistant: recall_page   tool   assistant: text   user

The client's list is the truth. Before it is compared with the log, the hidden messages are put where they were. If a
client saw a text, then another one behind hidden calls, it sends both in one message, but a hidden message already has
the first one. So it is with the beginning of an answer that the client wrote for the model.
"""

import json
from collections.abc import Sequence
from typing import Any

from .. import formats
from ..formats.identity import MARKS, identity, value_of
from ..messages import Enveloped, Item, Message, call_body, call_name, parts_of, text_of, tool_calls
from .replies import called, message_of, pieces_of, placed, visible


def insert_hidden(
    format: str,  # noqa: A002
    client: Sequence[Message],
    log: Sequence[Message],
    own: set[str] | frozenset[str],
) -> list[Message]:
    """Return the messages of the *client* with the hidden ones of the *log*, as far as they agree. O(messages).

    *own* are the names of the tools whose calls are hidden.
    """
    made: list[Message] = []
    shown: list[Item] = []  # the part of the hidden messages that the client saw since its last message
    hidden: list[Message] = []  # those messages
    answered: set[str] = set()
    at = 0
    for number, kept in enumerate(log, 1):
        each = client[at] if at < len(client) else None
        calls, following = tool_calls(kept), tool_calls(log[number]) if number < len(log) else []
        mine = {call["id"] for call in calls if call_name(call) in own}
        begun = kept["role"] == "assistant" and following and own.issuperset(map(call_name, following))
        if kept["role"] == "tool" and kept["tool_call_id"] in answered:
            pass
        elif each is not None and identity(each) == identity(kept):
            shown, hidden, at = [], [], at + 1
        elif mine and len(mine) == len(calls):
            shown += visible(pieces_of(kept), own)
            hidden.append(kept)
        elif begun and each is not None and each["role"] == "assistant":
            shown += pieces_of(kept) if text_of(each).startswith(text_of(kept)) else []
        elif (mine or shown) and each is not None and each["role"] == "assistant":
            if _key([*shown, *visible(pieces_of(kept), own)]) != _key(pieces_of(each)):
                break
            shown, hidden, at = [], [], at + 1
        else:
            break
        made.append(kept)
        answered |= mine
    rest = [*client[at:]]
    if shown and rest and rest[0]["role"] == "assistant":
        rest[:1] = _without(format, rest[0], shown)
    if hidden and rest and rest[0]["role"] == "assistant" and not isinstance(rest[0], Enveloped):
        rest[0] = _without_thoughts(rest[0], hidden)
    return made + rest


def _without_thoughts(message: Message, hidden: Sequence[Message]) -> Message:
    """Return a *message* of Chat Completions without the thoughts of the *hidden* messages before it. O(characters).

    Signed thoughts of several rounds that the client joined are left out: the signature is that of none of them.
    """
    made = dict(message)
    for key in ("reasoning", "reasoning_content"):
        if isinstance(made.get(key), str):
            made[key] = made[key].removeprefix("".join(str(each.get(key) or "") for each in hidden))
    if isinstance(thoughts := made.get("reasoning_details"), list):
        before = [each for said in hidden for each in parts_of(said.get("reasoning_details"))]
        made["reasoning_details"] = [own for each in thoughts if (own := _own(each, before)) is not None]
        if not made["reasoning_details"]:
            del made["reasoning_details"]
    return made


def _own(thought: Any, before: Sequence[Any]) -> Any:
    """Return *thought* with the index of its own round; None if it is one of those *before*, or begins with one."""
    if not isinstance(thought, dict):
        return thought
    at = thought.get("index")
    if type(at) is int and at >= len(before):
        return placed(thought, -len(before))
    known = [each for each in before if isinstance(each, dict)]
    begun = tuple(text for each in known if (text := str(each.get("text") or "")))
    same = any(thought == {**each, **({"index": at} if "index" in thought else {})} for each in known)
    return None if same or str(thought.get("text") or "").startswith(begun) else thought


def _without(format: str, message: Message, shown: Sequence[Item]) -> list[Message]:  # noqa: A002
    """Return *message* without *shown* in front of it; unchanged if it does not begin with it."""
    pieces = pieces_of(message)
    if _key(pieces[: len(shown)]) == _key(shown):
        pieces = pieces[len(shown) :]
    elif pieces and (left := _behind(pieces[0], "".join(_key(shown)))) is not None:
        pieces = [*left, *pieces[1:]]
    else:
        return [message]
    if not pieces:
        return []
    listed = format == "openai_responses" and isinstance(message, Enveloped)
    values = pieces if listed else [message_of(format, pieces, message)]
    return formats.read(values, format, opaque=True)


def _behind(piece: Item, before: str) -> list[Item] | None:
    """Return what *piece*, a text, says behind the text *before*; None if it does not begin with that."""
    match piece:
        case {"text": str(text)} if text.startswith(before):
            return [{**piece, "text": text[len(before) :]}] if text != before else []
        case {"content": [{"text": str()} as part]} if (left := _behind(part, before)) is not None:
            return [{**piece, "content": left}] if left else []
    return None


def _key(pieces: Sequence[Item]) -> list[str]:
    """Return the words of *pieces*, texts in a row as one, without fields that a client may leave out."""
    found: list[list[str]] = []
    for piece in pieces:
        match piece:
            case {"text": str(text)} | {"thinking": str(text)}:
                kind = str(piece["type"])
            case {"role": "assistant", "content": list(parts)}:
                kind, text = "text", "".join(str(part.get("text", "")) for part in parts if isinstance(part, dict))
            case {"role": "assistant", "content": str(text)}:
                kind = "text"
            case _:
                kind, text = "", _words(piece)
        if found and kind == "text" and found[-1][0] == "text":
            found[-1][1] += text
        elif text:
            found.append([kind, text])
    return [text for _, text in found]


def _words(piece: Item) -> str:
    """Return the values of *piece*; of a call its id, its name, and the value of its arguments."""
    if called(piece) is not None:
        body = call_body(piece) or piece
        given = next((body[key] for key in ("arguments", "input", "action") if key in body), None)
        said: object = [piece.get("call_id") or piece.get("id"), body.get("name"), value_of(given)]
    else:
        left = MARKS | ({"id", "status"} if piece.get("type") == "reasoning" else {"status"})
        said = {key: value for key, value in piece.items() if key not in left}
    return json.dumps(value_of(json.dumps(said)), sort_keys=True)
