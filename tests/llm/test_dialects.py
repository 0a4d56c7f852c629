"""What a server does not know is said in other words, once."""

from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from memci.errors import ModelRefused, ModelUnavailable
from memci.llm.requests import response_format
from memci.testing.llm import Status

HI = [{"role": "user", "content": "Hi"}]


class Title(BaseModel):
    title: str = Field("", min_length=1, max_length=100, description="in a few words")


def formats(server) -> list[str]:
    return [(request.body.get("response_format") or {}).get("type", "") for request in server.requests]


def test_schema_is_asked_for_first(server, chat):
    """An answer of a type is asked for by its schema, and the messages stay as they are."""
    server.answers([{"title": "x"}])

    chat(HI, answer=Title)

    assert server.requests[0].messages == HI
    assert server.requests[0].answer == "Title"
    assert server.requests[0].body["response_format"]["json_schema"] == {
        "name": "Title",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"title": {"type": "string", "description": "in a few words"}},
            "required": ["title"],
            "additionalProperties": False,
        },
    }


def test_json_object_is_the_second_choice(server, chat):
    """Where schemas are refused, an object is asked for and the schema told; it is remembered."""
    server.refuses("json_schema")
    server.answers([{"title": "x"}, {"title": "y"}])

    assert chat(HI, answer=Title).text == '{"title": "x"}'
    assert chat(HI, answer=Title).text == '{"title": "y"}'
    assert formats(server) == ["json_schema", "json_object", "json_object"]
    assert "JSON" in server.requests[1].messages[0]["content"]
    assert server.requests[1].messages[1:] == HI
    assert chat.ledger.total.calls == 2
    assert chat.ledger.total.failed == 0


def test_words_alone_are_the_last_choice(server, chat):
    """Where no response_format is known, the schema is told in words, in the system's message if there is one."""
    server.refuses("response_format")
    server.answers(["{}", "{}"])
    messages = [{"role": "system", "content": "Be kind."}, *HI]

    chat(messages, answer=Title)
    chat(HI)

    assert formats(server) == ["json_schema", "json_object", "", ""]
    assert server.requests[2].messages[0]["content"].startswith("Be kind.\n\nAnswer with one JSON object")
    assert len(server.requests[2].messages) == 2
    assert server.requests[3].messages == HI


@pytest.mark.parametrize(
    "status",
    [
        Status(400, error="context_length_exceeded"),
        Status(400, message="This model's maximum context length is 8192 tokens"),
        Status(400, parameter="messages"),
        Status(401),
        Status(404, message="response_format? no such model"),
    ],
)
def test_refusal_of_something_else_is_no_matter_of_words(server, chat, status):
    """A request that is refused for another reason is refused at once, and the server is asked as before."""
    server.fails(status)
    server.answers([{"title": "x"}])

    with pytest.raises(ModelRefused):
        chat(HI, answer=Title)
    chat(HI, answer=Title)

    assert formats(server) == ["json_schema", "json_schema"]


def test_words_that_do_not_help_are_not_remembered(server, chat):
    """If a request is refused in all words, the next one is said in the first again."""
    server.fails(*[Status(400, message="no")] * 3)
    server.answers([{"title": "x"}])

    with pytest.raises(ModelRefused):
        chat(HI, answer=Title)
    chat(HI, answer=Title)

    assert formats(server) == ["json_schema", "json_object", "", "json_schema"]


def test_newer_name_of_the_limit_is_used_where_the_old_one_is_refused(server, chat_over):
    """`max_tokens` is known nearly everywhere; models that refuse it are asked by its newer name from then on."""
    server.refuses("max_tokens")
    server.answers(["one", "two"])
    chat = chat_over(server, max_tokens=7)

    chat(HI)
    chat(HI)

    limits = [{key: request.body[key] for key in request.body if "max" in key} for request in server.requests]
    assert limits == [{"max_tokens": 7}, {"max_completion_tokens": 7}, {"max_completion_tokens": 7}]


def test_several_words_may_be_unknown(server, chat_over):
    """A server that knows neither schemas nor the limit's old name is asked without both."""
    server.refuses("max_tokens", "json_schema")
    server.answers([{"title": "x"}])

    assert chat_over(server, max_tokens=7, tries=1)(HI, answer=Title).text == '{"title": "x"}'
    assert {"max_completion_tokens", "response_format"} <= server.requests[-1].body.keys()


