"""What a message is: what is taken, what is refused, and what the refusal says."""

import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import InvalidMessage, MemciError
from memci.messages import call_name, check, plain, text_of, tool_calls

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def with_call(**changed: object) -> dict[str, object]:
    return {"role": "assistant", "content": None, "tool_calls": [{**CALL, **changed}]}


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "user", "content": "hi", "name": "alice", "x-unknown": [1, {"a": None}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "assistant", "content": "both", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "content": "x", "tool_calls": None},
        {"role": "assistant", "content": None, "tool_calls": [CALL, CALL]},
        with_call(id=""),
        with_call(function={"name": "f", "arguments": "not JSON"}),
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}]},
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        {"role": "tool", "tool_call_id": "", "content": ""},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "ok"}]},
    ],
)
def test_check_takes_what_providers_accept(message):
    """What agents send is taken as it is, odd or not."""
    before = repr(message)

    check(message)

    assert repr(message) == before


@pytest.mark.parametrize(
    ("message", "path", "told"),
    [
        ({}, "m.role", "is missing"),
        ({"content": "hi"}, "m.role", "is missing"),
        ({"role": "robot", "content": "hi"}, "m.role", "'robot'"),
        ({"role": 5, "content": "hi"}, "m.role", "got 5"),
        ({"role": ["user"], "content": "hi"}, "m.role", "expected 'user'"),
        ({"role": "function", "name": "f", "content": "4"}, "m.role", "tool_calls"),
        ({"role": "user"}, "m.content", "is missing"),
        ({"role": "user", "content": None}, "m.content", "NoneType"),
        ({"role": "user", "content": 4}, "m.content", "int"),
        ({"role": "user", "content": {"text": "hi"}}, "m.content", "dict"),
        ({"role": "user", "content": ["hi"]}, "m.content[0]", "str"),
        ({"role": "user", "content": [{"text": "hi"}]}, "m.content[0].type", "type"),
        ({"role": "user", "content": [{"type": "text"}]}, "m.content[0].text", "text"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": 1}]}, "m.content[1].type", "type"),
        ({"role": "user", "content": "hi", "tool_calls": [CALL]}, "m.tool_calls", "only an assistant"),
        ({"role": "tool", "content": "4"}, "m.tool_call_id", "names the call"),
        ({"role": "tool", "tool_call_id": 4, "content": "4"}, "m.tool_call_id", "names the call"),
        ({"role": "tool", "tool_call_id": "c1", "content": None}, "m.content", "NoneType"),
        ({"role": "assistant", "content": None, "refusal": ["x"]}, "m.refusal", "str"),
        ({"role": "user", "content": [{"type": "banana"}]}, "m.content[0].type", "Chat Completions has no"),
        (
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "pear"}]},
            "m.content[0].type",
            "Chat Completions has no",
        ),
        ({"role": "assistant", "content": 4}, "m.content", "int"),
        ({"role": "assistant", "tool_calls": {"id": "c1"}}, "m.tool_calls", "list"),
        ({"role": "assistant", "tool_calls": ["c1"]}, "m.tool_calls[0]", "str"),
        (with_call(id=None), "m.tool_calls[0].id", "id"),
        (with_call(function=None), "m.tool_calls[0].function", "arguments"),
        (with_call(function={"arguments": "{}"}), "m.tool_calls[0].function.name", "name"),
        (with_call(function={"name": "f", "arguments": {}}), "m.tool_calls[0].function.arguments", "JSON"),
        (with_call(type="custom"), "m.tool_calls[0].custom", "input"),
    ],
)
def test_check_says_where_and_what_is_wrong(message, path, told):
    """A refusal names the path of the first thing that is wrong, and says what was expected."""
    with pytest.raises(InvalidMessage) as caught:
        check(message, "m")

    assert caught.value.path == path
    assert told in caught.value.reason
    assert isinstance(caught.value, ValueError)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=4)
        | st.sampled_from(["user", "assistant", "tool"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["role", "content", "tool_calls", "tool_call_id", "id", "type", "function", "name", "arguments"]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, dict))
)
def test_check_takes_or_refuses_any_object(message):
    """Any JSON object is taken or refused with InvalidMessage, never another error."""
    try:
        check(message)
    except InvalidMessage as error:
        assert error.path.startswith("message")  # noqa: PT017 -- it may be taken as well
    else:
        assert message["role"] in {"user", "assistant", "tool"}
        assert isinstance(tool_calls(message), list)
        assert isinstance(text_of(message), str)


