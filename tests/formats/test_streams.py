"""Streamed answers put together: the same answer as a call without streaming returns, whatever came in which piece."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import formats
from memci.errors import InvalidMessage
from memci.formats.streams import streamed
from memci.formats.usage import reported
from tests.serve.gateway.upstream import STREAMS, WHOLE, Said

said = st.builds(
    Said,
    st.sampled_from(["", "Let me look. ", "Ü: 漢字\n\nand a blank line"]),
    st.lists(st.sampled_from(["read", "find"]), max_size=4).map(
        lambda each: tuple((f"c{at}", name, {"at": at}) for at, name in enumerate(each))
    ),
    st.sampled_from(["", "Hm."]),
)


def events_of(form, whole):
    """Return the objects of the events in which *whole* is streamed."""
    lines = b"".join(STREAMS[form](whole)).decode().split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def answer_of(form, *events):
    """Return the answer that *events* make."""
    made = streamed(form)
    for event in events:
        made.add(event)
    return made


@pytest.mark.parametrize("form", STREAMS)
@given(answer=said)
def test_a_stream_is_the_answer_that_came_whole(form, answer):
    """Put together from its events, an answer has the messages, the usage and the text that it has as a whole."""
    whole = WHOLE[form](answer, "m", (10, 5))
    made = streamed(form)
    text = "".join(map(made.add, events_of(form, whole)))

    assert text == answer.text
    assert made.ended
    assert reported(made.usage) == reported(made.whole["usage"]) == reported(whole["usage"])
    assert made.whole["model"] == "m"
    if answer.text or answer.calls or (answer.thought and form != "openai_chat"):
        (message,), (wanted,) = formats.read([made.whole]), formats.read([whole])
        assert {**message, "content": message["content"] or None} == {**wanted, "content": wanted["content"] or None}


@pytest.mark.parametrize("form", STREAMS)
def test_a_stream_that_stops_has_not_ended(form):
    """Before the provider says why the answer ended, it has not; what came is there."""
    events = events_of(form, WHOLE[form](Said("One two three four.", (("c1", "read", {}),)), "m", (10, 5)))
    made = streamed(form)

    text = "".join(map(made.add, events[:5]))

    assert not made.ended
    assert "One two three four.".startswith(text) and text


def test_gemini_sends_parts():
    """Texts of one kind are one part; a call, a signature and the usage stay as they came."""
    call = {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "c2ln"}
    pieces = [
        [{"text": "Let me ", "thought": True}],
        [{"text": "think.", "thought": True}, {"text": "I "}],
        [{"text": "read."}, call],
        [{"text": "", "thoughtSignature": "c2ln"}],
    ]
    made = streamed("gemini")
    texts = [made.add({"candidates": [{"content": {"role": "model", "parts": parts}}]}) for parts in pieces]
    assert not made.ended
    made.add({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 9}})

    assert texts == ["", "I ", "read.", ""]
    assert made.ended
    assert made.usage == {"promptTokenCount": 9}
    assert made.whole["candidates"][0]["content"]["parts"] == [
        {"text": "Let me think.", "thought": True},
        {"text": "I read."},
        call,
        {"text": "", "thoughtSignature": "c2ln"},
    ]
    (message,) = formats.read([made.whole])
    assert (message["content"][0]["text"], message["reasoning"]) == ("I read.", "Let me think.")


WRONG = {
    "openai_chat": [
        {"choices": 3},
        {"choices": [3]},
        {"choices": [{"delta": {"tool_calls": [3]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1_000_000}]}}]},
    ],
    "openai_responses": [{"type": "response.output_item.done"}, {"type": "response.output_text.delta"}],
    "anthropic": [{"type": "message_start"}, {"type": "content_block_delta", "index": 3, "delta": {}}],
    "gemini": [{"candidates": [3]}, {"candidates": [{"content": {"parts": [3]}}]}],
}


@pytest.mark.parametrize(("form", "event"), [(form, event) for form, events in WRONG.items() for event in events])
def test_what_is_no_event_is_refused(form, event):
    """What is no event of the format is an InvalidMessage, whatever it is."""
    with pytest.raises(InvalidMessage):
        streamed(form).add(event)


def test_pieces_of_objects_and_lists_are_put_together():
    """Thoughts of OpenRouter and speech of OpenAI come in pieces; the provider takes them back whole only."""
    thought = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    made = answer_of(
        "openai_chat",
        *(
            {"choices": [{"delta": delta}]}
            for delta in (
                {"reasoning_details": [{**thought, "text": "Let"}], "audio": {"id": "a1", "transcript": "At"}},
                {"reasoning_details": [{**thought, "text": " me"}], "audio": {"transcript": " nine.", "data": "Ukl"}},
                {"reasoning_details": [{**thought, "signature": "S"}], "audio": {"data": "GRg=="}},
                {"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "E"}]},
                {"audio": {"expires_at": 9}},
            )
        ),
    )
    message = made.whole["choices"][0]["message"]
    assert message["audio"] == {"id": "a1", "transcript": "At nine.", "data": "UklGRg==", "expires_at": 9}
    assert message["reasoning_details"] == [
        {**thought, "text": "Let me", "signature": "S"},
        {"type": "reasoning.encrypted", "index": 1, "data": "E"},
    ]


def test_thoughts_that_are_parts_stay_before_the_text():
    """Mistral streams thoughts as parts of the content, and the text behind them as text."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}
    made = answer_of("openai_chat", *({"choices": [{"delta": {"content": each}}]} for each in ([thought], "Hi", "!")))
    assert made.whole["choices"][0]["message"]["content"] == [thought, {"type": "text", "text": "Hi!"}]
    assert made.text == "Hi!"


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {}, "usage": {"prompt_tokens": 3}}]},  # Moonshot
        {"choices": [{"delta": {}}], "x_groq": {"usage": {"prompt_tokens": 3}}},
    ],
)
def test_usage_is_found_where_a_server_reports_it(event):
    assert answer_of("openai_chat", event).usage == {"prompt_tokens": 3}


@pytest.mark.parametrize(
    ("form", "event"),
    [
        ("openai_chat", {"choices": [{"delta": {}, "error": {"code": 502, "message": "Gone."}}]}),
        (
            "openai_responses",
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "c", "message": "Gone."}}},
        ),
    ],
)
def test_an_error_is_found_where_a_provider_says_it(form, event):
    assert answer_of(form, event).error.endswith("Gone.")


def test_a_refusal_that_is_cut_is_kept():
    message = {"type": "message", "id": "m", "role": "assistant", "content": []}
    made = answer_of(
        "openai_responses",
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.refusal.delta", "output_index": 0, "delta": "I can't."},
    )
    assert formats.read([made.whole])[0]["content"] == made.text == "I can't."


def test_arguments_of_a_call_to_gemini_come_in_pieces():
    """Vertex streams them by their paths; the answer has one whole call."""
    pieces = [
        {"name": "book", "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os", "willContinue": True}], "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}], "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.stops[0].day", "numberValue": 3}], "willContinue": True},
        {"partialArgs": [{"jsonPath": "$.back", "nullValue": "NULL_VALUE"}], "willContinue": True},
        {},
    ]
    parts = [{"functionCall": piece} for piece in pieces]
    parts[0]["thoughtSignature"] = "S"
    after = {"functionCall": {"name": "look", "args": {}}}
    made = answer_of("gemini", *({"candidates": [{"content": {"parts": [part]}}]} for part in [*parts, after]))
    arguments = {"city": "Oslo", "stops": [{"day": 3}], "back": None}
    assert made.whole["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "book", "args": arguments}, "thoughtSignature": "S"},
        after,
    ]
