"""What a model or a server of one says in no form at all: answered, or refused with an error that says what it is."""

import json

import pytest
from pydantic import BaseModel

from memci.companion.turn import tidy
from memci.errors import AnswerRejected, InvalidMessage, InvalidSetting
from memci.llm import Ledger, ask
from memci.llm.model import Reply
from memci.llm.replies import reply_of
from memci.tools import attp

HUGE = 10**400


class Title(BaseModel):
    """What is asked for."""

    title: str


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c1", "function": "str"},
        {"id": ["x"], "function": {"name": "recall_page", "arguments": 7}},
        {"id": "c1", "function": {"name": HUGE, "arguments": "{}"}},
        {"custom": 5},
        {},
    ],
    ids=["text", "list as id", "number as name", "custom", "nothing"],
)
def test_call_of_any_form_is_answered_with_a_result_that_can_be_appended(context, call):
    """A call that is none gets a tool message with a text and an id, and is nobody's tool unless it says so."""
    answer = context.answer(call)

    assert context.handles(call) is (call.get("id") == ["x"])
    assert answer["role"] == "tool"
    assert type(answer["content"]) is type(answer["tool_call_id"]) is str


@pytest.mark.parametrize("calls", [5, "c1", {"id": "c1"}, [7], [None]])
def test_reply_whose_calls_are_none_is_refused_with_its_path(refused, context, calls):
    """What stands where calls should is named."""
    error = refused(lambda: context.answers({"role": "assistant", "tool_calls": calls}), InvalidMessage)

    assert error.path.startswith("reply.tool_calls")


def test_wrong_arguments_of_a_context_are_refused(refused, context):
    """Each says which argument it was."""
    for name, act in {
        "text": lambda: context.count(5),
        "last": lambda: context.turns("2"),
        "tools": lambda: context.render(tools=7),
        "usage": lambda: context.append_turn("x", usage={"prompt_tokens": HUGE}),
        "id": lambda: type(context).view(context._storage, {}, at=0),
        "lines": lambda: type(context).import_(context._storage, 7),
        "wait": lambda: type(context).open(context._storage, "x", wait=HUGE),
        "period_seconds": lambda: Ledger(period_seconds="x"),
    }.items():
        error = refused(act, InvalidSetting)
        assert error.name == name


def test_schemas_of_tools_that_are_no_json_are_refused(refused, context):
    """They are named as such, whatever Python makes of them."""
    loop = {}
    loop["x"] = loop
    for schema in ({("a",): 1}, loop, {"x": 10**5_000}, {"x": "half \ud83d"}):
        refused(lambda schema=schema: context.render(tools=[schema]), InvalidMessage)


def test_usage_that_is_no_number_counts_as_none():
    """A server may report any number: only one that can be true is taken."""
    for tokens in (HUGE, -1, 1e300, "8", None, [8], True):
        message = {"role": "assistant", "content": "Hi"}
        body = {"choices": [{"message": message}], "usage": {"prompt_tokens": tokens, "completion_tokens": 3}}
        usage = reply_of(json.dumps(body).encode()).usage
        assert (usage.prompt, usage.completion) == (0, 0)


@pytest.mark.parametrize(
    "value", [None, "Hi", {"content": "Hi"}, Reply(None), Reply({"content": [5]}), Reply({}, usage=7)]
)
def test_model_of_your_own_that_returns_no_reply_is_an_answer_rejected(value):
    """What a function returns in place of a reply is named by its type; the reply's words are not repeated."""
    with pytest.raises(AnswerRejected):
        ask(lambda *_, **__: value, [{"role": "user", "content": "x"}], Title, step="title", tries=1)


@pytest.mark.parametrize(
    "message",
    [
        {"content": 5},
        {"content": None, "tool_calls": 5},
        {"content": None, "tool_calls": [{"function": "str"}]},
        {"content": "Hi", "x": float("nan")},
    ],
)
def test_message_of_a_model_that_no_context_accepts_is_an_answer_rejected(message):
    """A companion's model is refused before one of its calls is made."""
    with pytest.raises(AnswerRejected):
        tidy(message)


@pytest.mark.parametrize("text", [None, 5, b"x", ["x"], {"thought": "x"}])
def test_reply_in_the_text_protocol_that_is_no_text_is_refused(text):
    """`parse` and `run` take texts."""
    for act in (attp.parse, lambda text: attp.run(text, {})):
        with pytest.raises(InvalidMessage, match="a str"):
            act(text)


@pytest.mark.parametrize("tools", [None, [len], {"f": 5}, {7: len}])
def test_tools_of_the_text_protocol_that_are_no_functions_are_refused(tools):
    """`describe` and `run` take functions by their names."""
    for act in (attp.describe, lambda tools: attp.run("x", tools)):
        with pytest.raises(InvalidSetting, match="tools"):
            act(tools)
