"""What an image costs, by the formula that its model's maker publishes.

    image_tokens({"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}}, "gpt-4o")

    1024 × 1024 in gpt-4o    scaled to 768 × 768, 2 × 2 tiles of 512:   85 + 4 · 170 = 765
    1800 × 2400 in o4-mini   scaled to 33 × 44 patches of 32:           ⌈1452 · 1.72⌉ = 2498

The size is read from the first bytes of a data URL: PNG, GIF and WebP have it in the first 30 bytes. JPEG has it behind
its metadata, which may hold a thumbnail of 64 KB or more, so up to 512 KB of a JPEG are decoded. If the size can't be
known (a link, a file id, a broken header), the image counts as the largest that the formula allows. Detail "auto", or
none, counts as "high".

Sources, as published up to 2026: OpenAI's guide "Images and vision" (tiles; patches, which ignore "low"), Anthropic's
"Vision" (its two formulas: width · height / 750, and patches of 28 pixels: the larger one counts), Google's "Understand
and count tokens" and "Image understanding" (tiles of a unit between 256 and 768 pixels). Models that are not listed
count as gpt-4o. This module knows nothing of messages or text.
"""

import base64
import binascii
import math
from collections.abc import Mapping

from ..model_catalog import GoogleImages, PatchedImages, ScaledImages, TiledImages, facts_of

_ORIGINAL_PATCHES = 10_000
_FIRST_CHARACTERS = 64
_JPEG_CHARACTERS = 700_000
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""the markers of a frame, which holds the size"""
_JPEG_BARE = frozenset({0x01, *range(0xD0, 0xD9)})
"""the markers without a length behind them"""


def image_tokens(part: Mapping[str, object], model: str | None = None) -> int:
    """Return what the image in *part* costs in *model*, in tokens.

    The part is an `image_url` or `input_image` (OpenAI), or an `image` with a `source` (Anthropic).
    """
    url, detail = _source(part)
    return sized_tokens(size_of(url) if url is not None else None, detail, model)


def sized_tokens(size: tuple[int, int] | None, detail: object, model: str | None) -> int:
    """Return what an image of *size* costs in *model*, in tokens; None is the largest that its formula allows."""
    match facts_of(model).images:
        case TiledImages(base, per_tile):
            return base if detail == "low" else base + per_tile * _tiles(size)
        case PatchedImages(percent, most):
            return _patched(size, percent, _ORIGINAL_PATCHES if detail == "original" else most)
        case ScaledImages(longest, most):
            return _scaled(size, longest, most)
        case GoogleImages(fixed):
            return _google(size) if fixed is None else fixed


def size_of(source: str) -> tuple[int, int] | None:
    """Return width and height in pixels of the image in *source*, a data URL or base64; None: they can't be read."""
    if source.startswith(("http:", "https:")):
        return None
    # A data URL has its comma near the start; base64 has none.
    start = source.find(",", 0, 200) + 1
    head = _decoded(source, start, _FIRST_CHARACTERS)
    size = _png(head) or _gif(head) or _webp(head)
    if size is None and head.startswith(b"\xff\xd8"):
        size = _jpeg(_decoded(source, start, _JPEG_CHARACTERS))
    return size if size is not None and min(size) > 0 else None


def _source(part: Mapping[str, object]) -> tuple[str | None, object]:
    image = part.get("image_url", part.get("source"))
    if isinstance(image, str):
        return image, part.get("detail")
    if isinstance(image, Mapping):
        url = image.get("url", image.get("data"))
        return (url if isinstance(url, str) else None), image.get("detail", part.get("detail"))
    return None, part.get("detail")


def _tiles(size: tuple[int, int] | None) -> int:
    if size is None:
        return 8
    shrink = min(1.0, 2048 / max(size))
    shrink *= min(1.0, 768 / (min(size) * shrink))
    # Rounded to a pixel: 1365 · (768 / 1365) must not come out above 768 and take a further tile.
    return math.prod(math.ceil(max(1, round(side * shrink)) / 512) for side in size)


def _patched(size: tuple[int, int] | None, percent: int, most: int) -> int:
    patches = most
    if size is not None:
        patches = math.prod(-(-side // 32) for side in size)
        if patches > most:
            patches = _shrunk_to(size, most)
    return -(-patches * percent // 100)


def _shrunk_to(size: tuple[int, int], most: int) -> int:
    width, height = size
    shrink = math.sqrt(32 * 32 * most / (width * height))
    columns, rows = width * shrink / 32, height * shrink / 32
    if min(columns, rows) < 1:
        return most
    shrink *= min(math.floor(columns) / columns, math.floor(rows) / rows)
    # The tolerance is for a side that comes out as 33.0000000001 patches.
    fitted = math.prod(math.ceil(side * shrink / 32 - 1e-9) for side in size)
    return min(most, fitted)


def _scaled(size: tuple[int, int] | None, longest: int, most: int) -> int:
    if size is None:
        return most
    shrink = min(1.0, longest / max(size))
    width, height = (side * shrink for side in size)
    return min(most, max(math.ceil(width * height / 750), math.ceil(width / 28) * math.ceil(height / 28)))


def _google(size: tuple[int, int] | None) -> int:
    if size is None:
        return 258 * 24
    if max(size) <= 384:
        return 258
    shrink = min(1.0, 3072 / max(size))
    sides = [max(1, round(side * shrink)) for side in size]
    unit = min(768, max(256, math.floor(min(sides) / 1.5)))
    return 258 * math.prod(-(-side // unit) for side in sides)


def _decoded(source: str, start: int, characters: int) -> bytes:
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
