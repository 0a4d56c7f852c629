"""Streams as pure functions: whatever the model says, and however its bytes are split, the client gets one answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci import formats
from memci.formats.events import Events, data_of, load_object
from memci.serve.hidden import insert_hidden
from memci.serve.replies import calls, merged
from memci.serve.streams import stream_of

from .kit import FORMATS
from .upstream import STREAMS, WHOLE, Said

OWN = frozenset({"recall_page", "search_memory"})
names = st.sampled_from(["recall_page", "search_memory", "read", "find"])
said = st.builds(
    Said,
    st.sampled_from(["", "Let me look. ", "Ü: 漢字\n\nand a blank line"]),
    st.lists(names, max_size=4).map(lambda each: tuple((f"c{at}", name, {"at": at}) for at, name in enumerate(each))),
    st.sampled_from(["", "Hm."]),
)


def rounds_of(form, answers):
    """The whole replies up to the one with which the client's answer ends, ids made different in each round."""
    wholes = []
    for number, each in enumerate(answers):
        made = Said(each.text, tuple((f"{id_}-{number}", *rest) for id_, *rest in each.calls), each.thought)
        wholes.append(WHOLE[form](made, "m", (10 + number, 5)))
        if not calls(form, wholes[-1], OWN).goes_on:
            break
    return wholes


def content(form, reply):
    """What the client reads of a whole reply."""
    if form == "openai_chat":
        choice = reply["choices"][0]
        message = choice["message"]
        found = [(each["id"], each["function"]) for each in message.get("tool_calls") or []]
        return message.get("content") or "", found, choice["finish_reason"]
    if form == "anthropic":
        return reply["content"], reply["stop_reason"]
    return reply["output"]


@pytest.mark.parametrize("form", FORMATS)
@given(answers=st.lists(said, min_size=1, max_size=4), split=st.integers(1, 400))
def test_the_client_gets_the_stream_of_what_it_would_get_whole(form, answers, split):
    """The events that are sent on, put together, are the merged reply: texts, the client's calls, the usage of all."""
    wholes = rounds_of(form, answers)
    stream, client, sent = stream_of(form, OWN, {}), stream_of(form, (), {}), b""
    for number, whole in enumerate(wholes, 1):
        stream.begin(final=number == len(wholes))
        events, raw = Events(), b"".join(STREAMS[form](whole))
        for start in range(0, len(raw), split):
            sent += b"".join(map(stream.shown, events.feed(raw[start : start + split])))
        assert stream.ended and events.rest() == b""
        assert content(form, stream.reply) == content(form, whole)

    client.begin(final=True)
    numbers = []
    for event in Events().feed(sent):
        assert client.shown(event) == event  # nothing is left that is memci's, and all numbers follow one another
        numbers.append((load_object(data_of(event)) or {}).get("sequence_number"))
    wanted = merged(form, wholes, OWN)
    assert content(form, client.reply) == content(form, wanted)
    assert client.usage == wanted["usage"]
    assert numbers == [*range(len(numbers))] or form != "openai_responses"


@pytest.mark.parametrize("form", FORMATS)
@given(answer=said, split=st.integers(1, 400))
def test_a_stream_without_memcis_calls_is_sent_byte_for_byte(form, answer, split):
    """What needs no change is not written again."""
    answer = Said(answer.text, tuple(each for each in answer.calls if each[1] not in OWN), answer.thought)
    raw = b"".join(STREAMS[form](WHOLE[form](answer, "m", (10, 5))))
    stream, events = stream_of(form, OWN, {}), Events()
    stream.begin(final=False)
    sent = b"".join(
        stream.shown(event) for start in range(0, len(raw), split) for event in events.feed(raw[start : start + split])
    )
    assert sent == raw or form == "openai_responses"  # there what the response repeats of the request is the client's
    assert not stream.goes_on


CUT = {
    "openai_chat": lambda whole: whole["choices"][0].update(finish_reason="length"),
    "openai_responses": lambda whole: whole.update(status="incomplete"),
    "anthropic": lambda whole: whole.update(stop_reason="max_tokens"),
}


@pytest.mark.parametrize("form", FORMATS)
def test_a_reply_that_is_cut_goes_not_on(form):
    """Its calls may not be whole; nor does one go on in which the client has a call to answer."""
    own, client = ("m1", "recall_page", {}), ("c1", "read", {})
    whole, both = (WHOLE[form](Said("Let", each), "m", (1, 1)) for each in ((own,), (own, client)))
    assert calls(form, whole, OWN) == (1, 0, False) and calls(form, whole, OWN).goes_on
    assert calls(form, both, OWN) == (1, 1, False) and not calls(form, both, OWN).goes_on
    CUT[form](whole)
    assert calls(form, whole, OWN) == (1, 0, True) and not calls(form, whole, OWN).goes_on


