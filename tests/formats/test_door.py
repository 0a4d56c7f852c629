"""What comes through the door can be sent to every provider: empty answers, unknown blocks, odd fields."""

import json
from collections.abc import Mapping
from contextlib import suppress

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


class Block:
    """An object of an SDK, as the clients of the providers return them."""

    def __init__(self, **fields):
        self.fields = fields

    def model_dump(self, **_):
        return dict(self.fields)


@pytest.mark.parametrize(
    ("form", "messages"),
    [
        (
            "anthropic",
            [
                {"role": "assistant", "content": [Block(type="tool_use", id="c1", name="find", input={})]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": [Block(type="text", text="Oslo")]}
                    ],
                },
            ],
        ),
        (
            "openai_chat",
            [
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [Block(id="c1", type="function", function={"name": "find", "arguments": "{}"})],
                },
                {"role": "tool", "tool_call_id": "c1", "content": [Block(type="text", text="Oslo")]},
            ],
        ),
        (
            "gemini",
            [
                {"role": "model", "parts": [Block(functionCall={"name": "find", "args": {}}, thoughtSignature="YQ==")]},
                {"role": "user", "parts": [Block(function_response={"name": "find", "response": {"output": "Oslo"}})]},
            ],
        ),
    ],
)
def test_the_blocks_of_a_reply_may_stand_in_a_message_of_ones_own(form, messages):
    """Programs write {"role": "assistant", "content": reply.content}: objects in the lists of a dict are read."""
    with opened(form) as context:
        context.append_turn("Hi", *messages)

        stored = [*context.messages()]
        assert [message["role"] for message in stored] == ["user", "assistant", "tool"]
        for target in FORMATS:
            request = context.request(format=target)
            assert problems(target, request) == []
            assert "Oslo" in json.dumps(request)


def test_a_block_of_a_reply_that_can_not_be_read_is_refused_with_its_path():
    """As a whole message that can't be."""

    class Broken:
        def model_dump(self, **_):
            raise KeyError("x")

    with opened("anthropic") as context:
        with pytest.raises(InvalidMessage) as caught:
            context.append_turn("Hi", {"role": "assistant", "content": [{"type": "text", "text": "a"}, Broken()]})
        assert str(caught.value) == "messages[1].content[1]: its model_dump() raises a KeyError"
        assert [*context.messages()] == []


def test_results_of_gemini_may_have_the_role_of_a_tool():
    """Examples of its client write it; in a request it is the user's."""
    calls = [{"functionCall": {"name": name, "args": {}}, "thoughtSignature": "YQ=="} for name in ("find", "book")]
    results = [{"functionResponse": {"name": name, "response": {"output": "a"}}} for name in ("find", "book")]
    for said in ([results], [[each] for each in results]):
        with opened("gemini") as context:
            context.append_turn("Hi", {"role": "model", "parts": calls})
            context.append_turn(*({"role": "tool", "parts": parts} for parts in said))

            for target in FORMATS:
                assert problems(target, context.request(format=target)) == []


class Lazy(Mapping):
    """A mapping whose values are read from elsewhere, and can't be read."""

    def __getitem__(self, key):
        raise KeyError(key)

    def __iter__(self):
        return iter(["role", "content"])

    def __len__(self):
        return 2


