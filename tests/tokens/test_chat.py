"""What messages and tools cost: the frame, with texts that cost one token a character, so that sums can be read."""

import base64
import copy
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.model_catalog import facts_of
from memci.tokens import REQUEST_TOKENS, TokenCounter, counter_for, message_tokens, tools_tokens
from memci.tokens.counter import CustomCounter

CHARACTERS = counter_for(counter=len)
CALL = {"id": "call_0123456789", "type": "function", "function": {"name": "look", "arguments": '{"at":1}'}}


def _tool(**parameters: object) -> Mapping[str, object]:
    function = {"name": "look", "description": "Look around.", "parameters": parameters}
    return {"type": "function", "function": function}


@pytest.mark.parametrize("model", ["gpt-4", "gpt-4o", "gpt-oss-20b"])
@pytest.mark.parametrize("role", ["system", "user", "assistant", "developer", "tool", "function"])
def test_role_is_one_token_in_every_vocabulary(role: str, model: str) -> None:
    """The roles that are taken for one token are one token."""
    assert counter_for(model)(role) == 1


def test_request_is_primed_with_three_tokens() -> None:
    """A request costs three tokens besides its messages and tools."""
    assert REQUEST_TOKENS == 3


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": "12345"}, 3 + 1 + 5),
        ({"role": "user", "content": ""}, 3 + 1),
        ({"role": "assistant", "content": None}, 3 + 1),
        ({"role": "narrator", "content": "12345"}, 3 + 8 + 5),
        ({"role": "user", "name": "ann", "content": "12345"}, 3 + 1 + 5 + 1 + 3),
        ({"role": "tool", "tool_call_id": "call_0123456789", "content": "12345"}, 3 + 1 + 5),
        ({"role": "assistant", "content": None, "refusal": "never"}, 3 + 1 + 5),
        ({"role": "assistant", "content": "1", "refusal": None, "audio": None}, 3 + 1 + 1),
        ({"role": "assistant", "content": "1", "reasoning_content": "why"}, 3 + 1 + 1 + 3),
        ({"role": "assistant", "content": "1", "extra": {"a": [1, 2]}}, 3 + 1 + 1 + len('{"a":[1,2]}')),
        ({"role": "assistant", "content": "1", "extra": {"ä": "é"}}, 3 + 1 + 1 + len('{"ä":"é"}')),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, 3 + 1 + 3 + 4 + 8),
        ({"role": "assistant", "content": "ok", "tool_calls": [CALL, CALL]}, 3 + 1 + 2 + 2 * (3 + 4 + 8)),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}],
            },
            3 + 1 + 3 + 2 + 5,
        ),
        ({"role": "assistant", "tool_calls": [{**CALL, "extra_content": {"s": 1}}]}, 3 + 1 + 3 + 4 + 8 + 7),
        (
            {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}}}]},
            3 + 1 + 3 + 1 + 7,
        ),
        ({"role": "user", "content": [{"type": "text", "text": "123"}, {"type": "text", "text": "45"}]}, 3 + 1 + 5),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "never"}]}, 3 + 1 + 5),
        ({"role": "user", "content": [{"type": "odd", "x": 1}]}, 3 + 1 + len('{"type":"odd","x":1}')),
        ({"role": "user", "content": ["12345"]}, 3 + 1 + 5),
    ],
)
def test_message_tokens(message: Mapping[str, object], expected: int) -> None:
    """A message costs its frame and every text in it, but no ids."""
    actual = message_tokens(message, CHARACTERS)

    assert actual == expected


@given(text=st.text(), role=st.sampled_from(["system", "user", "assistant"]))
def test_message_tokens_are_the_same_on_both_paths(text: str, role: str) -> None:
    """The fast path for plain messages gives what the general one gives."""
    plain = {"role": role, "content": text}

    actual = message_tokens(plain, CHARACTERS)

    assert actual == message_tokens({**plain, "name": None}, CHARACTERS)
    assert actual == message_tokens({"role": role, "content": [{"type": "text", "text": text}]}, CHARACTERS)


def test_image_is_never_counted_as_text() -> None:
    """A part with an image costs what its formula says, however long its base64 is."""
    url = "data:image/png;base64," + "A" * 100_000
    part = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}

    actual = message_tokens({"role": "user", "content": [part]}, CHARACTERS, "gpt-4o")

    assert actual == 3 + 1 + 85


def _wave(seconds: int) -> str:
    rate = 16_000
    header = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + rate.to_bytes(4, "little") + (2 * rate).to_bytes(4, "little")
    return base64.b64encode(header.ljust(44, b"\0") + bytes(2 * rate * seconds - 44)).decode()


