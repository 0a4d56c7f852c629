"""Frames: how text that others wrote is shown to the model as data.

    <memci:contents 1f9a03c2>
    #42 Booking to Oslo
    </memci:contents 1f9a03c2>

What stands inside can't close the frame, because it holds no `<` and no `>`: lines of the Contents Page are
neutralised by the summarizer, quotations are JSON strings in which both are escaped. The nonce only makes the frames
of one context easy to tell from an imitation. This module knows nothing of pages or of what is framed.
"""

import json
import re

_UNSPEAKABLE = re.compile(
    "[<>\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""What may close a frame, end a line, turn the reading direction or not be sent at all."""
_JOINER = "\u200d"
"""what makes several symbols one: it stays in lines"""


def framed(kind: str, nonce: str, body: str) -> str:
    """Return *body* inside a frame; *body* must hold no `<` or `>` that others wrote."""
    return f"<memci:{kind} {nonce}>\n{body}\n</memci:{kind} {nonce}>"


def confined(text: str) -> bool:
    """Tell whether *text* stays on its line and in its frame as it is, and hides nothing."""
    bare = text.replace(_JOINER, "")
    return min(bare, default=" ") >= " " and not _UNSPEAKABLE.search(bare)


def quoted(text: str) -> str:
    """Return *text* as a JSON string on one line, without `<` and `>`; `json.loads` gives *text* back.

    The one exception: a high and a low surrogate that stand alone side by side come back as the one character that
    they would make, since JSON has no other way to write them.
    """
    return _UNSPEAKABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))
