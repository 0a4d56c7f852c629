"""Streamed answers over a real socket: every piece, the whole message, and never a silent end in the middle."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import ModelRefused, ModelUnavailable
from memci.llm import Chat, Reply, Spent, Usage
from memci.llm.replies import IncomingStream
from memci.llm.server_errors import Unusable
from memci.messages import check
from memci.testing.llm import Cut, Hang, ModelServer, Raw, Reset, Status
from memci.testing.llm.server import stream as chunks
from tests.hostile_answers import EMPTY_CHOICES, HTML

HI = [{"role": "user", "content": "Hi"}]
TEXT = "你好 🌍 — it’s a “test”\u2028of é and \r\n\r\n data: lines"
CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "東京"}'}},
    {"id": "c2", "type": "function", "function": {"name": "time", "arguments": "{}"}},
]


def sse(*events: object, done: bool = True) -> Raw:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return Raw("".join(lines) + ("data: [DONE]\n\n" if done else ""), "text/event-stream")


def said(text: str) -> dict:
    return {"choices": [{"delta": {"content": text}}]}


@pytest.mark.parametrize("chunk", [None, 1, 7, 1000])
def test_pieces_are_the_text(chat_over, chunk):
    """Whatever the network tears apart, the pieces joined are the text, and the reply has it whole."""
    reply = Reply({"role": "assistant", "content": TEXT}, Usage(9, 4, 2))
    with ModelServer([reply], chunk=chunk) as server:
        stream = chat_over(server).stream(HI)
        pieces = list(stream)

    assert len(pieces) > 3
    assert "".join(pieces) == TEXT
    assert stream.reply == Reply(reply.message, reply.usage, "stop", "test-model")
    assert server.requests[0].body["stream_options"] == {"include_usage": True}


def test_tool_calls_are_put_together(server, chat):
    """Tool calls that come in pieces are whole in the reply, each with its own arguments, and yield no text."""
    server.answers([{"role": "assistant", "content": None, "tool_calls": CALLS}])
    stream = chat.stream(HI, tools=[{"type": "function", "function": {"name": "weather", "parameters": {}}}])

    assert list(stream) == []
    assert stream.reply.message["tool_calls"] == CALLS
    assert stream.reply.finish == "tool_calls"


def test_text_and_tool_calls_and_reasoning_are_all_kept(server, chat):
    """A message of text, reasoning and a call has all three; only the text is yielded."""
    message = {"role": "assistant", "content": "One moment.", "reasoning": "hm, weather", "tool_calls": CALLS[:1]}
    server.answers([message])
    stream = chat.stream(HI)

    assert "".join(stream) == "One moment."
    assert stream.reply.message == message


def test_tool_calls_without_an_index_are_told_apart(server, chat):
    """Servers that number no calls begin each with a new id."""
    parts = [
        [{"id": "a", "function": {"name": "f", "arguments": ""}}],
        [{"function": {"arguments": "{}"}}],
        [{"id": "b", "function": {"name": "g", "arguments": "[]"}}],
    ]
    server.answers([sse(*({"choices": [{"delta": {"tool_calls": part}}]} for part in parts))])
    stream = chat.stream(HI)
    list(stream)

    assert stream.reply.message["tool_calls"] == [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": "[]"}},
    ]


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("before", ["", "\n\n\n", ": alive\n\n"])
def test_server_that_does_not_stream_is_read(server, chat, kind, before):
    """A server that answers whole though it was asked to stream yields one piece, also behind signs of life."""
    completion = json.dumps({"choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}]})
    server.answers([Raw(before + completion, kind)])
    stream = chat.stream(HI)

    assert list(stream) == ["ok"]
    assert stream.reply.text == "ok"


def test_server_that_refuses_stream_options_is_asked_without(server, chat):
    """Where the price of a stream can't be asked for, the answer comes without it, and nobody asks again."""
    server.refuses("stream_options")
    server.answers(["one", "two"])
    first, second = chat.stream(HI), chat.stream(HI)

    assert ["".join(first), "".join(second)] == ["one", "two"]
    assert first.reply.usage == Usage()
    assert ["stream_options" in request.body for request in server.requests] == [True, False, False]
    assert chat.ledger.total.completion > 0


@pytest.mark.parametrize("after", [0, 1, 9, 16])
def test_cut_stream_raises_with_what_came(server, chat, after):
    """A stream that stops in the middle raises, and says what had come; it never ends as if it were whole."""
    server.answers([Cut("Once upon a time", after=after)] * 3)
    stream = chat.stream(HI, step="talk")
    pieces = []

    with pytest.raises(ModelUnavailable) as raised:
        pieces.extend(iter(stream.__next__, None))

    assert "".join(pieces) == raised.value.partial == "Once upon a time"[:after]
    assert len(server.requests) == (1 if after else 3), "what was said is not said again"
    assert chat.ledger.steps["talk"].failed == 1
    with pytest.raises(ModelUnavailable, match="not read to its end"):
        _ = stream.reply


@pytest.mark.parametrize(
    "fault", [sse(said("Once"), done=False), sse(said("Once"), {"error": {"message": "SECRET"}}), sse(said("Once"), 3)]
)
def test_stream_that_ends_wrongly_raises(server, chat, fault):
    """Without an end, with an error in the middle, with an event that is none: the answer is not taken."""
    server.answers([fault])
    stream = chat.stream(HI)

    assert next(stream) == "Once"
    with pytest.raises(ModelUnavailable) as raised:
        next(stream)
    assert raised.value.partial == "Once"
    assert "SECRET" not in str(raised.value)