@pytest.mark.parametrize(
    ("data", "model", "expected"),
    [
        (_wave(6), "gpt-4o-audio-preview", 60),
        (_wave(6), "gemini-2.5-pro", 192),
        (base64.b64encode(bytes(20_000)).decode(), "gpt-4o-audio-preview", 100),
        (None, "gpt-4o-audio-preview", 3_000),
    ],
)
def test_audio_costs_by_its_seconds(data: str | None, model: str, expected: int) -> None:
    """Audio costs by seconds: those of its header, or those of a low bit rate, or a stated sum."""
    part = {"type": "input_audio", "input_audio": {"format": "wav", **({"data": data} if data else {})}}

    actual = message_tokens({"role": "user", "content": [part]}, CHARACTERS, model)

    assert actual == 4 + expected


def _file(content: bytes) -> Mapping[str, object]:
    return {"filename": "a", "file_data": "data:application/x;base64," + base64.b64encode(content).decode()}


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"type": "file", "file": _file(b"%PDF-1.4 /Type /Pages /Type /Page /Type/Page>")}, 2 * (3_000 + 765)),
        ({"type": "file", "file": _file(b"%PDF-1.7 " + bytes(79_991))}, 10_000),
        ({"type": "file", "file": _file("größe".encode())}, 5),
        ({"type": "file", "file": _file(b"\xff" * 80_000)}, 10_000),
        ({"type": "file", "file": {"file_id": "file-1"}}, 3_000),
        ({"type": "document", "source": {"type": "text", "data": "plain, not base64"}}, 17),
    ],
)
def test_file_costs_by_its_content(part: Mapping[str, object], expected: int) -> None:
    """A file costs its pages, its text or its bytes; one of which nothing is known, a stated sum."""
    actual = message_tokens({"role": "user", "content": [part]}, CHARACTERS)

    assert actual == 4 + expected


@pytest.mark.parametrize(
    ("model", "page"),
    [
        ("gpt-4o", 3_000 + 765),
        ("claude-sonnet-4-5", 3_000 + 1_600),
        ("claude-opus-4-7", 3_000 + 4_784),
        ("gemini-2.5-pro", 3_000 + 258),
        ("gemini-3-pro", 560),
    ],
)
def test_page_of_a_pdf_costs_its_text_and_its_image(model: str, page: int) -> None:
    """Each maker's own rule for an image counts for the image of a page; Gemini has numbers of its own."""
    part = {"type": "file", "file": _file(b"%PDF-1.4 /Type /Page>")}

    assert message_tokens({"role": "user", "content": [part]}, CHARACTERS, model) == 4 + page


def _film(times: bytes) -> bytes:
    return b"\0\0\0\x14ftypisom" + b"\xff" * 40_000 + b"\0\0\0\x6cmoov\0\0\0\x6cmvhd" + times + bytes(80)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (_film(bytes(12) + (600).to_bytes(4, "big") + (6_300).to_bytes(4, "big")), 3_150),
        (_film(b"\1" + bytes(19) + (600).to_bytes(4, "big") + (6_300).to_bytes(8, "big")), 3_150),
        (_film(bytes(20)), 5_016),
        (b"\0\0\0\x14ftypisom" + b"\xff" * 40_000, 5_001),
    ],
)
def test_film_costs_by_its_seconds(content: bytes, expected: int) -> None:
    """A film of 10.5 seconds costs 300 tokens for each; one that does not say how long it is, its bytes."""
    part = {"type": "file", "file": _file(content)}

    assert message_tokens({"role": "user", "content": [part]}, CHARACTERS, "gemini-3-pro") in (
        4 + expected,
        5 + expected,
    )


def test_message_has_a_bound_whatever_its_media_claim() -> None:
    """Films that claim to last for thousands of years cost a billion tokens together: stored numbers have bounds."""
    film = _film(b"\1" + bytes(19) + (1).to_bytes(4, "big") + b"\x7f" + bytes(7))
    url = f"data:video/mp4;base64,{base64.b64encode(film).decode()}"
    parts = [{"type": "video_url", "video_url": {"url": url}}] * 3

    assert message_tokens({"role": "user", "content": parts}, len) == 10**9


def test_tools_are_free_when_there_are_none() -> None:
    """No tools cost nothing."""
    assert tools_tokens([], CHARACTERS) == 0