def test_other_words_are_no_try(server, chat_over):
    """A request that is sent in other words has all its tries left."""
    server.fails(Status(400, message="response_format"), Status(503))
    server.answers([{"title": "x"}])

    assert chat_over(server, tries=2)(HI, answer=Title).text == '{"title": "x"}'
    assert len(server.requests) == 3


LLAMA_CPP = {
    "schema": "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': "
    "\"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}",
    "null": "1 validation error:\n  {'type': 'string_type', 'loc': ('body', 'messages', 1, 'typed-dict', 'content'), "
    "'msg': 'Input should be a valid string', 'input': None}",
}
"""what `llama_cpp.server` writes with status 500"""

CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLED = [
    *HI,
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "12 °C"},
]


def llama_cpp(request):
    """Answer as `llama_cpp.server` does: what its types do not allow is an internal error."""
    if (request.body.get("response_format") or {}).get("type") == "json_schema":
        return Status(500, message=LLAMA_CPP["schema"])
    if any(each.get("content", "") is None for each in request.messages):
        return Status(500, message=LLAMA_CPP["null"])
    return {"title": "x"}


def test_parameter_that_an_internal_error_names_is_said_in_other_words(server, chat):
    """A server that answers an unknown format with status 500 is asked for any object, and from then on at once."""
    server.answers(llama_cpp)

    assert chat(HI, answer=Title).text == '{"title": "x"}'
    asked = len(server.requests)
    assert chat(HI, answer=Title).text == '{"title": "x"}'

    assert [*dict.fromkeys(formats(server))] == ["json_schema", "json_object"]
    assert len(server.requests) == asked + 1
    assert (chat.ledger.total.failed, chat.paused) == (0, 0.0)


def test_null_beside_tool_calls_is_sent_as_an_empty_text_where_it_is_refused(server, chat):
    """A server that can't read `content: null` beside tool calls gets "" from then on; the caller's messages stay."""
    server.answers(llama_cpp)

    assert chat(CALLED, answer=Title).text == '{"title": "x"}'
    asked = len(server.requests)
    chat(CALLED)

    assert server.requests[0].messages == CALLED
    assert server.requests[-1].messages == [HI[0], {**CALLED[1], "content": ""}, CALLED[2]]
    assert len(server.requests) == asked + 1
    assert CALLED[1]["content"] is None


def test_internal_error_that_names_nothing_is_no_matter_of_words(server, chat):
    """A server that fails for a while is asked in the same words again."""
    server.fails(*[Status(500, message="out of memory")] * 3)
    server.answers([{"title": "x"}])

    with pytest.raises(ModelUnavailable):
        chat(CALLED, answer=Title)
    chat(CALLED, answer=Title)

    assert [*dict.fromkeys(formats(server))] == ["json_schema"]
    assert server.requests[-1].messages == CALLED


# -- schemas ------------------------------------------------------------------------------------------------------


class Topic(BaseModel):
    kind: Literal["work", "home"] = "home"
    weight: float | None = None
    title: Title
    ids: list[int] = Field(max_length=3)


class Topics(BaseModel):
    model_config = ConfigDict(extra="forbid")
    topics: list[Topic] = []


class Counts(BaseModel):
    counts: dict[str, int]


class Loose(BaseModel):
    anything: Any = None


class Pair(BaseModel):
    pair: tuple[int, str]


class Tree(BaseModel):
    children: list["Tree"] = []


def objects(schema: Any) -> list[dict]:
    if isinstance(schema, list):
        return [each for value in schema for each in objects(value)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [each for value in schema.values() for each in objects(value)]


@pytest.mark.parametrize("answer", [Title, Topic, Topics])
def test_schema_is_strict_where_it_can_be(answer):
    """Strict mode wants each object closed and each of its fields required, and no word that it does not know."""
    form = response_format(answer)["json_schema"]

    assert form["strict"] is True
    assert objects(form["schema"])
    for each in objects(form["schema"]):
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
    text = str(form["schema"])
    assert not any(f"'{word}':" in text for word in ("default", "maxLength", "minLength"))


@pytest.mark.parametrize("answer", [Counts, Loose, Pair, Tree])
def test_schema_that_strict_mode_can_not_say_is_sent_as_it_is(answer):
    """What strict mode has no words for is asked for by the plain schema: the answer is validated here anyway."""
    form = response_format(answer)["json_schema"]

    assert "strict" not in form
    assert form["schema"] == answer.model_json_schema()
