"""Count the tokens of media by their sizes (`memci.text.media`), as the makers of the models publish it.

    media_tokens(["image", 1024, 1024], "gpt-4o")     scaled to 768 × 768, 2 × 2 tiles of 512:   85 + 4 · 170 = 765
    media_tokens(["image", 1800, 2400], "o4-mini")    scaled to 33 × 44 patches of 32:           ⌈1452 · 1.72⌉ = 2498

    image                 by its width and height; as the largest that the formula allows if these can't be known
    sound                 10 tokens a second in OpenAI's models, 32 in others: the header of a WAV file says how long
                          it is, other audio is taken as 2,000 bytes a second (16 kbit/s, low for speech)
    pages of a PDF        each 3,000 tokens of text, and an image of the page; 560 for both from Gemini 3 on, else 258
                          for the image in Gemini; a token per 8 bytes at least where the pages are packed away
    film                  300 tokens a second: the header of an MP4 file says how long it is
    file                  a token per 8 bytes, 3,000 at least, or if its size is unknown

Of a range, the upper end counts. Detail "auto" of an image, or none, counts as "high". Models that are not listed count
as gpt-4o.

Sources, as published up to 2026: OpenAI's guides "Images and vision" (tiles; patches, which ignore "low") and "File
inputs" (text and an image of each page), its pricing of audio (a token per 100 ms of a user's speech); Anthropic's
"Vision" (its two formulas: width · height / 750, and patches of 28 pixels: the larger one counts) and "PDF support"
(1,500 to 3,000 tokens of text a page, and its image); Google's "Understand and count tokens" (audio 32 a second, video
263), "Image understanding" (tiles of a unit between 256 and 768 pixels), "Video understanding" (about 300 with sound),
"Document understanding" (258 a page) and "Media resolution" (Gemini 3).
"""

import math
from collections.abc import Callable, Mapping, Sequence

from ..model_catalog import GoogleImages, PatchedImages, ScaledImages, TiledImages, facts_of
from ..text.media import KINDS, Medium, content_in, measure

_UNKNOWN = 3_000
_PAGE_TEXT = 3_000
_PAGE_SIZE = (1_700, 2_200)  # pixels of the image of a page: letter paper at 200 dots an inch
_VIDEO_PER_SECOND = 300
_BYTES_PER_TOKEN = 8
_ORIGINAL_PATCHES = 10_000
_DATA = ("file_data", "data", "url")


def media_tokens(medium: Medium, model: str | None = None, detail: object = None) -> int:
    """Return the tokens of *medium* for *model*; *detail* is that of an image. O(1)."""
    match medium:
        case ["image", *size]:
            return _image_tokens(size if len(size) == 2 else (), detail, model)
        case ["sound", int(size), int(rate)]:
            return -(-size * facts_of(model).sound_tokens // rate)
        case ["pages", _, int(pages)]:
            return pages * _page_tokens(model)
        case ["pages", int(size)]:
            return max(_page_tokens(model), size // _BYTES_PER_TOKEN)
        case ["film", int(milliseconds)]:
            return max(_VIDEO_PER_SECOND, -(-milliseconds * _VIDEO_PER_SECOND // 1_000))
        case [_, int(size)]:
            return max(_UNKNOWN, size // _BYTES_PER_TOKEN)
    return _UNKNOWN


def part_tokens(part: Mapping[str, object], count: Callable[[str], int], model: str | None = None) -> int | None:
    """Return the tokens of *part* of a message if it is a medium, else None. O(bytes).

    The part is one of OpenAI's (`image_url`, `input_image`, `input_audio`, `file`), or an `image` or a `document` with
    a `source` (Anthropic). *count* counts the text of a text file.
    """
    name = str(part.get("type"))
    kind = KINDS.get(name)
    if not kind:
        return None
    holder = part.get(name, part.get("source", part.get("image_url", part)))
    fields = holder if isinstance(holder, Mapping) else {"url": holder}
    source = next((str(fields[key]) for key in _DATA if isinstance(fields.get(key), str)), None)
    if source is None or source.startswith(("https:", "http:")):
        medium = [kind]
    elif found := measure(source, kind):
        medium = found
    else:
        return count(content_in(source).decode())
    return media_tokens(medium, model, fields.get("detail", part.get("detail")))


def _page_tokens(model: str | None) -> int:
    match facts_of(model).images:
        case GoogleImages(fixed):
            return 560 if fixed else _PAGE_TEXT + 258
    return _PAGE_TEXT + _image_tokens(_PAGE_SIZE, None, model)


def _image_tokens(size: Sequence[int], detail: object, model: str | None) -> int:
    """Return the tokens of an image of *size* for *model*; without one, those of the largest size of its formula."""
    match facts_of(model).images:
        case TiledImages(base, per_tile):
            return base if detail == "low" else base + per_tile * (_tiles(size) if size else 8)
        case PatchedImages(percent, most):
            most = _ORIGINAL_PATCHES if detail == "original" else most
            return -(-(_patches(size, most) if size else most) * percent // 100)
        case ScaledImages(longest, most):
            return min(most, _scaled_tokens(size, longest)) if size else most
        case GoogleImages(fixed):
            return fixed or 258 * (_google_tiles(size) if size else 24)


def _tiles(size: Sequence[int]) -> int:
    shrink = min(1.0, 2048 / max(size))
    shrink *= min(1.0, 768 / (min(size) * shrink))
    # Rounded to a pixel: 1365 · (768 / 1365) must not come out above 768 and take a further tile.
    return math.prod(math.ceil(max(1, round(side * shrink)) / 512) for side in size)


def _patches(size: Sequence[int], most: int) -> int:
    patches = math.prod(-(-side // 32) for side in size)
    shrink = math.sqrt(32 * 32 * most / math.prod(size))
    columns, rows = (side * shrink / 32 for side in size)
    if patches <= most or min(columns, rows) < 1:
        return min(patches, most)
    shrink *= min(math.floor(columns) / columns, math.floor(rows) / rows)
    # The tolerance is for a side that comes out as 33.0000000001 patches.
    return min(most, math.prod(math.ceil(side * shrink / 32 - 1e-9) for side in size))


def _scaled_tokens(size: Sequence[int], longest: int) -> int:
    width, height = (side * min(1.0, longest / max(size)) for side in size)
    return max(math.ceil(width * height / 750), math.ceil(width / 28) * math.ceil(height / 28))


def _google_tiles(size: Sequence[int]) -> int:
    if max(size) <= 384:
        return 1
    shrink = min(1.0, 3072 / max(size))
    sides = [max(1, round(side * shrink)) for side in size]
    unit = min(768, max(256, math.floor(min(sides) / 1.5)))
    return math.prod(-(-side // unit) for side in sides)
