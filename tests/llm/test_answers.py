"""memci.llm.ask: an answer of a type, or none; whatever a model writes."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from memci.errors import AnswerRejected, CeilingReached, InvalidSetting, ModelRefused, ModelUnavailable
from memci.llm import Reply, ask
from memci.llm.structured import json_object
from memci.testing.llm import ScriptedChat
from tests.hostile_answers import TITLES

HI = [{"role": "user", "content": "Name this."}]


class Title(BaseModel):
    model_config = ConfigDict(extra="forbid")
    title: str = Field(min_length=1, max_length=100)


class Kind(BaseModel):
    kind: Literal["work", "home"]
    weight: float = 0.0


@pytest.mark.parametrize(
    "text",
    [
        '{"title": "Violins"}',
        ' \n{"title": "Violins"}\n',
        '```json\n{"title": "Violins"}\n```',
        'Sure! Here it is:\n```\n{"title": "Violins"}\n```\nAnything else?',
        'In {braces}: {"title": "Violins"} (that is all)',
        '<think>Maybe {"title": "Pianos"}? No.</think>{"title": "Violins"}',
        '{"title":\n  "Violins"\n}',
        '{"\\u0074itle": "Violins"}',
    ],
)
def test_object_is_found_whatever_stands_around_it(text):
    """Code fences, prose and thoughts around the one object are looked through."""
    chat = ScriptedChat([text])

    assert ask(chat, HI, Title, step="title") == Title(title="Violins")
    assert len(chat.calls) == 1
    assert (chat.calls[0].step, chat.calls[0].answer, chat.calls[0].attempt) == ("title", Title, 0)
    assert list(chat.calls[0].messages) == HI


@pytest.mark.parametrize("text", TITLES, ids=range(len(TITLES)))
def test_answer_that_is_none_is_rejected(text):
    """Whatever else comes is rejected, three times at most, and counted each time."""
    chat = ScriptedChat(lambda _: text)
    told = []

    with pytest.raises(AnswerRejected) as raised:
        ask(chat, HI, Title, step="title", on_rejected=lambda *each: told.append(each))

    assert [call.attempt for call in chat.calls] == [0, 1, 2]
    assert len(told) == chat.ledger.steps["title"].rejected == 3
    assert raised.value.step == told[0][0] == "title"
    assert raised.value.retryable
    assert all("\n" not in reason and 0 < len(reason) <= 200 for _, reason in told)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_number_that_is_none_is_rejected(number):
    """What is no finite number is none, also where a field would take it."""
    with pytest.raises(AnswerRejected):
        ask(ScriptedChat([f'{{"kind": "work", "weight": {number}}}'] * 3), HI, Kind, step="kind")


def test_second_answer_is_taken():
    """After an answer that is none the model is asked again, with a note of what was wrong, and not with its words."""
    chat = ScriptedChat(["EVIL " * 1000, {"title": ""}, {"title": "Violins"}])

    assert ask(chat, HI, Title, step="title").title == "Violins"

    assert [len(call.messages) for call in chat.calls] == [1, 1, 1]
    assert chat.calls[1].text.startswith("Name this.\n\nYour last answer was not accepted: it has no JSON object.")
    assert "title: String should have at least 1 character" in chat.calls[2].text
    assert "EVIL" not in chat.calls[1].text + chat.calls[2].text
    assert HI == [{"role": "user", "content": "Name this."}]


@pytest.mark.parametrize("last", [[], [{"role": "assistant", "content": "Well,"}], [{"role": "user", "content": []}]])
def test_note_is_a_message_of_its_own_where_it_must(last):
    """Where the last message is not the user's text, the note stands behind it."""
    chat = ScriptedChat(["no", {"title": "Violins"}])

    ask(chat, last, Title, step="title")

    assert list(chat.calls[1].messages[:-1]) == last
    assert chat.calls[1].messages[-1]["role"] == "user"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_cut_or_filtered_answer_is_rejected(finish):
    """An answer that was cut off or filtered is none, even if an object stands in it."""
    message = {"role": "assistant", "content": '{"title": "Violins"}'}

    with pytest.raises(AnswerRejected):
        ask(ScriptedChat([Reply(message, finish=finish)] * 3), HI, Title, step="title")


