"""What a medium costs where only its provider reads it: in a native item, by the rule of the model."""

import base64

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidMessage
from memci.formats import read
from memci.messages import Enveloped, Native
from memci.storage.codec import decode, encode
from memci.text.media import measure, media_in
from memci.tokens.media import media_tokens


def _encoded(content):
    return base64.b64encode(content).decode()


PNG = _encoded(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1024).to_bytes(4, "big") * 2 + bytes(60_000))
WAVE = _encoded(b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + bytes(4) + (3_200).to_bytes(4, "little") + bytes(31_968))
PDF = _encoded(b"%PDF-1.4 /Type /Page /Type /Page" + b"\xff" * 30_000)
MP4 = _encoded(
    b"\0\0\0\x14ftypisom" + b"\xff" * 40_000 + b"mvhd" + bytes(12) + b"\0\0\2\x58" + b"\0\0\x18\x9c" + bytes(80)
)

DRAWN = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": PNG}
CODE = {
    "type": "code_interpreter_call",
    "id": "ci_1",
    "code": "plot()",
    "outputs": [{"type": "image", "url": "https://a.example/1.png"}],
}
FETCHED = {
    "type": "web_fetch_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {
        "type": "web_fetch_result",
        "url": "https://a.example/a.pdf",
        "content": {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}},
    },
}
RAN = {
    "type": "code_execution_tool_result",
    "tool_use_id": "srvtoolu_2",
    "content": {
        "type": "code_execution_result",
        "stdout": "",
        "content": [{"type": "code_execution_output", "file_id": "file_1"}],
    },
}


def _inline(kind, data):
    return {"inlineData": {"mimeType": kind, "data": data}}


def _cost(form, item, model):
    """Tokens of the media of the native *item*."""
    message = read([item], form, opaque=True)[-1]
    return [media_tokens(each, model) for each in message.native.media]


@pytest.mark.parametrize(
    ("form", "item", "model", "expected"),
    [
        ("openai_responses", DRAWN, "gpt-4o", [765]),
        ("openai_responses", DRAWN, "o4-mini", [1_762]),
        ("openai_responses", CODE, "gpt-4o", [85 + 8 * 170]),
        ("openai_responses", {"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}, "gpt-4o", [1_445]),
        ("anthropic", {"role": "assistant", "content": [FETCHED]}, "claude-sonnet-4-5", [2 * 4_600]),
        ("anthropic", {"role": "assistant", "content": [FETCHED]}, "claude-opus-4-7", [2 * 7_784]),
        ("anthropic", {"role": "assistant", "content": [RAN]}, "claude-opus-4-7", []),
        (
            "anthropic",
            {"role": "user", "content": [{"type": "image", "source": {"type": "file", "file_id": "f"}}]},
            "claude-sonnet-4-5",
            [1_600],
        ),
        (
            "anthropic",
            {
                "role": "user",
                "content": [{"type": "document", "source": {"type": "url", "url": "https://a.example/a.pdf"}}],
            },
            "claude-sonnet-4-5",
            [3_000],
        ),
        ("gemini", {"role": "model", "parts": [_inline("image/png", PNG)]}, "gemini-2.5-pro", [258 * 4]),
        ("gemini", {"role": "model", "parts": [_inline("image/png", PNG)]}, "gemini-3-pro", [1_120]),
        ("gemini", {"role": "model", "parts": [_inline("audio/wav", WAVE)]}, "gemini-2.5-pro", [320]),
        (
            "gemini",
            {"role": "model", "parts": [_inline("audio/mp3", _encoded(bytes(20_000)))]},
            "gemini-2.5-pro",
            [320],
        ),
        ("gemini", {"role": "model", "parts": [_inline("video/mp4", MP4)]}, "gemini-2.5-pro", [3_150]),
        (
            "gemini",
            {"role": "model", "parts": [{"fileData": {"fileUri": "https://a.example/1"}}]},
            "gemini-2.5-pro",
            [3_000],
        ),
        (
            "openai_chat",
            {"role": "user", "content": [{"type": "input_video", "input_video": {"data": MP4}}]},
            "gpt-4o",
            [3_150],
        ),
    ],
)
def test_media_in_a_native_item_cost_by_the_rule_of_the_model(form, item, model, expected):
    """Each medium costs what one of its size costs in a part that every program reads."""
    assert _cost(form, item, model) == expected


@pytest.mark.parametrize("text", ["A" * 4_000, "Q0FS" * 900, "plain words " * 400, "src/" * 200])
def test_text_that_only_looks_encoded_is_no_medium(text):
    """Encrypted reasoning, signatures and paths have no size of a medium: they count by their characters."""
    media, characters = media_in({"type": "compaction", "encrypted_content": text})

    assert media == []
    assert characters > len(text)


def test_text_of_a_document_counts_and_its_images_do():
    """A document of blocks holds texts, which count by characters, and images, which count by their sizes."""
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    blocks = [{"type": "text", "text": "Grimstad is a harbour. " * 50}, image]
    document = {"type": "document", "source": {"type": "content", "content": blocks}, "citations": {"enabled": True}}

    message = read([{"role": "user", "content": [document]}], "anthropic")[0]

    assert message.native.media == [["image", 1024, 1024]]
    assert 1_100 < message.native.hidden < 1_800


def test_window_counts_a_medium_once_and_by_its_own_model():
    """The same drawing costs each model what its maker says, also after the context was opened again."""
    storage = EphemeralStorage()
    costs = {}
    for model in ("gpt-4o", "gemini-3-pro"):
        with Context.open(storage, model, model=model, window=16_000, format="openai_responses") as context:
            context.append_turn("Draw.", DRAWN)
            before = context.report().tokens["open"]
        with Context.open(storage, model) as context:
            assert context.report().tokens["open"] == before
            costs[model] = before

    assert costs["gpt-4o"] - 765 < 100
    assert 340 < costs["gemini-3-pro"] - costs["gpt-4o"] < 370


@pytest.mark.parametrize("media", [[["image", 0, 5]], [["sound", 5, -1]], [["pages", "2"]], [3], 7, [["film", 1e308]]])
def test_sizes_that_nobody_measured_are_refused(media):
    """A stored message whose media have no sizes is damaged; it never stops a window by a division."""
    codec, body, _ = encode(
        Enveloped(
            {"role": "assistant", "content": "a"},
            Native("gemini", [{"role": "model", "parts": []}], media=[["image", 5, 5]]),
        )
    )
    damaged = body.replace(b'[["image",5,5]]', repr(media).replace("'", '"').encode())

    with pytest.raises(InvalidMessage, match="no envelope"):
        decode(codec, damaged)


@pytest.mark.parametrize("first", [0, 1])  # the byte that would say how long the times are, if a header were there
def test_a_film_without_a_header_is_a_file(first):
    assert measure(_encoded(bytes([0, 0, 0, first]) + b"ftypisom" + b"\xff" * 60), "film") == ["file", 72]