LINE = len("look:Look around")
PLACE = {"type": "string", "description": "The town."}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"type": "object", "properties": {}}, 0),
        ({"type": "object", "properties": {"at": PLACE}, "required": ["at"]}, 3 + 3 + len("at:string:The town")),
        ({"properties": {"at": PLACE, "to": PLACE}}, 3 + 2 * (3 + len("at:string:The town"))),
        (
            {"properties": {"unit": {"type": "string", "description": "Unit", "enum": ["kg", "lb"]}}},
            3 + 3 + len("unit:string:Unit") - 3 + 2 * (3 + 2),
        ),
        ({"properties": {"at": {"type": "integer", "minimum": 7}}}, 3 + 3 + len("at:integer:") + 3 + len("minimum:7")),
        (
            {"properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}},
            3 + (3 + len("at:object:")) + 3 + (3 + len("x:number:")) + 3 + len('required:["x"]'),
        ),
        (
            {"properties": {"at": {"type": "array", "items": {"type": "string"}}}},
            3 + (3 + len("at:array:")) + (3 + len("items:string:")),
        ),
        (
            {"properties": {"at": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            3 + (3 + len("at::")) + (3 + len("anyOf:string:")) + (3 + len("anyOf:null:")),
        ),
        ({"$defs": {"P": {"type": "string"}}}, 3 + 3 + len("P:string:")),
        ({"additionalProperties": {"type": "string"}}, 3 + len("additionalProperties:string:")),
    ],
)
def test_tools_tokens(parameters: Mapping[str, object], expected: int) -> None:
    """A function costs its line, its properties and all that is below them."""
    actual = tools_tokens([_tool(**parameters)], CHARACTERS, "gpt-4o")

    assert actual == 12 + 7 + LINE + expected


def test_tools_cost_more_per_function_in_earlier_models() -> None:
    """A function costs three more in the models of cl100k_base; the end is paid once."""
    tools = [_tool(), _tool()]

    actual = [tools_tokens(tools, CHARACTERS, model) for model in ("gpt-4o", "gpt-4", None)]

    assert actual == [12 + 2 * (7 + LINE), 12 + 2 * (10 + LINE), 12 + 2 * (7 + LINE)]


def test_tools_of_unknown_shape_cost_their_json() -> None:
    """A tool that is not a function is counted as the JSON that is sent."""
    actual = tools_tokens([{"type": "web_search"}], CHARACTERS)

    assert actual == 12 + 7 + len('{"type":"web_search"}')


def test_tools_of_other_makers_cost_their_json() -> None:
    """Models that are not OpenAI's are given JSON, and some a prompt about tools."""
    tools = [{"type": "web_search"}]

    actual = [tools_tokens(tools, CHARACTERS, model) for model in ("qwen3-max", "claude-sonnet-4-5", "gemini-3")]

    assert actual == [130 + 3 + 21, 589 + 3 + 21, 3 + 21]


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("claude-opus-4-8", 410),
        ("claude-opus-4-7", 804),
        ("anthropic.claude-opus-4-6-v1", 589),
        ("openrouter/anthropic/claude-sonnet-4.5", 589),
        ("claude-haiku-4-5-20251001", 589),
        ("claude-sonnet-5", 474),
        ("claude-opus-4-1-20250805", 346),
        ("claude-sonnet-4-20250514", 346),
        ("claude-sonnet-4", 346),
        ("claude-3-7-sonnet-latest", 346),
        ("claude-3-opus-20240229", 530),
        ("claude-3-haiku-20240307", 346),
        ("claude-opus-9", 804),
        ("gpt-5", 0),
    ],
)
def test_prompt_that_tools_add_is_the_published_one(model: str, tokens: int) -> None:
    """Anthropic's table has a prompt for each model; the larger of its two numbers counts."""
    assert facts_of(model).tools_prompt == tokens


_SCALARS = st.none() | st.booleans() | st.integers() | st.text("abc", max_size=3)
_SCHEMAS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "description", "enum", "items", "anyOf", "properties", "$defs", "default", "const"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def _marked(schema: object) -> tuple[object, int]:
    """Return *schema* with each text in it replaced by a mark, and the number of marks."""
    if isinstance(schema, str):
        return "§", 1
    if isinstance(schema, list):
        items = [_marked(each) for each in schema]
        return [each for each, _ in items], sum(marks for _, marks in items)
    if isinstance(schema, dict):
        members = {key: _marked(value) for key, value in schema.items()}
        return {key: each for key, (each, _) in members.items()}, sum(marks for _, marks in members.values())
    return schema, 0


@given(schema=_SCHEMAS)
def test_no_part_of_a_schema_goes_uncounted(schema: object) -> None:
    """Every text in the schema of a property is counted, wherever it stands and whatever its shape."""
    marked, marks = _marked(schema)
    counter: TokenCounter = counter_for(counter=lambda text: 1_000_000 * text.count("§"))

    actual = tools_tokens([_tool(properties={"at": marked})], counter)

    assert actual // 1_000_000 == marks


@pytest.mark.parametrize("model", [None, "qwen3-max"])
def test_a_tool_that_changed_is_counted_again(model):
    """What a list of tools costs is remembered for the same list only, whoever changes it in place."""
    count = counter_for(model)
    tools = [_tool(properties={"at": {"type": "string"}})]
    before = tools_tokens(tools, count, model)
    tools[0]["function"]["description"] += " It knows all towns."

    after = tools_tokens(tools, count, model)

    assert after > before
    assert after == tools_tokens(copy.deepcopy(tools), CustomCounter(count), model)
    assert tools_tokens(tools, CustomCounter(lambda _: 0), model) < before
