"""What audio and files cost. No formula is published for their bytes, so these are rates on the safe side.

    a WAV file            10 tokens a second in OpenAI's models, 32 in others; its header says how long it is
    other audio           the same, taken as 2,000 bytes a second (16 kbit/s, low for speech)
    a text file           its text, counted
    a PDF file            3,000 tokens a page, text and image; a token per 8 bytes where its pages are packed away
    other files           a token per 8 bytes, 3,000 at least
    only an id or a link  3,000 tokens: its size is not known

Sources: OpenAI's pricing of audio (one token per 100 ms of a user's speech), Google's "Understand and count tokens" (32
a second), Anthropic's "PDF support" (1,500 to 3,000 tokens of text a page). This module knows nothing of messages.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping

from ..model_catalog import facts_of

_UNKNOWN = 3_000
_PER_PAGE = 3_000
_BYTES_PER_TOKEN = 8
_BYTES_PER_SECOND = 2_000
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")


def audio_tokens(part: Mapping[str, object], model: str | None = None) -> int:
    """Return what the audio in *part* (`input_audio`) costs in *model*, in tokens. O(bytes)."""
    sound = _decoded(_first_text(part.get("input_audio"), "data"))
    if sound is None:
        return _UNKNOWN
    per_second = _BYTES_PER_SECOND
    if sound[:4] == b"RIFF" and sound[8:16] == b"WAVEfmt " and len(sound) >= 32:
        per_second = int.from_bytes(sound[28:32], "little") or _BYTES_PER_SECOND
    return -(-len(sound) * facts_of(model).sound_tokens // per_second)


def file_tokens(part: Mapping[str, object], count: Callable[[str], int]) -> int:
    """Return what the file in *part* costs in tokens. O(bytes).

    The part is a `file` or `input_file` (OpenAI), or a `document` with a `source` (Anthropic). *count* counts the text
    of a text file.
    """
    holder = part.get("file", part.get("source", part))
    content = _decoded(_first_text(holder, "file_data", "data"))
    if content is None:
        return _UNKNOWN
    if content.startswith(b"%PDF"):
        pages = len(_PAGE.findall(content))
        return pages * _PER_PAGE if pages else max(_PER_PAGE, len(content) // _BYTES_PER_TOKEN)
    try:
        return count(content.decode())
    except UnicodeDecodeError:
        return max(_UNKNOWN, len(content) // _BYTES_PER_TOKEN)


def _first_text(holder: object, *keys: str) -> str | None:
    if isinstance(holder, Mapping):
        for key in keys:
            if isinstance(holder.get(key), str):
                return str(holder[key])
    return None


def _decoded(source: str | None) -> bytes | None:
    if source is None:
        return None
    start = source.find(",", 0, 200) + 1
    try:
        return base64.b64decode(source[start:], validate=True)
    except (binascii.Error, ValueError):
        # Not base64: a source of plain text.
        return source.encode("utf-8", "replace")