def test_refusal_is_rejected():
    """A model that says it refuses has given no answer."""
    message = {"role": "assistant", "content": '{"title": "Violins"}', "refusal": "I'd rather not."}

    with pytest.raises(AnswerRejected, match="refused"):
        ask(ScriptedChat([message] * 3), HI, Title, step="title")


def test_check_may_reject_and_change():
    """What *check* returns is the answer; what it says when it raises is told to the model, in one line."""

    def check(value: Title) -> Title:
        if value.title == "bad":
            raise ValueError("the title is\nbad " + "x" * 1000)
        return Title(title=value.title.upper())

    chat = ScriptedChat([{"title": "bad"}, {"title": "good"}])

    assert ask(chat, HI, Title, step="title", check=check) == Title(title="GOOD")
    note = chat.calls[1].text.partition("accepted: ")[2]
    assert note.startswith("the title is bad xxx")
    assert len(note) < 250


def test_bug_in_a_check_is_no_rejection():
    """What is no ValueError goes through: a mistake of ours is not the model's."""

    def check(value: Title) -> Title:
        raise KeyError(value.title)

    with pytest.raises(KeyError):
        ask(ScriptedChat([{"title": "x"}]), HI, Title, step="title", check=check)


@pytest.mark.parametrize("error", [ModelUnavailable("x", "y"), ModelRefused("x", "y"), CeilingReached("x", "y")])
def test_error_of_the_model_goes_through(error):
    """A model that does not answer is not asked again here: the policy did that."""
    chat = ScriptedChat([error, {"title": "x"}])

    with pytest.raises(type(error)):
        ask(chat, HI, Title, step="title")

    assert len(chat.calls) == 1


def test_fewer_tries_may_be_asked_for():
    """Who wants one answer only gets one; more than three are never asked for."""
    with pytest.raises(AnswerRejected):
        ask(chat := ScriptedChat(["no"] * 3), HI, Title, step="title", tries=1)
    assert len(chat.calls) == 1
    for tries in (0, 4, True):
        with pytest.raises(InvalidSetting):
            ask(chat, HI, Title, step="title", tries=tries)


def test_names_that_the_model_made_up_are_not_repeated():
    """The reason of a rejection names our fields, never those of the model."""
    told = []

    with pytest.raises(AnswerRejected):
        answer = {"title": "x", "SECRET": 1}
        ask(ScriptedChat([answer] * 3), HI, Title, step="title", on_rejected=lambda *each: told.append(each))

    assert "SECRET" not in repr(told)
    assert "Extra inputs" in repr(told)


def test_function_of_ones_own_is_a_model():
    """Any callable of the right form is asked; it needs no ledger."""

    def model(messages, /, *, step="chat", tools=(), answer=None, attempt=0):
        return Reply({"role": "assistant", "content": '{"kind": "work", "weight": 2}'})

    assert ask(model, HI, Kind, step="kind") == Kind(kind="work", weight=2.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PROSE = st.text(st.characters(exclude_characters="{}"), max_size=40)


@given(st.dictionaries(st.text(), JSON, max_size=4), PROSE, PROSE)
def test_any_object_is_found_in_any_prose(value, before, after):
    """One object in prose without braces is found, exactly."""
    text = f"{before}{json.dumps(value, ensure_ascii=False)}{after}"

    assert json_object(text.replace("</think>", "")) == value or "</think>" in text


@given(st.text('{}[]":,0aé\\\n \ud800NnI-.', max_size=60))
def test_any_text_is_an_object_or_a_reason(text):
    """Whatever text comes, it is one object or a reason in one line."""
    reason = ""
    try:
        value = json_object(text)
    except ValueError as error:
        value, reason = None, str(error)

    assert isinstance(value, dict) != bool(reason)
