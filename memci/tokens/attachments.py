"""Count the tokens of audio and files, as providers publish them; of a range, the upper end.

    a WAV file            10 tokens a second in OpenAI's models, 32 in others; its header says how long it is
    other audio           the same, taken as 2,000 bytes a second (16 kbit/s, low for speech)
    a text file           its text, counted
    a page of a PDF       3,000 tokens of text, and an image of the page; 560 for both from Gemini 3 on, else 258 for
                          the image in Gemini; a token per 8 bytes at least where the pages are packed away
    an MP4 video          300 tokens a second; its header says how long it is
    other files           a token per 8 bytes, 3,000 at least
    only an id or a link  3,000 tokens: its size is unknown

Sources: OpenAI's pricing of audio (a token per 100 ms of a user's speech) and "File inputs" (text and an image of each
page); Anthropic's "PDF support" (1,500 to 3,000 tokens of text a page, and its image); Google's "Understand and count
tokens" (audio 32 a second, video 263), "Video understanding" (about 300 with sound), "Document understanding" (258 a
page) and "Media resolution" (Gemini 3).
"""

import base64
import binascii
import math
import re
from collections.abc import Callable, Mapping

from ..model_catalog import GoogleImages, facts_of
from .images import sized_tokens

_UNKNOWN = 3_000
_PAGE_TEXT = 3_000
_PAGE_SIZE = (1_700, 2_200)  # pixels of the image of a page: letter paper at 200 dots an inch
_VIDEO_PER_SECOND = 300
_BYTES_PER_TOKEN = 8
_BYTES_PER_SECOND = 2_000
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")


def audio_tokens(part: Mapping[str, object], model: str | None = None) -> int:
    """Return the tokens of the audio in *part* (`input_audio`) for *model*. O(bytes)."""
    sound = _decode(_first_text(part.get("input_audio"), "data"))
    if sound is None:
        return _UNKNOWN
    per_second = _BYTES_PER_SECOND
    if sound[:4] == b"RIFF" and sound[8:16] == b"WAVEfmt " and len(sound) >= 32:
        per_second = int.from_bytes(sound[28:32], "little") or _BYTES_PER_SECOND
    return -(-len(sound) * facts_of(model).sound_tokens // per_second)


def file_tokens(part: Mapping[str, object], count: Callable[[str], int], model: str | None = None) -> int:
    """Return the tokens of the file in *part* for *model*. O(bytes).

    The part is a `file` or `input_file` (OpenAI), or a `document` with a `source` (Anthropic). *count* counts the text
    of a text file.
    """
    holder = part.get("file", part.get("source", part))
    content = _decode(_first_text(holder, "file_data", "data"))
    if content is None:
        return _UNKNOWN
    if content.startswith(b"%PDF"):
        pages, per_page = len(_PAGE.findall(content)), _page_tokens(model)
        return pages * per_page if pages else max(per_page, len(content) // _BYTES_PER_TOKEN)
    if content[4:8] == b"ftyp" and (seconds := _mp4_seconds(content)):
        return max(_VIDEO_PER_SECOND, math.ceil(seconds * _VIDEO_PER_SECOND))
    try:
        return count(content.decode())
    except UnicodeDecodeError:
        return max(_UNKNOWN, len(content) // _BYTES_PER_TOKEN)


def _page_tokens(model: str | None) -> int:
    match facts_of(model).images:
        case GoogleImages(fixed):
            return 560 if fixed else _PAGE_TEXT + 258
    return _PAGE_TEXT + sized_tokens(_PAGE_SIZE, None, model)


def _mp4_seconds(content: bytes) -> float:
    """Return the seconds of the MP4 film in *content*, 0 if its header has none."""
    at = content.find(b"mvhd") + 4
    wide = content[at : at + 1] == b"\x01"  # times of 8 bytes
    at += 20 if wide else 12
    unit, length = content[at : at + 4], content[at + 4 : at + (12 if wide else 8)]
    return int.from_bytes(length, "big") / (int.from_bytes(unit, "big") or 1) if at > 16 else 0


def _first_text(holder: object, *keys: str) -> str | None:
    if isinstance(holder, Mapping):
        for key in keys:
            if isinstance(holder.get(key), str):
                return str(holder[key])
    return None


def _decode(source: str | None) -> bytes | None:
    if source is None:
        return None
    start = source.find(",", 0, 200) + 1
    try:
        return base64.b64decode(source[start:], validate=True)
    except (binascii.Error, ValueError):
        # Not base64: plain text.
        return source.encode("utf-8", "replace")
