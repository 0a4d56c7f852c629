"""Breakpoints: marks at the ends of the stable parts of a request, for providers whose cache needs them.

    system ▮  contents ▮  closed pages ▮  the open page …          at most three: one of the four is left

Anthropic reads `cache_control` at any block but a thought. From gpt-5.6 on, OpenAI reads `prompt_cache_breakpoint` at
the parts of an input (openai-python's types of content parts, "Prompt caching" in its guides). It may place a mark
itself, for which one of the four is left.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..messages import Item

MOST: Final = 4  # marks that a request may have


class Mark(NamedTuple):
    """The form of a provider's breakpoints."""

    key: str
    value: dict[str, str]
    text: str  # the type of a text part
    parts: frozenset[str] | None  # the types of parts that can be marked; None: all but thoughts
    roles: frozenset[str]  # the roles whose messages can be marked
    ordered: bool = False  # whether marks that last longer come first

    def on(self, item: Item) -> Item:
        """Return *item* with a mark at its last part that can have one, *item* itself if none can."""
        content: Any = item.get("content")
        if item.get("role") not in self.roles or not content or not isinstance(content, str | list):
            return item
        parts = [{"type": self.text, "text": content}] if isinstance(content, str) else list(content)
        for at in range(len(parts) - 1, -1, -1):
            kind = parts[at].get("type")
            if kind not in _THOUGHTS if self.parts is None else kind in self.parts:
                parts[at] = {**parts[at], self.key: parts[at].get(self.key, self.value)}
                return {**item, "content": parts}
        return item

    def count(self, item: Item) -> int:
        """Return how many marks *item* has, in its parts and within results."""
        content = item.get("content")
        parts = content if isinstance(content, list) else ()  # those of an opaque item may be anything
        return sum((self.key in part) + self.count(part) for part in parts if isinstance(part, dict))

    def lasting(self, behind: Sequence[Item]) -> "Mark":
        """Return this mark with the lifetime of the first mark of the caller's in the items *behind* its place.

        A mark that lasts longer must not come after one that ends sooner (Anthropic's "Prompt caching").
        """
        lifetimes = (each["ttl"] for item in behind for each in self._found(item) if each.get("ttl"))
        lifetime = next(lifetimes, None) if self.ordered else None
        return self if lifetime is None else self._replace(value={**self.value, "ttl": lifetime})

    def _found(self, item: Item) -> Iterator[dict[str, Any]]:
        """Yield the marks that *item* has, in its parts and within results."""
        content = item.get("content")
        for part in content if isinstance(content, list) else ():  # those of an opaque item may be anything
            if isinstance(part, dict):
                yield from [part[self.key]] if isinstance(part.get(self.key), dict) else ()
                yield from self._found(part)

    def off(self, item: Item) -> Item:
        """Return *item* without marks."""
        if not self.count(item):
            return item
        bare = [{key: value for key, value in part.items() if key != self.key} for part in item["content"]]
        return {**item, "content": [self.off(part) for part in bare]}

    def mark(self, items: Sequence[Item], ends: Collection[int], *, used: int = 0) -> list[Item]:
        """Return *items* with a mark at each of the positions *ends*, the last ones first. O(items).

        Where no mark is possible, the nearest item before it gets one. *used* marks are elsewhere already; marks that
        the caller made count, too, and stay, the newest of them if there are more than a request may have.
        """
        marked_items, left = list(items), MOST - used
        for at in range(len(items) - 1, -1, -1):
            if (own := self.count(items[at])) > left:
                marked_items[at], left = self.off(items[at]), 0
            else:
                left -= own
        room = left - 1
        for position in sorted(set(ends), reverse=True)[: max(0, room)]:
            for at in range(position, -1, -1):
                if (made := self.lasting(marked_items[at + 1 :]).on(marked_items[at])) is not marked_items[at]:
                    marked_items[at] = made
                    break
        return marked_items


_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_PARTS: Final = frozenset({"text", "image_url", "input_audio", "file"})
_INPUTS: Final = frozenset({"input_text", "input_image", "input_file"})
_INPUT_ROLES: Final = frozenset({"user", "system", "developer"})
_EXPLICIT: Final = {"mode": "explicit"}

ANTHROPIC: Final = Mark("cache_control", {"type": "ephemeral"}, "text", None, frozenset({"user", "assistant"}), True)
CHAT: Final = Mark("prompt_cache_breakpoint", _EXPLICIT, "text", _PARTS, _INPUT_ROLES | {"assistant", "tool"})
RESPONSES: Final = Mark("prompt_cache_breakpoint", _EXPLICIT, "input_text", _INPUTS, _INPUT_ROLES)
