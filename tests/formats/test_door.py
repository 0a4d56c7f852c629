"""What comes through the door can be sent to every provider: empty answers, unknown blocks, odd fields."""

import json

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidMessage, InvalidSetting
from memci.formats import FORMATS, read
from memci.history.export import export_lines
from memci.history.row_stream import rows_of, store_in_ram, transition_of
from memci.history.verify import problems as problems_of
from memci.messages import check
from memci.rows import EntryRow
from memci.storage.codec import STDLIB, digest
from memci.testing.formats import problems

SILENT = (
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": None},
    {"role": "assistant"},
    {"role": "assistant", "content": []},
    {"role": "assistant", "content": [{"type": "text", "text": ""}]},
    {"role": "model", "parts": []},
    {"role": "model"},
    {"role": "model", "parts": [{"text": ""}]},
    {"type": "message", "role": "assistant", "content": []},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "", "annotations": []}]},
    {"object": "response", "output": []},
    {"candidates": [{"content": {}, "finishReason": "SAFETY"}]},
    {"object": "chat.completion", "choices": []},
    {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"},
)
BANANA = {"type": "banana", "x": 1}


def opened(form="openai_chat"):
    return Context.open(EphemeralStorage(), "alice", window=8_000, format=form)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("silent", SILENT, ids=str)
def test_an_empty_answer_is_stored_and_not_sent(form, silent):
    """It is a message of the conversation; in no request is it repeated, and each request is one for its provider."""
    with opened(form) as context:
        context.append_turn("Hi", silent)
        assert [message["role"] for message in context.messages()] == ["user", "assistant"]
        context.append_turn("Are you there?", {"role": "assistant", "content": "Yes."})

        for target in FORMATS:
            request = context.request("Good.", format=target)
            assert problems(target, request) == []
            said = request.get("messages") or request.get("input") or request["contents"]
            roles = [item["role"] for item in said if item["role"] != "system"]
            assert roles == ["user", "user", "model" if target == "gemini" else "assistant", "user"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_conversation_of_an_empty_answer_alone_can_be_sent(form):
    """No provider takes an empty list: what is there is sent then."""
    with opened(form) as context:
        context.append_turn(SILENT[0])

        assert problems(form, context.request(format=form)) == []


def test_an_answer_with_calls_or_a_refusal_is_sent():
    """What is no empty answer stays."""
    refusal = {"role": "assistant", "content": None, "refusal": "No."}
    with opened() as context:
        context.append_turn("Hi", refusal)

        assert all("No." in str(context.render(format=form)) for form in FORMATS)


@pytest.mark.parametrize(
    ("form", "item", "path"),
    [
        ("openai_chat", {"role": "user", "content": [BANANA]}, "messages[0].content[0].type"),
        ("anthropic", {"role": "user", "content": [BANANA]}, "messages[0].content[0].type"),
        (
            "anthropic",
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [BANANA]}]},
            "messages[0].content[0].content[0].type",
        ),
        ("openai_responses", {"role": "user", "content": [BANANA]}, "messages[0].content[0].type"),
        (
            "openai_responses",
            {"type": "function_call_output", "call_id": "a", "output": [BANANA]},
            "messages[0].output[0].type",
        ),
        ("gemini", {"role": "user", "parts": [{"banana": 1}]}, "messages[0].parts[0]"),
    ],
)
def test_a_block_of_no_format_is_refused_by_the_library_and_kept_by_the_gateway(form, item, path):
    """The user's and the tools' blocks have a type that a format declares; the gateway sends others on as they came."""
    with opened(form) as context:
        with pytest.raises(InvalidMessage) as caught:
            context.append_turn(item)
        assert caught.value.path == path
        assert [*context.messages()] == []

    [kept] = read([item], form, opaque=True)
    if kept["role"] == "user":
        with opened(form) as context:
            context.append_turn(kept)
            assert item in context.render(format=form)
            for target in FORMATS:
                shown = str(context.render(format=target))
                assert ("'banana'" in shown) == (target == form) and (target == form or "[banana]" in shown)