STRANGE = {
    "openai_chat": b'data: {"choices": [3]}\n\n',
    "openai_responses": b'data: {"type": "response.output_text.delta"}\n\n',
    "anthropic": b'data: {"type": "content_block_delta", "index": 9, "delta": {"type": "text_delta", "text": "x"}}\n\n',
}


@pytest.mark.parametrize("form", FORMATS)
def test_an_event_that_cannot_be_read_is_sent_as_it_came(form):
    """A provider's event of an unknown shape reaches the client, and the stream goes on."""
    stream = stream_of(form, OWN, {})
    stream.begin(final=False)
    assert stream.shown(STRANGE[form]) == STRANGE[form]
    for event in STREAMS[form](WHOLE[form](Said("Hello."), "m", (10, 5))):
        stream.shown(event)
    assert stream.ended


def recalled(at, text):
    call = {"id": f"m{at}", "type": "function", "function": {"name": "recall_page", "arguments": "{}"}}
    return [
        {"role": "assistant", "content": text, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"m{at}", "content": f"Page {at}."},
    ]


def test_what_a_client_left_out_of_one_answer_is_no_part_of_the_next():
    """It dropped an answer that had come to a recall without a word, and joined the texts around the second one."""
    one, two, new = ({"role": "user", "content": text} for text in ("One?", "Two?", "Three?"))
    log = [one, *recalled(1, None), two, *recalled(2, "So. "), {"role": "assistant", "content": "Fine."}]
    client = [one, two, {"role": "assistant", "content": "So. Fine."}, new]
    assert insert_hidden("openai_chat", client, log, OWN) == [*log, new]


def test_a_recall_is_left_out_if_the_client_deleted_the_words_before_it():
    """They are neither sent nor found any more; the rounds of the turns before stay."""
    one, two = ({"role": "user", "content": text} for text in ("One?", "Two?"))
    kept = [one, *recalled(1, "So. "), {"role": "assistant", "content": "Fine."}, two]
    client = [one, {"role": "assistant", "content": "So. Fine."}, two]
    log = [*kept, *recalled(2, "The code is 4711; I look. "), {"role": "assistant", "content": "Done."}]
    for answer in ([], [{"role": "assistant", "content": "Done."}], [{"role": "assistant", "content": "A code."}]):
        assert insert_hidden("openai_chat", [*client, *answer], log, OWN) == [*kept, *answer]


def test_a_reply_that_the_provider_continued_itself_is_joined_with_the_next_one():
    """A shell of the provider's splits the reply with the recall; the client sends its end with the next reply."""

    def items(*found):
        return [{"id": f"i_{each['type']}_{each.get('call_id')}", **each} for each in found]

    def say(text):
        part = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "role": "assistant", "content": [part]}

    recall = {"type": "function_call", "call_id": "m1", "name": "recall_page", "arguments": "{}"}
    page = {"type": "function_call_output", "call_id": "m1", "output": "Page 1."}
    shell = {"type": "shell_call", "call_id": "s1", "action": {"commands": ["ls"]}}
    printed = {"type": "shell_call_output", "call_id": "s1", "output": [{"stdout": "a", "stderr": ""}]}
    code = {"type": "code_interpreter_call", "code": "1", "container_id": "c1"}
    one, new = ({"role": "user", "content": text} for text in ("One?", "Two?"))

    def read(*found):
        return formats.read([*items(*found)], "openai_responses", opaque=True)

    log = [one, *read(recall, shell, printed, code), *read(page), *read(say("Fine."))]
    client = [one, *read(shell, printed, code, say("Fine.")), new]

    made = insert_hidden("openai_responses", client, log, OWN)

    assert made == [*log, new]
    assert insert_hidden("openai_responses", client, log[:-1], OWN) == made


def test_a_call_that_the_client_has_is_no_hidden_one():
    """Its tool has the name of one of memci's; the end of the list is edited."""
    one, two, new = ({"role": "user", "content": text} for text in ("One?", "Two?", "Three?"))
    past = [one, *recalled(1, None), {"role": "assistant", "content": "Fine."}]
    assert insert_hidden("openai_chat", [*past, new], [*past, two], OWN) == [*past, new]


@pytest.mark.parametrize("form", ["openai_responses", "anthropic"])
def test_a_client_that_has_nothing_but_the_thought_of_a_hidden_reply_has_no_answer(form):
    """Its stream was cut behind the thought, and it sends that."""
    one = {"role": "user", "content": "One?"}
    said = WHOLE[form](Said("", (("m1", "recall_page", {}),), "I must look."), "m", (10, 5))
    found = said["output"] if form == "openai_responses" else [{"role": "assistant", "content": said["content"]}]
    kept = formats.read(found, form, opaque=True)
    thought = found[:1] if form == "openai_responses" else [{"role": "assistant", "content": said["content"][:1]}]
    client = [one, *formats.read(thought, form, opaque=True)]
    assert insert_hidden(form, client, [one, *kept], OWN) == [one, *kept]
