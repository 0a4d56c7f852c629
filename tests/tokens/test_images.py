"""What images cost: the published examples of each formula, and the size from the header of each format."""

import base64
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.text.media import size_of
from memci.tokens.chat import message_tokens


def _png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes(40)


def _gif(width: int, height: int) -> bytes:
    return b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little") + bytes(40)


def _jpeg(width: int, height: int) -> bytes:
    metadata = b"\xff\xe1\xff\xff" + bytes(0xFFFD)  # as long as one segment can be
    sizes = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return b"\xff\xd8" + metadata + b"\xff\xff\xdb\0\x04\0\0" + b"\xff\xc2\0\x11\x08" + sizes + bytes(40)


def _webp_extended(width: int, height: int) -> bytes:
    sizes = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0" + sizes + bytes(40)


def _webp_lossless(width: int, height: int) -> bytes:
    return b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f" + (width - 1 | height - 1 << 14).to_bytes(4, "little") + bytes(40)


def _webp_lossy(width: int, height: int) -> bytes:
    sizes = width.to_bytes(2, "little") + height.to_bytes(2, "little")
    return b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\0\0\0\x9d\x01\x2a" + sizes + bytes(40)


FORMATS = {
    "png": _png,
    "gif": _gif,
    "jpeg": _jpeg,
    "webp VP8X": _webp_extended,
    "webp VP8L": _webp_lossless,
    "webp VP8": _webp_lossy,
}


def _url(image: bytes) -> str:
    return "data:image/any;base64," + base64.b64encode(image).decode()


def image_tokens(part: Mapping[str, object], model: str | None) -> int:
    """The tokens of *part* in a message."""
    return message_tokens({"role": "user", "content": [part]}, len, model) - 4


def _part(width: int, height: int, detail: str | None = None) -> Mapping[str, object]:
    image = {"url": _url(_png(width, height))} | ({"detail": detail} if detail else {})
    return {"type": "image_url", "image_url": image}


@pytest.mark.parametrize("kind", FORMATS)
@given(width=st.integers(1, 16_383), height=st.integers(1, 16_383))
def test_size_is_read_from_the_header(kind: str, width: int, height: int) -> None:
    """Width and height are those of the header, in this order, in every format."""
    image = FORMATS[kind](width, height)

    actual = size_of(_url(image))

    assert actual == (width, height)


@pytest.mark.parametrize("kind", FORMATS)
def test_size_is_unknown_when_the_header_is_cut(kind: str) -> None:
    """A header that ends too early gives no size and raises nothing."""
    image = FORMATS[kind](640, 480)

    actual = [size_of(_url(image[:length])) for length in (0, 1, 3, 8, 9, 15)]

    assert {each for each in actual if each != (640, 480)} <= {None}
    assert actual[:4] == [None] * 4


@pytest.mark.parametrize("source", ["https://example.org/a.png", "data:image/png;base64,!!", "file-id", "", "é" * 99])
def test_size_is_unknown_when_there_is_no_image(source: str) -> None:
    """A link, an id or noise gives no size and raises nothing."""
    assert size_of(source) is None


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "expected"),
    [
        ("gpt-4o", 1024, 1024, "high", 85 + 4 * 170),
        ("gpt-4o", 2048, 4096, "high", 85 + 6 * 170),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4o", 1024, 1024, None, 85 + 4 * 170),
        ("gpt-4o", 1024, 1024, "auto", 85 + 4 * 170),
        ("gpt-4o", 150, 150, "high", 85 + 170),
        ("gpt-4o", 513, 512, "high", 85 + 2 * 170),
        ("gpt-4o", 1, 9999, "high", 85 + 4 * 170),
        ("gpt-4.1-2025-04-14", 1024, 1024, "high", 765),
        ("gpt-4.5-preview", 1024, 1024, "high", 765),
        ("openai/gpt-4o-mini", 128, 64, "high", 2833 + 5667),
        ("gpt-4o-mini", 128, 64, "low", 2833),
        ("gpt-5", 1024, 1024, "high", 70 + 4 * 140),
        ("gpt-5-chat-latest", 1024, 1024, "low", 70),
        ("o3", 1024, 1024, "high", 75 + 4 * 150),
        ("gpt-4.1-mini", 1024, 1024, "high", 1659),  # 1024 patches · 1.62
        ("gpt-4.1-mini", 1800, 2400, "high", 2353),  # 33 · 44 patches · 1.62
        ("gpt-4.1-mini", 1200, 1600, "high", 2353),  # the same, where a side comes out as 33.0000001 patches
        ("gpt-4.1-nano", 128, 64, "high", 20),  # 8 patches · 2.46
        ("o4-mini", 128, 64, "low", 14),  # 8 patches · 1.72
        ("gpt-5-mini-2025-08-07", 1024, 1024, None, 1659),
        ("gpt-5-nano", 1024, 1024, None, 2520),
        ("gpt-5.2", 512, 512, None, 308),  # 256 patches · 1.2
        ("claude-sonnet-4-5", 1000, 1000, None, 1334),
        ("claude-sonnet-4-5", 200, 200, None, 64),  # 8 · 8 patches of 28
        ("claude-sonnet-4-5", 4000, 4000, None, 1600),
        ("claude-opus-4-7", 4000, 4000, None, 4784),
        ("gemini-2.5-pro", 384, 384, None, 258),
        ("gemini-2.5-pro", 960, 540, None, 6 * 258),  # a unit of 360
        ("gemini-2.5-pro", 3072, 3072, None, 16 * 258),
        ("gemini-2.5-pro", 3072, 257, None, 24 * 258),
        ("gemini-3-pro-preview", 100, 100, None, 1120),
        (None, 1024, 1024, None, 765),
    ],
)
def test_image_tokens(model: str | None, width: int, height: int, detail: str | None, expected: int) -> None:
    """An image costs what the formula of its model says."""
    actual = image_tokens(_part(width, height, detail), model)

    assert actual == expected


MODELS = [
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-5",
    "o1",
    "gpt-4.1-mini",
    "gpt-5.4",
    "claude-3-opus",
    "claude-opus-4-7",
    "gemini-2.0",
]


@given(model=st.sampled_from(MODELS), width=st.integers(1, 20_000), height=st.integers(1, 20_000))
def test_image_of_unknown_size_costs_the_most(model: str, width: int, height: int) -> None:
    """No image costs more than one whose size is unknown, and none is free."""
    unknown = image_tokens({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, model)

    actual = image_tokens(_part(width, height), model)

    assert 0 < actual <= unknown


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "image_url": _url(_png(1024, 1024))},
        {"type": "image", "source": {"type": "base64", "data": base64.b64encode(_png(1024, 1024)).decode()}},
    ],
)
def test_image_is_read_in_other_shapes_of_parts(part: Mapping[str, object]) -> None:
    """The size is found in each shape that a part with an image has."""
    assert image_tokens(part, "gpt-4o") == 765


@pytest.mark.parametrize(
    "part", [{"type": "input_image", "file_id": "f"}, {"type": "image_url", "image_url": {"url": None}}]
)
def test_image_costs_the_most_when_there_is_no_source(part: Mapping[str, object]) -> None:
    """A part that only names an image costs the most that the formula allows."""
    assert image_tokens(part, "gpt-4o") == 85 + 8 * 170