def test_end_without_done_is_an_end(server, chat):
    """An answer whose server said why it ended is whole, also if the connection is cut behind it."""
    server.answers([sse(said("Hi"), {"choices": [{"delta": {}, "finish_reason": "length"}]}, done=False)])
    stream = chat.stream(HI)

    assert list(stream) == ["Hi"]
    assert stream.reply.finish == "length"


@pytest.mark.parametrize("fault", [Reset(), Status(500), Status(429), HTML, sse(), Raw("", "text/event-stream")])
def test_failure_before_the_first_piece_is_tried_again(server, chat, fault):
    """As long as nothing was said, a stream is tried again like any call."""
    if fault == sse():
        fault = Raw("data: {}\n\n", "text/event-stream")
    server.fails(fault)
    server.answers(["ok"])

    assert list(chat.stream(HI)) == ["ok"]
    assert len(server.requests) == 2


def test_refused_stream_is_not_tried_again(server, chat):
    """A stream that is refused raises at its first piece; none is asked for before."""
    server.fails(Status(404))
    stream = chat.stream(HI)

    assert server.requests == []
    with pytest.raises(ModelRefused):
        next(stream)
    assert len(server.requests) == 1


@pytest.mark.parametrize("blanks", [False, True], ids=["silent", "sending blanks"])
def test_stream_that_hangs_ends_by_the_timeout(server, blanks):
    """A stream in which nothing comes, or signs of life only, is given up after the timeout."""
    server.fails(Hang(blanks=blanks))

    with Chat("m", base_url=server.base_url, timeout=0.2, tries=1) as chat, pytest.raises(ModelUnavailable) as raised:
        next(chat.stream(HI))

    assert "no answer in time" in str(raised.value)


def test_stream_may_last_as_long_as_pieces_come(clock):
    """The timeout is what may pass between two pieces, not what the whole of a stream may take."""
    event = f"data: {json.dumps(said('x'))}\n\n".encode()

    def chunks():
        for seconds, chunk in [(0.9, event)] * 5 + [(0.6, b": alive\n\n")] * 2:
            clock.now += seconds
            yield chunk

    pieces = IncomingStream(chunks(), 1.0, clock).pieces()

    assert [next(pieces) for _ in range(5)] == ["x"] * 5
    with pytest.raises(TimeoutError):
        next(pieces)


def test_stream_that_is_left_is_booked_and_closed(server, chat):
    """Who stops listening closes the stream; what came is in the ledger, and the server counts as there."""
    server.answers(["one two three four five six", "ok"])
    with chat.stream(HI) as stream:
        assert next(stream) == "one "

    assert chat.ledger.total.calls == 1
    assert chat.ledger.total.failed == 0
    assert chat(HI).text == "ok"
    assert chat.paused == 0.0


def test_price_of_a_stream_is_booked_once(server, chat):
    """A stream costs what its last event says."""
    server.answers([Reply({"role": "assistant", "content": "Hello"}, Usage(90, 4, 2))])

    list(chat.stream(HI, step="talk"))

    assert chat.ledger.steps == {"talk": Spent(calls=1, prompt=90, completion=4, cached=2)}


def test_empty_choices_are_no_stream(server, chat):
    """A completion without a choice is no answer, streamed or not."""
    server.answers([EMPTY_CHOICES] * 3)

    with pytest.raises(ModelUnavailable):
        next(chat.stream(HI))


def test_calls_with_a_list_for_an_id_are_no_message(server, chat):
    """A tool call whose id is no text is refused as any other answer of no form."""
    wrong = [
        {"choices": [{"delta": {"tool_calls": [{"id": each, "function": {"name": "f"}}]}}]} for each in ("a", ["b"])
    ]
    server.answers([sse(*wrong)] * 3)

    with pytest.raises(ModelUnavailable):
        list(chat.stream(HI))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(TEXTS, TEXTS, st.lists(st.integers(1, 40)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_any_stream_is_put_together_however_it_is_torn(text, reasoning, sizes, end):
    """Whatever the text, the ends of lines and the places where the bytes are torn, the message is the one sent."""
    message = {"role": "assistant", "content": text, "reasoning_content": reasoning, "tool_calls": CALLS}
    events = chunks(Reply(message, Usage(5, 6, 1), "tool_calls"), "m", usage=True)
    parts = [b": a comment" + end + end]
    parts += [b"data: " + json.dumps(event, ensure_ascii=False).encode() + end + end for event in events]
    data = b"".join([*parts, b"data: [DONE]", end, end])
    torn = []
    for size in [*sizes, len(data)]:
        torn.append(data[:size])
        data = data[size:]
    incoming = IncomingStream(torn, 1.0, lambda: 0.0)

    assert "".join(incoming.pieces()) == text
    if not reasoning:
        del message["reasoning_content"]
    assert incoming.result == Reply(message, Usage(5, 6, 1), "tool_calls", "m")


@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"{}", b"[DONE]", b"\n\n", b'{"choices": [{}]}'])))
def test_any_bytes_are_an_answer_or_none(parts):
    """Whatever bytes come as a stream, they are an answer that a context takes or they are refused."""
    incoming = IncomingStream(parts, 1.0, lambda: 0.0)

    try:
        text = "".join(incoming.pieces())
    except Unusable:
        return
    assert incoming.result.text == text
    check(incoming.result.message)
