"""Clipping: within its limit, still a message, and the way back is named."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.messages import check
from memci.segments.clipping import SMALLEST, clip_message
from memci.tokens import counter_for, message_tokens

CALL = "recall_page(index=12, entry=7)"
BASE64 = "iVBORw0KGgoAAAANSUhEUg" * 400
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + BASE64, "detail": "low"}}


def quarters(text: str) -> int:
    """A counter whose sums nearly add up: four characters are a token."""
    return -(-len(text) // 4)


COUNT = counter_for(None, quarters)


def weigh(message: dict) -> int:
    return message_tokens(message, COUNT)


def clip(message: dict, limit: int) -> dict:
    return clip_message(message, limit, page=12, ordinal=7, count=COUNT, weigh=weigh)


def calling(*arguments: str, **more: object) -> dict:
    calls = [
        {"id": f"c{number}", "type": "function", "function": {"name": "write", "arguments": each}}
        for number, each in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


sizes = st.sampled_from([0, 3, 100, 1_000, 5_000, 60_000])
texts = st.builds(
    lambda word, size: (word * size)[:size], st.sampled_from(["ab c ", "机票", "x", " ", "\n", "🙂\ud83d"]), sizes
)
values = st.recursive(
    texts | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "text", "n"]), inner, max_size=3)
    ),
    max_leaves=4,
)
arguments = values.map(json.dumps) | values.map(lambda value: json.dumps(value, ensure_ascii=False)) | texts
parts = st.one_of(texts.map(lambda text: {"type": "text", "text": text}), st.just(IMAGE))
messages = st.one_of(
    texts.map(lambda text: {"role": "user", "content": text}),
    texts.map(lambda text: {"role": "tool", "tool_call_id": "c1", "content": text}),
    st.lists(parts, min_size=1, max_size=3).map(lambda each: {"role": "user", "content": each}),
    st.lists(arguments, min_size=1, max_size=2).map(lambda each: calling(*each)),
    st.builds(lambda each, text: calling(each, content=text), arguments, texts),
    st.builds(lambda text, extra: {"role": "assistant", "content": text, "reasoning": extra}, texts, values),
)


@given(messages, st.integers(3 * SMALLEST, 3_000))
def test_clipped_costs_at_most_its_limit(message, limit):
    """A view of a message of a few pieces never costs more than the limit, and the message stays what it was."""
    before = copy.deepcopy(message)

    view = clip(message, limit)

    assert weigh(view) <= limit
    assert message == before
    check(view)


@given(messages, st.integers(SMALLEST, 3_000))
def test_clipped_is_deterministic(message, limit):
    """The same message and the same limit give the same bytes, each time."""
    assert json.dumps(clip(message, limit)) == json.dumps(clip(copy.deepcopy(message), limit))


@given(messages, st.integers(SMALLEST, 3_000))
def test_clipped_keeps_roles_ids_and_names(message, limit):
    """What pairs a message with others is never touched, and no key comes in."""
    view = clip(message, limit)

    assert view.get("role") == message["role"]
    assert view.get("tool_call_id") == message.get("tool_call_id")
    names = [(call["id"], call["function"]["name"]) for call in message.get("tool_calls", [])]
    assert [(call["id"], call["function"]["name"]) for call in view.get("tool_calls", [])] == names
    assert [key for key in message if key in view] == list(view)


@given(arguments, st.integers(SMALLEST, 1_000))
def test_clipped_arguments_are_valid_json(text, limit):
    """Arguments that were JSON are JSON afterwards, whatever was long in them; text that was none becomes JSON."""
    view = clip(calling(text), limit)

    shown = view["tool_calls"][0]["function"]["arguments"]
    if shown != text:
        shown.encode()
        assert CALL in shown or json.loads(shown) == json.loads(text)


def test_clipped_arguments_elide_long_values_only():
    """Short values and the structure stay; a long one becomes a marker that tells tokens and call."""
    text = json.dumps({"path": "a.py", "n": 3, "text": "word " * 4_000, "list": [{"deep": "word " * 4_000}]})

    view = clip(calling(text), 300)

    shown = json.loads(view["tool_calls"][0]["function"]["arguments"])
    assert (shown["path"], shown["n"]) == ("a.py", 3)
    assert shown["text"] == f"[elided 5,000 tokens, {CALL}]"
    assert shown["list"] == [{"deep": f"[elided 5,000 tokens, {CALL}]"}]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 60_000, "9" * 5_000, '{"text": "cut of' + "x" * 9_000])
def test_clipped_arguments_that_can_not_be_read_become_a_marker(text):
    """Arguments that no parser takes (nested without end, cut off) are clipped like any other."""
    view = clip(calling(text), 300)

    assert weigh(view) <= 300
    assert CALL in str(json.loads(view["tool_calls"][0]["function"]["arguments"]))


def test_clipped_text_keeps_head_and_tail():
    """The beginning and the end stay, in about equal parts, and the marker between them tells how much is gone."""
    text = "".join(f"line {number}\n" for number in range(5_000))

    view = clip({"role": "tool", "tool_call_id": "c1", "content": text}, 400)

    head, marker, tail = view["content"].partition("\n[… ")[0], view["content"], view["content"].rpartition("…]\n")[2]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) > 400
    assert len(tail) > 400
    elided = int(marker.split("[… ")[1].split(" tokens")[0].replace(",", ""))
    assert quarters(text) - quarters(head) - quarters(tail) == pytest.approx(elided, abs=4)
    assert marker.count(f"tokens elided: {CALL} …]") == 1


def test_clipped_text_tells_what_is_gone_though_its_ends_are_dense_otherwise():
    """The head and the tail may have fewer tokens than characters suggest; what is between them is counted."""
    text = f"{'a' * 2_000}\n{'b c d ' * 1_000}\n{'e' * 2_000}"

    def words(some: str) -> int:
        return len(some.split())

    view = clip_message(
        {"role": "user", "content": text},
        400,
        page=12,
        ordinal=7,
        count=words,
        weigh=lambda message: words(message["content"]),
    )["content"]

    head, tail = view.partition("\n[… ")[0], view.rpartition("…]\n")[2]
    assert int(view.split("[… ")[1].split(" tokens")[0].replace(",", "")) == 3_002 - words(head) - words(tail)


def test_clipped_message_that_fits_is_the_message():
    """Nothing is changed in a message that costs no more than the limit."""
    message = calling(json.dumps({"path": "a.py"}), content="short", reasoning_content="why")

    assert clip(message, 500) == message


def test_clipped_opaque_blocks_are_whole_or_gone():
    """A key that no rule knows is kept byte for byte, or left out: never edited."""
    signature = {"data": "Q0xJUFBFRA==" * 60, "n": [1, None]}
    message = {"role": "assistant", "content": "word " * 9_000, "signature": signature}

    seen = {repr(clip(message, limit).get("signature")) for limit in range(SMALLEST, 2_000, 40)}

    assert seen == {repr(signature), "None"}


@pytest.mark.parametrize("limit", [SMALLEST, 400, 1_500, 3_000])
def test_clipped_images_are_whole_or_named_never_text(limit):
    """An image is the part that it was, or a text that names its type: its bytes never become text."""
    message = {"role": "user", "content": [{"type": "text", "text": "word " * 9_000}, IMAGE]}

    view = clip(message, limit)

    assert view["content"][1] in (IMAGE, {"type": "text", "text": f"[image_url elided: {CALL}]"})
    assert BASE64[:40] not in view["content"][0]["text"]


def test_clipped_parts_of_unknown_kinds_are_whole_or_named():
    """A part that no rule knows is never edited."""
    part = {"type": "thinking", "signature": "Zm9v" * 2_000}

    view = clip({"role": "assistant", "content": [part, {"type": "text", "text": "ok"}]}, 300)

    assert view["content"] == [{"type": "text", "text": f"[thinking elided: {CALL}]"}, {"type": "text", "text": "ok"}]


def test_clipped_message_of_many_small_parts_fits_too():
    """Many parts, each of them small, are clipped like one that is large."""
    message = {
        "role": "user",
        "content": [{"type": "text", "text": f"a small part, {number:,}"} for number in range(2_000)],
    }

    view = clip(message, 500)

    assert weigh(view) <= 500
    assert CALL in json.dumps(view)


def test_clipped_custom_calls_keep_head_and_tail_of_their_input():
    """The input of a custom tool is text, and is clipped like text."""
    script = "".join(f"echo {number}\n" for number in range(5_000))
    call = {"id": "c", "type": "custom", "custom": {"name": "run", "input": script}}

    view = clip({"role": "assistant", "content": None, "tool_calls": [call]}, 300)

    shown = view["tool_calls"][0]["custom"]["input"]
    assert shown.startswith("echo 0\necho 1\n")
    assert shown.endswith("echo 4999\n")
    assert CALL in shown
    assert weigh(view) <= 300


def test_clipped_by_a_real_vocabulary_fits():
    """With the counter of a model the limit holds as well, for text that counts unlike characters."""
    count = counter_for("gpt-4o")
    for text in ("机票和行李 " * 4_000, "0123456789abcdef" * 2_000, "\n" * 50_000, "Zürich – 👩‍👩‍👧‍👦 " * 1_500):
        message = {"role": "tool", "tool_call_id": "c1", "content": text}

        view = clip_message(
            message, 300, page=1, ordinal=1, count=count, weigh=lambda each: message_tokens(each, count)
        )

        assert message_tokens(view, count) <= 300
        assert text.isspace() or len(view["content"]) > 100


@pytest.mark.parametrize(
    ("sizes", "limit"),
    [([600] * 8, 500), ([6] * 90 + [6_000], 1_400)],
    ids=["each part is far too long", "one long part of many"],
)
def test_parts_are_shortened_before_any_is_left_out(sizes, limit):
    """Whatever is too long, all parts stay if their shortened texts fit."""
    message = {"role": "user", "content": [{"type": "text", "text": "word " * size} for size in sizes]}

    view = clip(message, limit)

    assert len(view["content"]) == len(sizes)
    assert weigh(view) <= limit
