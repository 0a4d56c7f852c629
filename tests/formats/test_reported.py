"""Situations in which people lost a conversation, as they reported them of other programs: each stays valid here."""

import base64
import json
from types import SimpleNamespace

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidMessage
from memci.formats import FORMATS
from memci.formats.streams import streamed
from memci.messages import text_of
from memci.testing.formats import problems

pytestmark = pytest.mark.usefixtures("no_memory")

PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(300_000)).decode()
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "content": "Here it is."}
DRAWN = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PICTURE}
SHOT = {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "f", "arguments": "{}"}
PART = {"inlineData": {"mimeType": "image/png", "data": PICTURE}}
IMAGE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
MADE = {
    "drawn, in Responses": ("openai_responses", [DRAWN, SAID]),
    "of an MCP server": ("openai_responses", [{**SHOT, "output": json.dumps([{"data": PICTURE}])}, SAID]),
    "drawn by Gemini": ("gemini", [{"role": "model", "parts": [{"text": "Here it is."}, PART]}]),
    "drawn behind a compatible server": (
        "openai_chat",
        [{"role": "assistant", "content": "Here it is.", "images": [IMAGE]}],
    ),
    "spoken": (
        "openai_chat",
        [{"role": "assistant", "content": None, "audio": {"id": "a", "data": PICTURE, "transcript": "Here."}}],
    ),
}


def opened(form="openai_chat", **settings):
    return Context.open(EphemeralStorage(), "ann", system="Help.", window=16_000, format=form, **settings)


@pytest.mark.parametrize(("form", "answer"), MADE.values(), ids=MADE)
def test_what_a_model_draws_or_says_costs_what_media_cost(form, answer):
    """As text it would be larger than the window, and push everything else out."""
    with opened(form) as context:
        context.append_turn("Draw the harbour.", *answer)
        request = context.request("Make it bluer.", format=form)
        spoken = "audio" in answer[-1]
        assert ('"audio": {"id": "a"}' if spoken else PICTURE) in json.dumps(request)
        assert context.report().total < 4_000
        assert problems(form, request) == []


def test_a_spoken_answer_is_read_by_other_models():
    with opened() as context:
        spoken = {"id": "a", "data": "UklGRg==", "transcript": "It leaves at nine."}
        context.append_turn("When?", {"role": "assistant", "content": None, "audio": spoken})
        assert text_of(context.turns(1)[0][1]) == "It leaves at nine."
        for form, within in (("anthropic", "messages"), ("gemini", "contents"), ("openai_responses", "input")):
            assert "leaves at nine" in json.dumps(context.request("And back?", format=form)[within])


@pytest.mark.parametrize("hidden", [None, "E"])
def test_thoughts_of_another_model_are_left_out(hidden):
    """Those without encrypted content, too: the provider would look them up by their ids."""
    storage = EphemeralStorage()
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": hidden}
    with Context.open(storage, "ann", window=16_000, format="openai_responses", model="gpt-5") as context:
        context.append_turn("When?", thought, SAID)
        assert thought in context.request("And?", format="openai_responses")["input"]
    with Context.open(storage, "ann", model="gpt-5.4") as context:
        items = context.request("And?", format="openai_responses")["input"]
        assert not any(item.get("type") == "reasoning" or "id" in item for item in items)


@pytest.mark.parametrize(
    "thought", [{"type": "thinking", "thinking": "Hm", "signature": "S"}, {"type": "redacted_thinking", "data": "D"}]
)
def test_a_mark_on_a_thought_is_left_out(thought):
    marked = {**thought, "cache_control": {"type": "ephemeral"}}
    with opened("anthropic") as context:
        context.append_turn("Hi", {"role": "assistant", "content": [marked, {"type": "text", "text": "Hello"}]})
        request = context.request("And?", format="anthropic")
        assert problems("anthropic", request) == []
        assert thought in request["messages"][1]["content"]


def test_an_empty_frame_of_a_stream_is_no_event():
    """Some servers send `data: null`, which an SDK makes None."""
    answer = streamed("openai_chat")
    for event in (None, {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}, None):
        answer.add(event)
    assert (answer.text, answer.ended) == ("Hi", True)


def test_thoughts_in_the_form_of_mistral_are_no_blocks_of_anthropic():
    said = {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}
    with opened() as context:
        context.append_turn("Hi", said)
        assert context.request("And?")["messages"][2] == said


def test_a_result_with_a_part_of_mcp_is_refused_by_its_place():
    call = {"id": "c1", "type": "function", "function": {"name": "shoot", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "image", "data": "AA==", "mimeType": "a/b"}]}
    with opened() as context:
        context.append_turn("Go.", {"role": "assistant", "content": None, "tool_calls": [call]})
        with pytest.raises(InvalidMessage, match=r"content\[0\]\.type"):
            context.append_turn(result)


def test_an_error_within_a_stream_is_read_whatever_object_it_is():
    answer = streamed("openai_responses")
    answer.add(SimpleNamespace(type="error", code="server_error", message="busy"))
    assert answer.error == "server_error: busy"