def nested(levels):
    """Lists within lists."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


class Unclear:
    """A value without a truth, as an array of numbers is; nor has what it is compared with one."""

    __hash__ = None

    def __bool__(self):
        raise ValueError("ambiguous")

    def __eq__(self, _):
        return self


@pytest.mark.parametrize("odd", [10**5_000, nested(5_000), Unclear()], ids=["digits", "levels", "no truth"])
def test_an_odd_value_in_a_call_is_refused(odd):
    """In a message that is appended or synced, and in a call that is to be answered: never another error."""
    sound = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    asks = {"role": "assistant", "content": [{"type": "text", "text": "Hm."}]}
    for calls in (odd, [odd], [sound | {"id": odd}], [sound | {"function": {"name": odd, "arguments": "{}"}}]):
        for form in FORMATS:
            with opened(form) as context:
                for put in (context.append_turn, lambda *given: context.sync(given)):
                    with pytest.raises(InvalidMessage, match=r"messages\[1\]"):
                        put("Hi", asks | {"tool_calls": calls})
                assert [*context.messages()] == []
    answering = (
        {"name": odd, "args": {}},
        {"functionCall": {"name": odd, "args": odd}},
        {"type": "function_call", "call_id": odd, "name": "find", "arguments": "{}"},
        {"type": "tool_use", "id": "c1", "name": "find", "input": odd},
    )
    with opened() as context:
        for call in answering:
            for ask in (context.handles, context.answer, context.answers):
                with suppress(InvalidMessage):
                    ask(call)


def test_a_value_that_can_not_be_read_is_refused_wherever_it_stands():
    """As an object whose dump fails: the whole message, its role, and a block of it."""
    with opened("anthropic") as context:
        for put in (context.append_turn, lambda value: context.sync([value])):
            with pytest.raises(InvalidMessage, match=r"messages\[0\]: reading it raises a KeyError"):
                put(Lazy())
            for message in ({"role": Unclear(), "content": "Hi"}, {"role": "user", "content": [Lazy()]}):
                with pytest.raises(InvalidMessage, match=r"messages\[0\]"):
                    put(message)
        assert [*context.messages()] == []


def test_bytes_in_an_answer_are_refused_where_they_stand():
    """Also among those parts that only the provider reads: a dump of Gemini's objects has them."""
    parts = [{"text": "Hi"}, {"text": "a", "thoughtSignature": b"\xff"}]
    with opened("gemini") as context:
        with pytest.raises(InvalidMessage) as caught:
            context.append_turn("Hi", {"role": "model", "parts": parts})
        assert caught.value.path == "messages[1].parts[1].thoughtSignature"


def test_media_where_another_format_has_none_are_named():
    """Instructions of Responses may have images, and some servers' answers do; a sound may lack its data."""
    image = "https://example.com/a.png"
    said = (
        {"type": "message", "role": "developer", "content": [{"type": "input_image", "image_url": image}]},
        {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": image}}]},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
    )
    with opened() as context:
        for message in said:
            context.append_turn("Hi", message)
        for target in ("anthropic", "gemini"):
            assert problems(target, context.request(format=target)) == []
    with opened("openai_responses") as context:
        context.append_turn("Hi", said[0])
        assert problems("openai_chat", context.request(format="openai_chat")) == []
        assert "[image_url]" in str(context.render(format="openai_chat"))


OF_CHAT = (
    [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
    [{"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,SGk="}}],
    [{"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}, {"type": "text", "text": "Look."}],
)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("content", OF_CHAT, ids=lambda content: content[0]["type"])
def test_a_message_of_chat_completions_is_one_in_a_context_of_any_format(form, content):
    """Its parts tell: none that only Chat Completions has is taken for a block of the context's format."""
    with opened(form) as context:
        context.append_turn({"role": "user", "content": content}, {"role": "assistant", "content": "Yes."})
        assert context.render(format="openai_chat")[1] == {"role": "user", "content": content}
        for target in FORMATS:
            assert problems(target, context.request("Good.", format=target)) == []


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "part", [{"type": "text", "text": "No."}, {"type": "refusal", "refusal": "No."}], ids=lambda part: part["type"]
)
def test_a_list_of_texts_is_sent_to_every_provider_in_its_own_types(form, part):
    """A text has another type in Responses, and a refusal none in Anthropic's Messages."""
    with opened(form) as context:
        context.append_turn({"role": "user", "content": [{"type": "text", "text": "Go?"}]})
        context.append_turn({"role": "assistant", "content": [part]})
        for target in FORMATS:
            request = context.request("Good.", format=target)
            assert problems(target, request) == []
            assert '"refusal"' not in json.dumps(request) or target.startswith("openai")
