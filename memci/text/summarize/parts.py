"""The text of a message's content, and a placeholder for each part that is not text.

    [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}}]
    →  ("What is this?", ["[image 1024×768 png]"])

A placeholder has the kind, size, format and file name that the part states. It never copies the data of a part.
"""

import re
from collections.abc import Mapping
from typing import Any

from ..media import size_of

Message = Mapping[str, Any]  # one message in the form of Chat Completions, checked where it came in
_LARGEST = 1_000_000
_DATA = re.compile(r"data:([\w.+-]{1,40})/([\w.+-]{1,80})[;,]")
_NAME = re.compile(r"[^/?#]{1,80}(?=[?#]|$)")
_TEXTS = frozenset(("text", "input_text", "output_text"))
_FORMAT_KEYS = ("format", "media_type", "mime_type", "mimeType")
_NAME_KEYS = ("filename", "file_name", "name", "title", "file_id")


def split(content: list[Message] | None) -> tuple[str, list[str]]:
    """Return the text of *content* and the placeholders of its other parts. O(characters)."""
    texts: list[str] = []
    others: list[str] = []
    for part in content or ():
        if part["type"] in _TEXTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            others.append(placeholder(part))
    return "\n".join(texts), others


def placeholder(part: Message) -> str:
    """Return the placeholder of *part*."""
    kind = part["type"][:40] or "part"
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return f"refused: {part['refusal']}"
    inner = part.get(kind) or part.get("source")
    facts = dict(inner) if isinstance(inner, Mapping) else {"url": inner} if isinstance(inner, str) else {}
    facts = {**{key: value for key, value in part.items() if key not in ("type", kind)}, **facts}
    word = next((word for word in ("image", "audio", "video", "file", "document") if word in kind), kind)
    return f"[{' '.join([word, *_facts(facts)])}]"


def _facts(facts: Mapping[str, object]) -> list[str]:
    found: list[str] = []
    url = facts.get("url") or facts.get("file_data") or facts.get("image_url") or facts.get("data")
    url = url if isinstance(url, str) else ""
    inline = _DATA.match(url)
    stated = facts.get("width"), facts.get("height")
    fits = all(isinstance(each, int) and 0 < each < _LARGEST for each in stated)
    if size := stated if fits else size_of(url, whole=False):
        found.append(f"{size[0]}×{size[1]}")
    form = next((str(facts[key]) for key in _FORMAT_KEYS if isinstance(facts.get(key), str)), "")
    form = inline[2] if inline else form.rpartition("/")[2]
    named = [str(facts[key])[:80] for key in _NAME_KEYS if isinstance(facts.get(key), str)][:1]
    if not named and not inline and "://" in url[:12]:
        last = _NAME.search(url[:2_000].partition("://")[2].partition("/")[2].rpartition("/")[2])
        named = [last.group()] if last else []
    return [*found, *([form[:40]] if form else []), *named]
