"""What three providers accept as a conversation, written down from their references and nothing of ours.

    openai      every call is answered once, right behind it; a result answers a call; roles are known
    anthropic   system apart · user and assistant take turns · tool_result blocks first, one for each tool_use before
    gemini      a turn of calls comes behind a user's turn or one of responses, and as many responses follow

Each check returns sentences, [] for a conversation that is accepted. What no program can mend is not checked: arguments
that the model wrote wrongly, texts that are empty, ids that a provider would not have given.
"""

import json
from collections.abc import Iterator
from typing import Any

Message = dict[str, Any]


def problems(messages: list[Message]) -> list[str]:
    """Return what any of the three would refuse."""
    found = [f"openai: {each}" for each in openai(messages)]
    if found:
        return found
    found += [f"anthropic: {each}" for each in anthropic(messages)]
    return found + [f"gemini: {each}" for each in gemini(messages)]


def openai(messages: list[Message]) -> Iterator[str]:
    """Yield what Chat Completions would refuse."""
    waiting: list[str] = []
    for position, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "user", "assistant", "tool"):
            yield f"messages[{position}] has the role {role!r}"
        if role == "system" and position:
            yield f"messages[{position}] is a system message in the middle"
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"messages[{position}]: a result of {message.get('tool_call_id')!r}, which waits for none"
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"messages[{position}]: no result for {waiting} before it"
            waiting = []
        if role == "assistant":
            waiting = [call["id"] for call in message.get("tool_calls") or []]
            if len(set(waiting)) != len(waiting):
                yield f"messages[{position}] has two calls with the same id: {waiting}"
        elif "content" not in message or message["content"] is None:
            yield f"messages[{position}] has no content"
        for part in message["content"] if isinstance(message.get("content"), list) else ():
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield f"messages[{position}] has a part without a type"
    if waiting:
        yield f"the last calls {waiting} have no result"


def anthropic(messages: list[Message]) -> Iterator[str]:
    """Yield what Messages would refuse, once turns of one role are put together."""
    turns: list[tuple[str, list[tuple[str, str]]]] = []
    for message in messages:
        role = message["role"]
        if role == "system":
            continue
        blocks = [("tool_result", message["tool_call_id"])] if role == "tool" else [("text", "")]
        if role == "assistant":
            blocks += [("tool_use", call["id"]) for call in message.get("tool_calls") or []]
        side = "assistant" if role == "assistant" else "user"
        if turns and turns[-1][0] == side:
            turns[-1][1].extend(blocks)
        else:
            turns.append((side, blocks))
    before: list[str] = []
    for position, (side, blocks) in enumerate(turns):
        uses = [name for kind, name in blocks if kind == "tool_use"]
        given = [name for kind, name in blocks if kind == "tool_result"]
        if sorted(given) != sorted(before):
            yield f"turn {position}: results {given} for calls {before}"
        if given and any(kind != "tool_result" for kind, _ in blocks[: len(given)]):
            yield f"turn {position}: something stands in front of a tool_result"
        if side == "assistant" and uses and any(kind == "text" for kind, _ in blocks[-len(uses) :]):
            yield f"turn {position}: text behind a tool_use"
        before = uses
    if before:
        yield f"the last calls {before} have no result"


def gemini(messages: list[Message]) -> Iterator[str]:
    """Yield what generateContent would refuse; a leading turn of the model is the caller's own."""
    turns: list[tuple[str, int]] = []
    for message in messages:
        role = message["role"]
        if role == "system":
            continue
        kind = {"assistant": "model", "tool": "response", "user": "user"}[role]
        weight = len(message.get("tool_calls") or []) if kind == "model" else int(kind == "response")
        if turns and turns[-1][0] == kind:
            turns[-1] = (kind, turns[-1][1] + weight)
        else:
            turns.append((kind, weight))
    for position, (kind, weight) in enumerate(turns):
        after = turns[position + 1] if position + 1 < len(turns) else ("", 0)
        if kind == "model" and weight and after != ("response", weight):
            yield f"turn {position}: {weight} calls, then {after}"
        if kind == "response" and (not position or turns[position - 1] != ("model", weight)):
            yield f"turn {position}: {weight} responses behind {turns[position - 1] if position else None}"


def broken_arguments(before: Message, after: Message) -> list[str]:
    """Return the arguments of *after*, a view of *before*, that were a JSON object and are none any more."""
    broken = []
    for old, new in zip(before.get("tool_calls") or [], after.get("tool_calls") or [], strict=True):
        read = "function" in old and _is_object(old["function"]["arguments"])
        if read and not _is_object(new["function"]["arguments"]):
            broken.append(new["function"]["arguments"])
    return broken


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False
