"""The size of an image, as the first bytes of its data say it.

PNG, GIF and WebP have it in the first 30 bytes. JPEG has it behind its metadata, which may hold a thumbnail of 64 KB or
more, so up to 512 KB of a JPEG are decoded.
"""

import base64
import binascii

_FIRST_CHARACTERS = 64
_JPEG_CHARACTERS = 700_000
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})  # markers of the header that holds the size
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})  # markers that no length follows


def size_of(source: str, *, whole: bool = True) -> tuple[int, int] | None:
    """Return width and height in pixels of the image in *source*, a data URL or base64; None if they can't be read.

    Unless the *whole* of it may be read, only the first 48 bytes are: O(1).
    """
    if source.startswith(("http:", "https:")):
        return None
    # A data URL has its comma near the start; base64 has none.
    start = source.find(",", 0, 200) + 1
    head = _decode(source, start, _FIRST_CHARACTERS)
    size = _png(head) or _gif(head) or _webp(head)
    if size is None and whole and head.startswith(b"\xff\xd8"):
        size = _jpeg(_decode(source, start, _JPEG_CHARACTERS))
    return size if size is not None and min(size) > 0 else None


def _decode(source: str, start: int, characters: int) -> bytes:
    text = source[start : start + characters]
    try:
        return base64.b64decode(text[: len(text) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _png(head: bytes) -> tuple[int, int] | None:
    if not head.startswith(b"\x89PNG\r\n\x1a\n") or head[12:16] != b"IHDR" or len(head) < 24:
        return None
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def _gif(head: bytes) -> tuple[int, int] | None:
    if not head.startswith((b"GIF87a", b"GIF89a")) or len(head) < 10:
        return None
    return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")


def _webp(head: bytes) -> tuple[int, int] | None:
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP" or len(head) < 30:
        return None
    match head[12:16]:
        case b"VP8X":
            return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8 ":
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