def test_an_item_whose_type_is_no_text_is_refused():
    """Also one that is empty, which would else be read as a message and written as something else."""
    for kind in ([], {}, 0, False):
        with opened("openai_responses") as context, pytest.raises(InvalidMessage, match=r"messages\[0\]\.type"):
            context.append_turn({"role": "assistant", "content": [1], "type": kind})


@pytest.mark.parametrize(
    "answer",
    [
        {"role": "model", "parts": [{"text": "Hi"}], "content": {"a": 1}},
        {"type": "mcp_call", "id": "a", "content": [None]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "1e999"}}]},
        {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"a": "\\ud83d"}'}}]},
    ],
    ids=["keys of two formats", "an opaque item", "infinite", "half a pair in an escape"],
)
def test_what_is_taken_can_be_sent_by_every_client(answer):
    """A request is JSON in UTF-8, without infinite numbers and halves of surrogate pairs."""
    with Context.open(EphemeralStorage(), "alice", window=8_000, model="gpt-5.6") as context:
        context.append_turn("Hi", answer)

        for form in FORMATS:
            request = context.request(format=form, strict=False)
            assert json.dumps(request, ensure_ascii=False, allow_nan=False).encode()


def test_an_unknown_block_of_the_assistant_is_kept():
    """Models know blocks before memci does: they go back to their provider alone."""
    for form in ("openai_chat", "anthropic"):
        with opened(form) as context:
            context.append_turn("Hi", {"role": "assistant", "content": [BANANA]})

            assert BANANA in context.render(format=form)[-1]["content"]
            assert "[banana]" in str(context.render(format="gemini"))


FORGED = {
    "items of no format": lambda envelope: envelope | {"format": "banana"},
    "no items": lambda envelope: envelope | {"items": []},
    "an item that is none": lambda envelope: envelope | {"items": ["x"]},
    "a block that is none": lambda envelope: envelope | {"items": [{**envelope["items"][0], "content": ["x"]}]},
    "a block without a type": lambda envelope: envelope | {"items": [{**envelope["items"][0], "content": [{}]}]},
    "no content": lambda envelope: envelope | {"items": [{"role": "assistant"}]},
    "another role": lambda envelope: envelope | {"items": [{"role": "user", "content": "Hi"}]},
    "a call more": lambda envelope: envelope | {"chat": {"role": "assistant", "content": "Hi"}},
    "what is no number": lambda envelope: envelope | {"items": [{**envelope["items"][0], "x": float("nan")}]},
}


@pytest.mark.parametrize("forged", FORGED)
def test_native_items_that_can_not_be_sent_are_refused_by_an_import_and_told_by_verify(forged):
    """An export that was made up may agree with itself; nothing of it is stored. In a store, the entry is named."""
    with opened() as context:
        used = {"type": "tool_use", "id": "c1", "name": "find", "input": {}}
        context.append_turn("Hi", {"role": "assistant", "content": [{"type": "text", "text": "Hm."}, used]})
        rows = list(rows_of(context._storage, context._storage.load("alice")[0]))
    at = next(at for at, row in enumerate(rows) if isinstance(row, EntryRow) and row.seq == 1)
    body = json.dumps(FORGED[forged](json.loads(rows[at].body))).encode()
    rows[at] = rows[at]._replace(codec=STDLIB + 2, body=body, digest=digest(STDLIB + 2, body))
    storage, target = store_in_ram(transition_of(rows)), EphemeralStorage()
    lines = list(export_lines(storage, "alice"))

    [problem] = problems_of(storage, "alice")
    with pytest.raises(InvalidSetting, match="line 3: "):
        Context.import_(target, lines)

    assert problem.startswith("entry 1: ")
    assert list(target.contexts()) == []


def test_part_without_a_type_beside_one_of_an_unknown_type_is_refused():
    """Where unknown types are kept, as at the gateway, a part still needs a type."""
    for odd in ({"type": ["x"]}, {}, 7):
        [message] = read([{"role": "user", "content": [BANANA, odd]}], opaque=True)
        with pytest.raises(InvalidMessage, match="content"):
            check(message)
