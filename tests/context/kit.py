"""What the tests of a context share: contexts that count words, and messages to put in. It tests nothing."""

import json

from memci import Context, EphemeralStorage

OWN_TOOL = {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {}}}


def words(text: str) -> int:
    return len(text.split())


def opened(storage: object = None, **given: object) -> Context:
    given = {"id": "alice", "window": 4_000, "counter": words, "nonce": "00000000", **given}
    return Context.open(EphemeralStorage() if storage is None else storage, **given)


def call(call_id: str, name: str = "search", arguments: object = "{}") -> dict:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def calling(*calls: dict) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str, text: str = "found") -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def turn(number: int, size: int = 3) -> tuple[dict, dict]:
    return (
        {"role": "user", "content": f"question {number} " + "word " * size},
        {"role": "assistant", "content": f"answer {number} " + "word " * size},
    )


def talked(turns: int, size: int = 3, **given: object) -> Context:
    context = opened(**given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number, size))
    return context


def where(context: Context) -> dict[int, str]:
    return {page.index: page.where for page in context.pages()}


def extends(new: list[dict], old: list[dict]) -> bool:
    return json.dumps(new)[: len(json.dumps(old)) - 1] == json.dumps(old)[:-1]
