"""The sizes of media, as the first bytes of their data say them.

    measure("data:image/png;base64,…", "image")     ["image", 1024, 768]

PNG, GIF and WebP have their size in the first 30 bytes. JPEG has it behind its metadata, which may hold a thumbnail of
64 KB or more, so up to 512 KB of a JPEG are decoded. `memci.tokens.media` says what a medium costs.
"""

import base64
import binascii
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

Medium: TypeAlias = list[Any]  # its kind and its sizes, as JSON has it
_FIRST_CHARACTERS = 64
_STANDARD = str.maketrans("-_", "+/")  # from the base64 of URLs, which some SDKs write, to the standard one
_JPEG_CHARACTERS = 700_000
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers of the header that holds the size
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers that no length follows
_BYTES_PER_SECOND = 2_000  # of sound whose length is not known: 16 kbit/s, low for speech
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_ENCODED = re.compile(
    r"(?:data:[\w/;.+-]{0,200},)?((?<![\w+/-])(?:(?:iVBORw0KGgo|[/_]9j[/_]|R0lGOD)())?[\w+/-]{200,}={0,2})", re.ASCII
)
"""base64 that may be a medium, also within a text; an image has a second group. A shorter one costs little as text"""
_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
KINDS: dict[str, str] = {each: kind for kind, named in _NAMES["kinds"].items() for each in named}
"""kinds of media by the type of a part, or the beginning of a media type"""
_REFERENCES = frozenset(_NAMES["references"])


def measure(source: str, kind: str) -> Medium | None:
    """Return the kind and the sizes of the medium in *source*, base64 or a data URL; None for a text. O(bytes).

    The *kind* "image", "sound", "film" or "file" is expected; "": the source may hold no medium. The sizes are width
    and height of an image, if they can be read, bytes and bytes per second of sound, milliseconds of a film, bytes and
    pages of a PDF, bytes of a file.
    """
    size = size_of(source)
    if size is not None or kind == "image":
        return ["image", *(size or ())]
    content = content_in(source)
    wave = content[:4] == b"RIFF" and content[8:16] == b"WAVEfmt " and len(content) >= 32
    if wave or kind == "sound":
        rate = int.from_bytes(content[28:32], "little") if wave else 0
        return ["sound", len(content) or 1, rate or _BYTES_PER_SECOND]
    if content.startswith(b"%PDF"):
        pages = len(_PAGE.findall(content))
        return ["pages", len(content), *([pages] if pages else [])]
    if content[4:8] == b"ftyp" and (milliseconds := _mp4_milliseconds(content)):
        return ["film", milliseconds]
    try:
        content.decode()
    except UnicodeDecodeError:
        return ["file", len(content)] if kind else None
    return None


def media_in(value: object) -> tuple[list[Medium], int]:
    """Return the media in *value*, JSON of unknown form, and the characters beside their data. O(characters)."""
    found = list(_media_in(value, ""))
    whole = len(json.dumps(value, ensure_ascii=False, default=str))  # what is no JSON is refused where it is stored
    return [medium for medium, _ in found], whole - sum(size for _, size in found)


def size_of(source: str, *, whole: bool = True) -> tuple[int, int] | None:
    """Return width and height in pixels of the image in *source*, a data URL or base64; None if they can't be read.

    Unless the *whole* of it may be read, only the first 48 bytes are: O(1).
    """
    if source.startswith(("http:", "https:")):
        return None
    # A data URL has its comma near the start; base64 has none.
    start = source.find(",", 0, 200) + 1
    head = _head(source, start, _FIRST_CHARACTERS)
    size = _size(head)
    if size is None and whole and head.startswith(b"\xff\xd8"):
        size = _jpeg(_head(source, start, _JPEG_CHARACTERS))
    return size if size is not None and min(size) > 0 else None


def _media_in(value: object, kind: str) -> Iterator[tuple[Medium, int]]:
    """Yield each medium in *value*, within an object for a medium of the *kind*, and the characters of its data."""
    if isinstance(value, list):
        for each in value:
            yield from _media_in(each, kind)
    elif isinstance(value, dict):
        named = KINDS.get(str(value.get("type")), kind)
        kind = kind if named == "file" and kind else named  # the source of an image may be a file
        media = str(value.get("media_type") or value.get("mime_type") or value.get("mimeType") or "")
        kind = KINDS.get(media.partition("/")[0], kind)
        for key, each in value.items():
            inner = KINDS.get(key, kind)
            if inner and key in _REFERENCES and isinstance(each, str) and not _ENCODED.match(each):
                yield [inner], 0
            else:
                yield from _media_in(each, inner)
    elif isinstance(value, str):
        for found in _ENCODED.finditer(value):
            whole = found.span() == (0, len(value))
            medium = measure(found[1], "image" if found[2] is not None else kind if whole else "")
            if medium is not None:
                yield medium, len(found[0])


def _mp4_milliseconds(content: bytes) -> int:
    """Return the milliseconds of the MP4 film in *content*, 0 if its header has none."""
    head = content.partition(b"mvhd")[2]
    wide = head[:1] == b"\x01"  # times of 8 bytes
    at = 20 if wide else 12
    unit, length = head[at : at + 4], head[at + 4 : at + (12 if wide else 8)]
    return int.from_bytes(length, "big") * 1_000 // (int.from_bytes(unit, "big") or 1)


def content_in(source: str) -> bytes:
    """Return the bytes of *source*, base64 or a data URL; those of the text if it is none. O(bytes)."""
    try:
        return base64.b64decode(source[source.find(",", 0, 200) + 1 :].translate(_STANDARD), validate=True)
    except (binascii.Error, ValueError):
        return source.encode("utf-8", "replace")  # no base64: plain text


def _head(source: str, start: int, characters: int) -> bytes:
    """Return the bytes of the *characters* of *source* from *start* on, b"" if they are no base64."""
    text = source[start : start + characters].translate(_STANDARD)
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _size(head: bytes) -> tuple[int, int] | None:
    """Return width and height as the *head* of a PNG, a GIF or a WebP says them, None if it is of none."""
    if len(head) < 10 or (not head.startswith(b"GIF8") and len(head) < 30):
        return None
    match head[:4], head[12:16]:
        case b"\x89PNG", b"IHDR":
            return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
        case b"GIF8", _:
            return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
        case b"RIFF", b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"RIFF", b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"RIFF", b"VP8 ":
            width, height = int.from_bytes(head[26:28], "little"), int.from_bytes(head[28:30], "little")
            return width & 0x3FFF, height & 0x3FFF
    return None


def _jpeg(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
        elif marker in _JPEG_BARE:
            at += 2
        elif marker in _JPEG_SIZES:
            return int.from_bytes(head[at + 7 : at + 9], "big"), int.from_bytes(head[at + 5 : at + 7], "big")
        else:
            at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None
