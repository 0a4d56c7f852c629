"""Every item, block and part that the installed SDKs have a type for comes back exactly, wherever it went."""

from contextlib import closing

import pytest

from memci import Context, EphemeralStorage, SQLiteStorage
from memci.formats import FORMATS, read, write
from memci.messages import Enveloped
from memci.testing.formats import problems
from tests.formats.samples import members, samples


def of_chat():
    import openai.types.chat

    for each in members(openai.types.chat.ChatCompletionMessageParam):
        if each is not openai.types.chat.ChatCompletionFunctionMessageParam:  # out of use, and refused with advice
            yield from ({"content": "Hi", **value} for value in samples(each))


def of_responses():
    import openai.types.responses

    for each in members(openai.types.responses.ResponseInputItemParam):
        yield from samples(each)
    for each in members(openai.types.responses.ResponseOutputItem):
        yield from samples(each, alternatives=2)


def of_anthropic():
    import anthropic.types

    for each in members(anthropic.types.ContentBlockParam):
        for block in samples(each):
            yield {"role": "assistant", "content": [block]}
            yield {"role": "user", "content": [block, block]}
    for each in members(anthropic.types.ContentBlock):
        for block in samples(each, alternatives=2):
            yield {"role": "assistant", "content": [block]}
    yield from ({"role": role, "content": "Hi"} for role in ("user", "assistant"))
    yield {"role": "system", "content": [{"type": "text", "text": "Hi"}]}


def of_gemini():
    from google.genai import types as genai

    for name, field in genai.Part.model_fields.items():
        # the type of a call or result needs nothing; the API needs a name, and a late result the id of its call
        least = {"function_call": {"name": "find"}, "function_response": {"name": "find", "id": "a é"}}.get(name)
        for value in samples(field.annotation):
            part = {field.alias or name: {**least, **value} if least else value}
            yield {"role": "user", "parts": [part]}
            yield {"role": "model", "parts": [part, {"text": "Hi", "thoughtSignature": "AAEC"}]}
    yield {"parts": [{"text": "Hi"}]}


ITEMS = {
    "openai_chat": of_chat,
    "openai_responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
}


def is_result(item):
    """Whether *item* is the result of a call, or has one."""
    return any(word in str(item) for word in ("_output'", "'role': 'tool'", "'tool_result'", "'functionResponse'"))


def natives(messages):
    """The items that *messages* were made from."""
    items = []
    for message in messages:
        if not isinstance(message, Enveloped):
            items.append(message)
        elif message.native.joins:
            key = "parts" if "parts" in items[-1] else "content"
            items[-1] = {**items[-1], key: [*items[-1][key], *message.native.items[0][key]]}
        else:
            items += message.native.items
    return items


@pytest.mark.parametrize("form", FORMATS)
def test_every_type_comes_back_exactly(form, tmp_path):
    """Appended, stored, reopened, exported and imported, an item is the same; every format can render it."""
    items = list(ITEMS[form]())
    items.sort(key=is_result)  # a result without its call is refused

    with closing(SQLiteStorage(tmp_path / "agent.db")) as store:
        with Context.open(store, "alice", window=500_000, format=form) as context:
            for item in items:
                context.append_turn(item, opens_page=False)
        with Context.open(store, "alice") as context:
            assert natives(context.messages()) == items
            for target in FORMATS:
                assert context.request(format=target, strict=False)
            lines = list(context.export())
    with Context.import_(EphemeralStorage(), lines) as copy:
        assert natives(copy.messages()) == items
        assert list(copy.export()) == lines


NAMED = {"id", "call_id", "tool_call_id", "tool_use_id", "approval_request_id", "name"}


def as_accepted(value, key=""):
    """Return *value* with ids and names that providers take."""
    if isinstance(value, dict):
        return {key: as_accepted(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [as_accepted(each) for each in value]
    if value == "a é" and key in {"caller_id", "tool_id"}:
        return "p_1"
    return "a_1" if value == "a é" and key in NAMED else value


def with_companions(item):
    """Return *item* with what its provider wants beside it."""
    blocks = item.get("content")
    first = item if "type" in item or not isinstance(blocks, list) or not blocks else blocks[0]
    callers = ["p_1"] if "p_1" in str(first.get("caller")) else []
    match first.get("type"):
        case "reasoning":
            return [item, {"role": "assistant", "content": "So it is."}]
        case "mcp_approval_response":
            return [{"type": "mcp_approval_request", "id": "a_1"}, item]
        case "program_output":
            return [{"type": "program", "call_id": "a_1"}, item]
        case _ if first is item:
            return [*({"type": "program", "call_id": each} for each in callers), item]
        case str(kind) if kind.endswith("_tool_result") and item["role"] == "assistant":
            callers += ["a_1"]
        case _:
            pass
    uses = [{"type": "server_tool_use", "id": each, "name": "f", "input": {}} for each in callers]
    return [{**item, "content": [*uses, *blocks]}]


@pytest.mark.parametrize("form", FORMATS)
def test_every_type_is_written_as_it_came(form):
    """In its own format an item that the provider takes is written as it came, beside its companion."""
    named = {"role": "user"} if form == "gemini" else {}  # of a list, the provider wants the role of each
    question = {"role": "user", "parts": [{"text": "?"}]} if form == "gemini" else {"role": "user", "content": "?"}
    for item in map(as_accepted, ITEMS[form]()):
        items = [question, *({**named, **each} for each in with_companions(item))]
        assert write(form, read(items, form)) == items


@pytest.mark.parametrize(("form", "within"), [("anthropic", "messages"), ("openai_responses", "input")])
def test_an_id_that_looks_like_that_of_a_repeated_call_is_not_given_twice(form, within):
    """`a` comes twice, and so its second call gets another id: not that of a call `a~2`."""

    def step(call_ids):
        calls = [{"id": each, "type": "function", "function": {"name": "find", "arguments": "{}"}} for each in call_ids]
        results = [{"role": "tool", "tool_call_id": each, "content": "found"} for each in call_ids]
        return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]

    orders = ([["a"], ["a"], ["a~2"]], [["a~2"], ["a"], ["a"]], [["a"], ["a~2"], ["a"], ["a"]])
    for order in (*orders, [["a"], ["a~2", "a"]], [["a"], ["a", "a~2"]]):
        messages = [{"role": "user", "content": "Go."}, *(each for call_ids in order for each in step(call_ids))]
        assert problems(form, {within: write(form, messages)}) == []
