"""Tool groups: the calls of an assistant and their results, which are never separated.

Providers require one result for each call, directly behind the calls and in their order. Agents append other things,
too. Every message is stored unchanged; only the *view* of the group is repaired:

    appended                              shown
    assistant  calls a, b, a              assistant  calls a, b, a~2
    tool       b                          tool       a      (in the order of the calls)
    tool       a                          tool       b
    user       "never mind"               tool       a~2    no result: the call was interrupted
                                          user       "never mind"

A result without an open call (late, or a second one) is shown as data behind the group. Calls and results are paired by
id and order, within one page.
"""

from collections.abc import Iterator, Sequence

from ..formats.envelope import INTERRUPTED, as_result
from ..messages import Message, tool_calls
from ..text.sanitize import frame, quote
from .messagelist import MessageNode


class OpenCalls:
    """The calls of one message without a result. A result answers the first call with its id."""

    __slots__ = ("left", "positions")

    def __init__(self, calls: Sequence[Message]) -> None:
        self.left = dict(enumerate(calls))
        """the calls by position, in order"""
        self.positions: dict[str, list[int]] = {}
        """their positions by id, last first"""
        for position in reversed(self.left):
            self.positions.setdefault(calls[position]["id"], []).append(position)

    @property
    def ids(self) -> list[str]:
        """The ids of the calls, in order. O(calls)."""
        return [call["id"] for call in self.left.values()]

    def take(self, call_id: str) -> tuple[int, Message] | None:
        """Remove the first open call with *call_id*, and return it with its position; None if there is none. O(1)."""
        positions = self.positions.get(call_id)
        return (positions[-1], self.left.pop(positions.pop())) if positions else None


NO_CALLS = OpenCalls(())  # of a message without calls: nothing can be taken


class ToolGroup:
    """The group of an assistant's message with calls, and of their results."""

    __slots__ = ("_answers", "_ids", "_late", "head", "open", "settled")

    def __init__(self, head: MessageNode) -> None:
        self.head = head
        head.group = self
        self.open = OpenCalls(tool_calls(head.message))
        """the calls that have no result"""
        self._ids = self.open.ids
        self._answers: list[MessageNode | None] = [None] * len(self._ids)
        self._late: list[MessageNode] = []
        self.settled = False
        """no more results can come"""

    def take(self, node: MessageNode) -> bool:
        """Pair the result *node* with the first unanswered call of its id, and return whether there was one. O(1)."""
        taken = self.open.take(node.message["tool_call_id"])
        if taken is None:
            return False
        self._answers[taken[0]] = node
        node.group = self
        return True

    def keep(self, node: MessageNode) -> None:
        """Keep *node*, a result without an open call, to show it behind the group."""
        self._late.append(node)
        node.group = self

    @property
    def missing(self) -> list[str]:
        """The ids of the calls that have no result, in order. O(calls)."""
        return self.open.ids

    def view(self) -> Iterator[Message]:
        """Yield the messages of the group; in a settled group, a replacement for each missing result."""
        ids = rename_repeated(self._ids)
        if ids is self._ids:
            yield self.head.view
        else:
            calls = [{**call, "id": name} for call, name in zip(tool_calls(self.head.view), ids, strict=True)]
            yield {**self.head.view, "tool_calls": calls}
        for call_id, answer in zip(ids, self._answers, strict=True):
            if answer is not None:
                shown = answer.view
                yield shown if shown["tool_call_id"] == call_id else {**shown, "tool_call_id": call_id}
            elif self.settled:
                yield as_result(call_id, INTERRUPTED)
        for node in self._late:
            yield node.view


def late_result(message: Message, nonce: str) -> Message:
    """Return the view of a result without an open call: data in the user's role."""
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part.get("text") or f"[{part['type']}]" for part in content]
    lines = ["late result of call " + quote(message["tool_call_id"]), *(quote(text) for text in texts)]
    return {"role": "user", "content": frame("late-result", nonce, "\n".join(lines))}


def rename_repeated(ids: list[str]) -> list[str]:
    """Return *ids* with repetitions renamed: `a, a` becomes `a, a~2`."""
    if len(set(ids)) == len(ids):
        return ids
    taken, seen = set(ids), dict.fromkeys(ids, 0)
    renamed = []
    for call_id in ids:
        seen[call_id] += 1
        name = call_id
        if seen[call_id] > 1:
            while (name := f"{call_id}~{seen[call_id]}") in taken:
                seen[call_id] += 1
            taken.add(name)
        renamed.append(name)
    return renamed
