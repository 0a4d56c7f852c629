"""Count the tokens of an image, by the formula that the maker of the model publishes.

    image_tokens({"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}}, "gpt-4o")

    1024 × 1024 in gpt-4o    scaled to 768 × 768, 2 × 2 tiles of 512:   85 + 4 · 170 = 765
    1800 × 2400 in o4-mini   scaled to 33 × 44 patches of 32:           ⌈1452 · 1.72⌉ = 2498

If the size can't be known (a link, a file id, a broken header), the image counts as the largest that the formula
allows. Detail "auto", or none, counts as "high".

Sources, as published up to 2026: OpenAI's guide "Images and vision" (tiles; patches, which ignore "low"), Anthropic's
"Vision" (its two formulas: width · height / 750, and patches of 28 pixels: the larger one counts), Google's "Understand
and count tokens" and "Image understanding" (tiles of a unit between 256 and 768 pixels). Models that are not listed
count as gpt-4o.
"""

import math
from collections.abc import Mapping

from ..model_catalog import GoogleImages, PatchedImages, ScaledImages, TiledImages, facts_of
from ..text.image_size import size_of

_ORIGINAL_PATCHES = 10_000


def image_tokens(part: Mapping[str, object], model: str | None = None) -> int:
    """Return the tokens of the image in *part* for *model*.

    The part is an `image_url` or `input_image` (OpenAI), or an `image` with a `source` (Anthropic).
    """
    url, detail = _source(part)
    return sized_tokens(size_of(url) if url is not None else None, detail, model)


def sized_tokens(size: tuple[int, int] | None, detail: object, model: str | None) -> int:
    """Return the tokens of an image of *size* for *model*; None counts as the largest size of its formula."""
    match facts_of(model).images:
        case TiledImages(base, per_tile):
            return base if detail == "low" else base + per_tile * _tiles(size)
        case PatchedImages(percent, most):
            return _patch_tokens(size, percent, _ORIGINAL_PATCHES if detail == "original" else most)
        case ScaledImages(longest, most):
            return _scaled_tokens(size, longest, most)
        case GoogleImages(fixed):
            return _google_tokens(size) if fixed is None else fixed


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


def _patch_tokens(size: tuple[int, int] | None, percent: int, most: int) -> int:
    patches = most
    if size is not None:
        patches = math.prod(-(-side // 32) for side in size)
        if patches > most:
            patches = _fit_patches(size, most)
    return -(-patches * percent // 100)


def _fit_patches(size: tuple[int, int], most: int) -> int:
    width, height = size
    shrink = math.sqrt(32 * 32 * most / (width * height))
    columns, rows = width * shrink / 32, height * shrink / 32
    if min(columns, rows) < 1:
        return most
    shrink *= min(math.floor(columns) / columns, math.floor(rows) / rows)
    # The tolerance is for a side that comes out as 33.0000000001 patches.
    fitted = math.prod(math.ceil(side * shrink / 32 - 1e-9) for side in size)
    return min(most, fitted)


def _scaled_tokens(size: tuple[int, int] | None, longest: int, most: int) -> int:
    if size is None:
        return most
    shrink = min(1.0, longest / max(size))
    width, height = (side * shrink for side in size)
    return min(most, max(math.ceil(width * height / 750), math.ceil(width / 28) * math.ceil(height / 28)))


def _google_tokens(size: tuple[int, int] | None) -> int:
    if size is None:
        return 258 * 24
    if max(size) <= 384:
        return 258
    shrink = min(1.0, 3072 / max(size))
    sides = [max(1, round(side * shrink)) for side in size]
    unit = min(768, max(256, math.floor(min(sides) / 1.5)))
    return 258 * math.prod(-(-side // unit) for side in sides)
