"""A message is encoded exactly, or refused by the name of its place."""

import math
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, StrEnum

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memci.errors import InvalidMessage, LimitExceeded, SchemaTooNew
from memci.storage.codec import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, ORJSON, STDLIB, decode, digest, encode

texts = st.text() | st.text(st.characters(codec="utf-8", categories=["Cc", "L"]), max_size=4)
numbers = st.integers() | st.integers(-(2**80), 2**80) | st.floats()
scalars = st.none() | st.booleans() | numbers | texts
exact = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=12)
inexact = (
    st.tuples(scalars)
    | st.binary()
    | st.dates()
    | st.decimals()
    | st.sets(st.integers())
    | st.uuids()
    | st.dictionaries(st.integers() | st.none() | st.booleans(), scalars, min_size=1)
)
halves = st.text(st.characters(codec=None, categories=["Cs"]), min_size=1, max_size=2)
anything = st.recursive(
    scalars | inexact | halves, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=8
)


def same(a: object, b: object) -> bool:
    """Tell whether *a* and *b* are one JSON value: types, signs of zero and key order included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))  # type: ignore[arg-type]


def is_json(value: object) -> bool:
    """Tell whether *value* is of JSON's own types alone."""
    if isinstance(value, dict):
        return type(value) is dict and all(type(key) is str and is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(is_json, value))
    if type(value) is str:
        return not any("\ud800" <= char <= "\udfff" for char in value)
    return value is None or type(value) in (bool, int) or (type(value) is float and math.isfinite(value))


@given(st.dictionaries(texts, exact, max_size=4))
@example({"a": [1, 1.0, True, 0, -0.0, False, 1e22, 5e-324, 2**63, 2**64, -(2**63) - 1, 1e16, 123456789012345680000.0]})
@example({"content": "\ufffd", "c": "😀", "\ufffd": "\x00\ufeff\ufffe", "d": 2**80})
@example({"b": 1, "a": 2, "": 4})
def test_message_is_exact_or_not_finite(message: dict[str, object]) -> None:
    """Every value of JSON's types comes back as it is, key order included; only NaN and infinities are refused."""
    if not is_json(message):
        with pytest.raises(InvalidMessage):
            encode(message)
        return

    codec, body, copy = encode(message)

    assert same(copy, message)
    assert same(decode(codec, body), message)


@given(st.dictionaries(texts, anything, min_size=1, max_size=3))
def test_message_that_is_no_json_is_refused(message: dict[str, object]) -> None:
    """What holds anything but JSON's types is refused, and nothing else is."""
    try:
        _, _, copy = encode(message)
    except InvalidMessage:
        assert not is_json(message)
        return
    assert same(copy, message)


def test_codec_is_orjson_where_it_can_be() -> None:
    """Only what orjson can't write exactly takes the second codec."""
    codecs = [encode({"content": content})[0] for content in ("ü\x00", 2**64 - 1, -(2**63), 2**64, -(2**63) - 1)]

    assert codecs == [ORJSON, ORJSON, ORJSON, STDLIB, STDLIB]


def test_body_is_utf8_without_spaces() -> None:
    """Both codecs write the shortest JSON, in UTF-8."""
    assert encode({"a": ["ü", 1]})[:2] == (ORJSON, '{"a":["ü",1]}'.encode())
    assert encode({"a": ["ü", 2**70]})[:2] == (STDLIB, f'{{"a":["ü",{2**70}]}}'.encode())


def test_copy_is_deep() -> None:
    """The decoded value shares nothing with the message."""
    part = {"text": "a"}
    _, _, copy = encode({"content": [part]})

    part["text"] = "b"

    assert copy == {"content": [{"text": "a"}]}


class Role(StrEnum):
    USER = "user"


class Text(str):
    __slots__ = ()


def test_subclasses_come_back_as_the_plain_values_that_they_equal() -> None:
    """A StrEnum, a str of a subclass and an OrderedDict are JSON values in all but their class."""
    message = {"role": Role.USER, "content": Text("a"), Text("x"): OrderedDict(b=1, a=2)}

    _, _, copy = encode(message)

    assert same(copy, {"role": "user", "content": "a", "x": {"b": 1, "a": 2}})


Point = namedtuple("Point", "x y")


@dataclass
class Part:
    text: str


class Kind(Enum):
    TEXT = "text"


def endless() -> list[object]:
    items: list[object] = []
    items.append(items)
    return items


def nested(depth: int) -> object:
    value: object = "x"
    for i in range(depth):
        value = [value] if i % 2 else {"a": value}
    return value