def test_plain_takes_text_as_the_users():
    """A str is what the user says."""
    assert plain("hi") == {"role": "user", "content": "hi"}


def test_plain_takes_mappings():
    """A mapping that is no dict becomes one, in its order."""
    assert plain(types.MappingProxyType({"content": "hi", "role": "user"})) == {"content": "hi", "role": "user"}


@pytest.mark.parametrize("value", [None, 4, b"hi", ["hi"], object(), dict, {"role"}])
def test_plain_refuses_anything_else(value):
    """What is no message at all is refused with the type that it has."""
    with pytest.raises(InvalidMessage, match=type(value).__name__) as caught:
        plain(value, "messages[3]")

    assert caught.value.path == "messages[3]"
    assert isinstance(caught.value, MemciError)


def test_plain_of_an_sdk_class_is_refused():
    """A class is not one of its objects."""
    chat = pytest.importorskip("openai.types.chat")

    with pytest.raises(InvalidMessage):
        plain(chat.ChatCompletionMessage)


def sdk_message(**fields: object):
    """An object of the SDK as it is made from a reply's JSON."""
    chat = pytest.importorskip("openai.types.chat")
    return chat.ChatCompletionMessage.model_validate(fields)


def test_plain_of_an_sdk_message_has_the_fields_that_were_set():
    """Of an SDK's object only what the reply held is kept: no default comes in."""
    assert plain(sdk_message(role="assistant", content="Hi")) == {"content": "Hi", "role": "assistant"}


def test_plain_of_an_sdk_message_keeps_its_calls():
    """Tool calls come through whole, with ids and arguments as the model wrote them."""
    arguments = '{"to":  "Oslo", "n": 1.0}'
    call = {"id": "call_1", "type": "function", "function": {"name": "book", "arguments": arguments}}

    message = plain(sdk_message(role="assistant", content=None, tool_calls=[call]))

    check(message)
    assert message == {"content": None, "role": "assistant", "tool_calls": [call]}
    assert message["tool_calls"][0]["function"]["arguments"] == arguments


def test_plain_of_an_sdk_message_keeps_custom_calls():
    """A custom tool's input comes through whole."""
    call = {"id": "call_1", "type": "custom", "custom": {"name": "run", "input": "ls -l"}}

    message = plain(sdk_message(role="assistant", content=None, tool_calls=[call]))

    check(message)
    assert message["tool_calls"] == [call]


def test_plain_of_an_sdk_message_keeps_a_refusal():
    """A refusal without content is a message."""
    message = plain(sdk_message(role="assistant", content=None, refusal="I can't."))

    check(message)
    assert message == {"content": None, "refusal": "I can't.", "role": "assistant"}


def test_plain_of_an_sdk_message_keeps_unknown_keys():
    """What the SDK does not know (reasoning, signatures) is kept."""
    extra = {"reasoning_content": "First …", "provider": {"signature": "Zm9v", "n": [1, None]}}

    message = plain(sdk_message(role="assistant", content="Hi", **extra))

    assert {key: message[key] for key in extra} == extra


def test_tool_calls_and_their_names():
    """Calls are found in either form, and none is the empty list."""
    custom = {"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}

    assert tool_calls({"role": "assistant", "content": "x", "tool_calls": None}) == []
    assert [call_name(each) for each in (CALL, custom, {}, {"function": None})] == ["f", "run", "", ""]


def test_text_of_joins_text_parts():
    """The text of parts is their texts; other parts say nothing."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]

    assert text_of({"role": "user", "content": parts}) == "a\nb"
    assert text_of({"role": "assistant", "content": None}) == ""


def test_text_of_a_refusal_is_what_it_says():
    """A model that refuses says so in a key or a part of its own."""
    assert text_of({"role": "assistant", "content": None, "refusal": "I can't."}) == "I can't."
    assert text_of({"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}) == "I can't."
