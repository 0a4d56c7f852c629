"""What the patterns of several languages share: which writing a text is in, and patterns put together.

    writing("Always answer in French.")     "latin"
    writing("以后请用中文回答。")              "han"        of Japanese text with any kana: "kana"

Nothing here tells Chinese from Japanese that is all Han characters, or English from French. This module knows nothing
of what is looked for.
"""

import re
from typing import Literal

Writing = Literal["latin", "han", "kana", "hangul"]

_KANA = re.compile("[\u3041-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7a3]")
_HAN = re.compile("[\u3400-\u9fff]")


def writing(text: str) -> Writing:
    """Return the writing that tells the language of *text*; "latin" is whatever is none of the others. O(length)."""
    if text.isascii():
        return "latin"
    if _KANA.search(text):
        return "kana"
    if _HANGUL.search(text):
        return "hangul"
    return "han" if _HAN.search(text) else "latin"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Return the pattern that matches where one of *patterns* does, the first of them that can."""
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