@pytest.mark.parametrize(
    ("value", "place", "reason"),
    [
        (math.nan, "", "nan is not JSON"),
        (1e400, "", "inf is not JSON"),
        ((1, 2), "", "would come back as a list"),
        (Point(1, 2), "", "would come back as a list"),
        (datetime(2031, 1, 1, tzinfo=UTC), "", "isoformat"),
        (b"x", "", "base64"),
        ({1}, "", "pass a list"),
        (range(3), "", "pass a list"),
        ({1: "x"}, "", "the key 1 is a int: JSON keys are strings"),
        ({"a b": [0, {"c": (1,)}]}, "['a b'][1].c", "pass a list"),
        (Part("x"), "", "a Part is not JSON"),
        (Kind.TEXT, "", "a Kind is not JSON"),
        (Decimal(1), "", "a Decimal is not JSON"),
        (endless(), "[0]", "it contains itself"),
        (10**MAX_DIGITS, "", "more than 640 digits"),
        ([2**70, float("-inf")], "[1]", "-inf is not JSON"),
        ("Hi \ud83d", "", "character 3 is half of a surrogate pair"),
        ({"\udc00": 1}, "['\\udc00']", "character 0 is half of a surrogate pair"),
    ],
)
def test_refusal_names_place_and_reason(value: object, place: str, reason: str) -> None:
    """The error says where in the message it is and what to pass instead."""
    with pytest.raises(InvalidMessage) as caught:
        encode({"role": "user", "content": [{"type": "text", "text": value}]})

    assert caught.value.path == f"content[0].text{place}"
    assert reason in caught.value.reason


@pytest.mark.parametrize("leaf", ["x", 2**70])
def test_depth_has_one_limit_for_both_codecs(leaf: object) -> None:
    """As deep as the limit is exact, one deeper is refused, whichever codec writes it."""
    deepest = {"a": nested(MAX_DEPTH - 1), "b": leaf}

    codec, body, _ = encode(deepest)

    assert decode(codec, body) == deepest
    for depth in (MAX_DEPTH, 100_000):
        with pytest.raises(InvalidMessage, match="inside one another"):
            encode({"a": nested(depth), "b": leaf})


def test_message_that_is_no_dict_is_refused() -> None:
    """A message is a JSON object."""
    values: tuple[object, ...] = ([], "x", None, OrderedDict)
    for value in values:
        with pytest.raises(InvalidMessage, match="pass a dict"):
            encode(value)  # type: ignore[arg-type]


def test_size_limit_is_exact() -> None:
    """A body of the limit is stored, one byte more is refused with its size, by either codec."""
    room = MAX_BYTES - len('{"content":["x"]}') + 1

    for content in (["x" * room], [2**70, "x" * (room - len(f"{2**70},"))]):
        assert len(encode({"content": content})[1]) == MAX_BYTES
        with pytest.raises(LimitExceeded) as caught:
            encode({"content": [content[:-1], str(content[-1]) + "x"]})
        assert (caught.value.limit, caught.value.at_most) == ("message bytes", MAX_BYTES)
        assert caught.value.value > MAX_BYTES
    for size in (MAX_BYTES, 10_000_000):
        with pytest.raises(LimitExceeded) as caught:
            encode({"content": "x" * size})
        assert caught.value.value > MAX_BYTES


def test_decode_refuses_what_it_does_not_know() -> None:
    """An unknown codec is a later version's; bytes that are no object are no message."""
    with pytest.raises(SchemaTooNew):
        decode(5, b"{}")
    for body in (b"", b"[]", b"{", b"\xff"):
        for codec in (ORJSON, STDLIB, 3, 4):
            with pytest.raises(InvalidMessage):
                decode(codec, body)
    for envelope in (
        b"{}",
        b'{"chat":{},"format":"anthropic"}',
        b'{"chat":[],"format":"anthropic","items":[]}',
        b'{"chat":{},"format":1,"items":[]}',
        b'{"chat":{},"format":"anthropic","items":{}}',
        b'{"chat":{},"format":"anthropic","items":[],"more":1}',
    ):
        with pytest.raises(InvalidMessage, match="envelope"):
            decode(3, envelope)


@given(st.binary(max_size=40), st.integers(0, 39), st.integers(0, 7))
def test_digest_changes_with_every_bit(body: bytes, place: int, bit: int) -> None:
    """One bit of the body, or the codec, makes another digest."""
    flipped = bytearray(body or b"x")
    flipped[place % len(flipped)] ^= 1 << bit

    assert len(digest(1, body)) == 16
    assert digest(1, bytes(flipped)) != digest(1, body or b"x")
    assert digest(2, body) != digest(1, body)
