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
