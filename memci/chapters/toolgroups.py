"""Tool groups: an assistant's calls and the results that answer them, which nothing may separate.

Providers want every call answered once, right behind it, in order. What agents append is not always that, and all of
it is kept; the *view* of the group is repaired:

    appended                              shown
    assistant  calls a, b, a              assistant  calls a, b, a~2
    tool       b                          tool       a      (in the order of the calls)
    tool       a                          tool       b
    user       "never mind"               tool       a~2    no result: the call was interrupted
                                          user       "never mind"

A result that no open call waits for (it is late, or doubled) is shown as data behind the group. Pairing is by id and
occurrence, inside one page. This module knows nothing of pages, tokens or storage.
"""

from collections.abc import Iterable, Iterator

from ..messages import Message, tool_calls
from ..text.sanitize import framed, quoted
from .messagelist import MessageNode

INTERRUPTED = "no result: the call was interrupted"
"""What the view says in place of a result that never came."""


class ToolGroup:
    """The group that an assistant's message opens: it takes results until none is missing."""

    __slots__ = ("_answers", "_late", "_missing", "head", "settled")

    def __init__(self, head: MessageNode) -> None:
        self.head = head
        head.group = self
        self._missing = [call["id"] for call in tool_calls(head.message)]
        self._answers: list[MessageNode | None] = [None] * len(self._missing)
        self._late: list[MessageNode] = []
        self.settled = False
        """no more results can come: what is missing now stays so"""

    def take(self, node: MessageNode) -> bool:
        """Pair the result *node* with the first unanswered call of its id; tell whether there was one."""
        call_id = node.message["tool_call_id"]
        if call_id not in self._missing:
            return False
        for position, call in enumerate(tool_calls(self.head.message)):
            if self._answers[position] is None and call["id"] == call_id:
                self._answers[position] = node
                break
        self._missing.remove(call_id)
        node.group = self
        return True

    def keep(self, node: MessageNode) -> None:
        """Keep *node*, a result that answers nothing here, for behind the group."""
        self._late.append(node)
        node.group = self

    @property
    def missing(self) -> list[str]:
        """The ids of the calls that have no result, in order."""
        return self._missing

    def view(self) -> Iterator[Message]:
        """Yield what the group shows: a settled one answers what is missing, an open one leaves it open."""
        ids = distinct([call["id"] for call in tool_calls(self.head.message)])
        yield _with_ids(self.head.view, ids)
        for call_id, answer in zip(ids, self._answers, strict=True):
            if answer is not None:
                shown = answer.view
                yield shown if shown["tool_call_id"] == call_id else {**shown, "tool_call_id": call_id}
            elif self.settled:
                yield interrupted(call_id)
        for node in self._late:
            yield node.view


def shown(nodes: Iterable[MessageNode]) -> Iterator[Message]:
    """Yield what the run *nodes* shows, which holds whole groups."""
    for node in nodes:
        if node.group is None:
            yield node.view
        elif node.group.head is node:
            yield from node.group.view()


def interrupted(call_id: str) -> Message:
    """Return the result that stands for one that never came."""
    return {"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}


def late_result(message: Message, nonce: str) -> Message:
    """Return the view of a result that no open call waits for: the result as data, in the user's role."""
    content = message["content"]
    texts = [content] if isinstance(content, str) else [part.get("text") or f"[{part['type']}]" for part in content]
    lines = ["late result of call " + quoted(message["tool_call_id"]), *(quoted(text) for text in texts)]
    return {"role": "user", "content": framed("late-result", nonce, "\n".join(lines))}


def distinct(ids: list[str]) -> list[str]:
    """Return *ids* with every repetition renamed: `a, a` becomes `a, a~2`."""
    if len(set(ids)) == len(ids):
        return ids
    taken = set(ids)
    seen: set[str] = set()
    renamed = []
    for call_id in ids:
        name, occurrence = call_id, 1
        while name in seen or (occurrence > 1 and name in taken):
            occurrence += 1
            name = f"{call_id}~{occurrence}"
        seen.add(name)
        renamed.append(name)
    return renamed


def _with_ids(message: Message, ids: list[str]) -> Message:
    calls = tool_calls(message)
    if all(call["id"] == call_id for call, call_id in zip(calls, ids, strict=True)):
        return message
    return {**message, "tool_calls": [{**call, "id": call_id} for call, call_id in zip(calls, ids, strict=True)]}
