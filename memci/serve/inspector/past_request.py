"""The request at the close of a turn, compared with the one before: what a prompt cache keeps.

    the same as before       system, contents, 14 messages        billed as cached
    ── the cache breaks ──
    new                      contents                             billed in full
    moved                    12 messages that stood elsewhere
    gone                     9 messages that left the window

Tokens are those of the context's own report: what was kept, and the rest of its total.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, NamedTuple

from ...context.context import Context
from ...context.renderer import count_equal
from ...errors import BudgetExceeded, InvalidSetting
from ...formats.identity import MARKS
from ...messages import Message
from .inspected import InspectedContext

_LISTS: Final = ("messages", "input", "contents")
_FRONT: Final = ("tools", "config", "system", "instructions")
"""the parts that a provider bills before the messages, in this order"""


class RequestPart(NamedTuple):
    """One part of a request: a message, an item, or a part before them."""

    name: str  # its role or type; or "tools", "system" …
    value: Any
    text: str  # the value as JSON, without marks for the cache
    kind: Literal["same", "new", "moved"] = "new"

    @property
    def words(self) -> str:
        """The text in it; "" if there is none."""
        if isinstance(self.value, str):
            return self.value
        content = self.value.get("content", self.value.get("parts")) if isinstance(self.value, dict) else None
        blocks = content if isinstance(content, list) else [{"text": content}]
        texts = [block.get("text") for block in blocks if isinstance(block, dict)]
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def json(self) -> str:
        """The value as JSON, to be read."""
        return json.dumps(self.value, ensure_ascii=False, indent=2)


class PastRequest(NamedTuple):
    """A request, and how it differs from the one before it."""

    turn: int
    format: str
    parts: tuple[RequestPart, ...]
    kept: int  # number of leading parts that equal those of the request before
    broke: bool  # whether the prompt cache misses: the request before is not a prefix of this one
    gone: tuple[RequestPart, ...]  # parts of the request before that are not in this one
    tokens: tuple[int, int]  # of what was kept and of the rest: together the total of `Context.report`

    @property
    def share(self) -> float:
        """The share that was kept, from 0 to 1."""
        return self.tokens[0] / (sum(self.tokens) or 1)


def past_request(inspected: InspectedContext, turn: int, format: str | None) -> PastRequest:  # noqa: A002
    """Return the request as of the close of *turn*. O(messages in the window).

    Raises:
        InvalidSetting: If there is no such context, turn or format, or that turn is not known any more.
        BudgetExceeded: If the window of that turn does not fit a request.
    """
    storage, record, weigh = inspected.storage, inspected.record, inspected.window.weigh
    with Context.view(storage, record.id, at=turn, owner=record.owner) as context:
        form, total = format or context.format, context.report().total  # rendering would count other tools: none
        parts = _parts(context.request(strict=False, format=form))
        messages = context.render(strict=False, format="openai_chat")
        before: list[RequestPart] = []
        shown: list[Message] = []
        if turn:
            unknown = suppress(InvalidSetting, BudgetExceeded)  # the turn before may not be known any more
            with unknown, Context.view(storage, record.id, at=turn - 1, owner=record.owner) as earlier:
                before = _parts(earlier.request(strict=False, format=form))
                shown = earlier.render(strict=False, format="openai_chat")
        known = {part.text for part in before}
        kept = 0
        while kept < min(len(parts), len(before)) and parts[kept].text == before[kept].text:
            kept += 1
        marked = [
            part._replace(kind="same" if at < kept else "moved" if part.text in known else "new")
            for at, part in enumerate(parts)
        ]
        now = {part.text for part in parts}
        gone = tuple(part for part in before if part.text not in now)
        same = count_equal(shown, messages)
        old = max(0, total - sum(map(weigh, messages[same:]))) if same else 0
    return PastRequest(turn, form, tuple(marked), kept, kept < len(before), gone, (old, total - old))


def _parts(request: Mapping[str, Any]) -> list[RequestPart]:
    """Return the parts of *request* in the order in which they are billed."""
    front = [(name, request[name]) for name in _FRONT if request.get(name)]
    items: list[Any] = next((request[name] for name in _LISTS if isinstance(request.get(name), list)), [])
    named = [(str(item.get("role") or item.get("type") or "item"), item) for item in items]
    return [
        RequestPart(name, value, json.dumps(_without_marks(value), ensure_ascii=False, sort_keys=True))
        for name, value in (*front, *named)
    ]


def _without_marks(value: Any) -> Any:
    """Return *value* without cache marks, which move from request to request and do not change the cached bytes."""
    if isinstance(value, dict):
        return {key: _without_marks(each) for key, each in value.items() if key not in MARKS}
    if isinstance(value, list):
        plain = [_without_marks(each) for each in value]
        alone = plain[0] if len(plain) == 1 and isinstance(plain[0], dict) else {}
        texts = alone.keys() == {"type", "text"} and alone["type"] in {"text", "input_text"}
        return alone["text"] if texts else plain  # a mark makes a block of a text
    return value