def test_a_document_of_blocks_is_read_by_other_models():
    blocks = [{"type": "text", "text": "Clause seven."}, {"type": "text", "text": "Clause eight."}]
    document = {"type": "document", "source": {"type": "content", "content": blocks}, "citations": {"enabled": True}}
    with opened("anthropic") as context:
        context.append_turn({"role": "user", "content": [document]}, {"role": "assistant", "content": "Read."})
        for form in ("openai_chat", "openai_responses", "gemini"):
            assert "Clause seven.\\nClause eight." in json.dumps(context.request("And now?", format=form))


def test_blocks_of_a_result_that_newer_tools_need_are_sent():
    """What a search for tools found, and what a browser shows."""
    found = [{"type": "tool_reference", "tool_name": "f"}, {"type": "browser_state", "tabs": []}]
    used = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "navigate", "input": {}}]}
    given = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": found}]}
    with opened("anthropic") as context:
        context.append_turn("Go.", used, given, {"role": "assistant", "content": "Done."})
        request = context.request("And now?")
        assert problems("anthropic", request) == []
        assert found == request["messages"][2]["content"][0]["content"]


@pytest.mark.parametrize("form", ["openai_chat", "openai_responses", "gemini"])
def test_a_stream_that_was_cut_is_stored_though_it_reported_no_usage(form):
    """What the user saw is not lost."""
    choice = {"index": 0, "delta": {"content": "It lea"}, "finish_reason": None}
    message = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": ""}]}
    events = {
        "openai_chat": [{"object": "chat.completion.chunk", "choices": [choice]}],
        "openai_responses": [
            {"type": "response.output_item.added", "output_index": 0, "item": message},
            {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "It lea"},
        ],
        "gemini": [{"candidates": [{"content": {"role": "model", "parts": [{"text": "It lea"}]}, "index": 0}]}],
    }
    answer = streamed(form)
    assert "".join(map(answer.add, events[form])) == "It lea" and not answer.ended
    with opened(form) as context:
        context.append_turn("When?", answer.whole, usage=answer.usage)
        assert text_of(context.turns(1)[0][1]) == "It lea"
        assert context.report().cost.calls == 0


@pytest.mark.parametrize(
    "call",
    [
        {"function": {"name": "f", "arguments": "{}"}},
        {"id": None, "type": None, "function": {"name": "f", "arguments": "{}"}},
        {"id": "c1", "function": {"name": "f", "arguments": {}}},
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": None}},
        {"id": "c1", "type": "function", "function": {"name": None}},
    ],
)
def test_an_answer_of_a_compatible_server_may_leave_things_out(call):
    """The answer is paid for; a request that repeats it has what every provider asks for."""
    with opened() as context:
        context.append_turn("Go.", {"choices": [{"message": {"content": None, "tool_calls": [call]}}]})
        context.append_turn({"role": "tool", "tool_call_id": call.get("id") or "", "content": "42"}, opens_page=False)
        for form in FORMATS:
            request = context.request("And?", format=form)
            assert problems(form, request) == []
            assert "42" in json.dumps(request)


def test_a_piece_of_a_stream_is_no_answer():
    with opened() as context, pytest.raises(InvalidMessage):
        context.append_turn("Go.", {"object": "chat.completion.chunk", "choices": [{"delta": {"content": "Ok"}}]})


@pytest.mark.parametrize("place", ["question", "result"])
def test_own_marks_last_as_long_as_the_callers_behind_them(place):
    """Anthropic refuses a mark of one hour behind one of five minutes."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    said = {"type": "text", "text": "So?", **(mark if place == "question" else {})}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "9", **mark}]}
    with opened("anthropic") as context:
        context.append_turn("Go.", {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f"}]})
        context.append_turn({"role": "user", "content": [result if place == "result" else {**result, "content": "9"}]})
        context.append_turn({"role": "assistant", "content": "9."})
        request = context.request({"role": "user", "content": [said]})
        marks = [text.split("}")[0] for text in json.dumps(request).split('"cache_control": {')[1:]]
        lasting = ["ttl" in each for each in marks]
        assert lasting == sorted(lasting, reverse=True)
        assert len(marks) > 1


def test_a_search_of_tools_without_a_result_gets_one_of_its_kind():
    search = {"type": "tool_search_call", "id": "ts_1", "call_id": "c1", "execution": "client", "arguments": {}}
    with opened("openai_responses") as context:
        context.append_turn("Go.", search, {"role": "user", "content": "Never mind."})
        request = context.request()
        assert request["input"][-2]["type"] == "tool_search_output"
        assert problems("openai_responses", request) == []


def test_contents_of_gemini_may_leave_out_the_role_or_have_an_older_one():
    """They are the user's, and are sent as such: the provider takes no other role."""
    call = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
    result = {"functionResponse": {"name": "read", "response": {"result": "It is blue."}}}
    with opened("gemini") as context:
        context.append_turn({"parts": [{"text": "Read it."}]}, call, {"role": "function", "parts": [result]})
        request = context.request("And now?", format="gemini")
        assert problems("gemini", request) == []
        assert {each["role"] for each in request["contents"]} == {"user", "model"}
