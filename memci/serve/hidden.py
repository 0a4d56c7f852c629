"""Hidden rounds: calls of memci's tools with their results, which are in the log and not in the client's list.

    log      user   assistant: recall_page   tool   assistant: text          hidden: the second and the third
    client   user                                   assistant: text  user
             ──▶  user   assistant: recall_page   tool   assistant: text   user

The client's list is the truth. Before it is compared with the log, the hidden messages are put where they were. What a
client saw of them stands in messages of its own, joined or split as it likes: it is taken from there, piece by piece.
So it is with the beginning of an answer that the client wrote for the model. Thoughts, and white space around texts,
are no difference. A hidden message that showed a text which the client does not have is left out.
"""

import json
from collections import deque
from collections.abc import Sequence
from typing import Any

from .. import formats
from ..formats.identity import MARKS, identity, value_of
from ..messages import Enveloped, Item, Message, call_body, call_name, parts_of, tool_calls
from .replies import called, message_of, pieces_of, placed, visible

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})


def insert_hidden(
    format: str,  # noqa: A002
    client: Sequence[Message],
    log: Sequence[Message],
    own: set[str] | frozenset[str],
) -> list[Message]:
    """Return the messages of the *client* with the hidden ones of the *log*, as far as they agree. O(characters).

    *own* are the names of the tools whose calls are hidden.
    """
    made: list[Message] = []
    left = _Unmatched(client)
    hidden: list[Message] = []  # those since the last message of the client
    answered: set[str] = set()
    for number, kept in enumerate(log, 1):
        calls, following = tool_calls(kept), tool_calls(log[number]) if number < len(log) else []
        mine = {call["id"] for call in calls if call_name(call) in own}
        begun = kept["role"] == "assistant" and following and own.issuperset(map(call_name, following)) and left.speaks
        if kept["role"] == "tool" and kept["tool_call_id"] in answered:
            answered.remove(kept["tool_call_id"])  # some providers give an id again
        elif left.take(kept):
            hidden, mine = [], set()  # a call that the client has is its own, whatever its name
        elif left.take_said(kept, own, whole=not (mine or answered or hidden or begun)):
            hidden = [*hidden, kept] if mine and len(mine) == len(calls) else []
        elif not begun:
            break
        made.append(kept)
        answered |= mine
    return made + left.rest(format, hidden)


class _Unmatched:
    """The messages of a client that are not matched yet; of the first one perhaps a part is."""

    def __init__(self, client: Sequence[Message]) -> None:
        self._client, self._at = client, 0
        self._left: deque[Item] | None = None  # the pieces of the first message that are left; None: all

    @property
    def speaks(self) -> bool:
        """Whether the model speaks next."""
        return self._speaks(self._at)

    def take(self, message: Message) -> bool:
        """Take the next message, and return whether it is *message*; if it is not, nothing is taken."""
        if self._left is not None or self._at == len(self._client):
            return False
        same = identity(self._client[self._at]) == identity(message)
        self._at += same
        return same

    def take_said(self, message: Message, own: set[str] | frozenset[str], *, whole: bool) -> bool:
        """Take what a client saw of *message*, without the calls of the tools *own*, and return whether it is next.

        If it is not, nothing is taken; nor if a message of the client goes on behind it, and it must be *whole*.
        O(characters).
        """
        if message["role"] != "assistant":
            return False
        at, left = self._at, None if self._left is None else deque(self._left)
        wanted = deque(piece for piece in visible(pieces_of(message), own) if _says(piece))
        if not wanted:
            return not whole
        while wanted:
            while not left or not _says(left[0]):
                if left:
                    left.popleft()
                    continue
                at += left is not None
                if not self._speaks(at):
                    return False
                left = deque(pieces_of(self._client[at]))
            if (both := _behind(wanted.popleft(), left.popleft())) is None:
                return False
            wanted.extendleft(filter(_says, both[0]))
            left.extendleft(filter(_says, both[1]))
        ended = not any(map(_says, left or ()))
        if ended or not whole:
            self._at, self._left = (at + 1, None) if ended else (at, left)
        return ended or not whole

    def rest(self, format: str, hidden: Sequence[Message]) -> list[Message]:  # noqa: A002
        """Return what is left, without the thoughts of the *hidden* messages before it. O(characters)."""
        messages = [*self._client[self._at :]]
        if not self.speaks:
            return messages
        first = messages[0]
        known = [_words(piece) for each in hidden for piece in pieces_of(each) if _is_thought(piece)]
        left = pieces_of(first) if self._left is None else self._left
        pieces = [piece for piece in left if not (_is_thought(piece) and _words(piece) in known)]
        if self._left is not None or len(pieces) < len(left):
            listed = format == "openai_responses" and isinstance(first, Enveloped)
            values = pieces if listed or not pieces else [message_of(format, pieces, first)]
            messages[:1] = formats.read(values, format, opaque=True)
        if hidden and pieces and not isinstance(messages[0], Enveloped):
            messages[0] = _without_thoughts(messages[0], hidden)
        return messages

    def _speaks(self, at: int) -> bool:
        return at < len(self._client) and self._client[at]["role"] == "assistant"


def _without_thoughts(message: Message, hidden: Sequence[Message]) -> Message:
    """Return a *message* of Chat Completions without the thoughts of the *hidden* messages before it. O(characters).

    Signed thoughts of several rounds that the client joined are left out: the signature is that of none of them.
    """
    made = dict(message)
    for key in ("reasoning", "reasoning_content"):
        if isinstance(made.get(key), str):
            made[key] = made[key].removeprefix("".join(str(each.get(key) or "") for each in hidden))
    if isinstance(thoughts := made.get("reasoning_details"), list):
        before = [each for said in hidden for each in parts_of(said.get("reasoning_details"))]
        made["reasoning_details"] = [own for each in thoughts if (own := _own(each, before)) is not None]
        if not made["reasoning_details"]:
            del made["reasoning_details"]
    return made


def _own(thought: Any, before: Sequence[Any]) -> Any:
    """Return *thought* with the index of its own round; None if it is one of those *before*, or begins with one."""
    if not isinstance(thought, dict):
        return thought
    at = thought.get("index")
    if type(at) is int and at >= len(before):
        return placed(thought, -len(before))
    known = [each for each in before if isinstance(each, dict)]
    begun = tuple(text for each in known if (text := str(each.get("text") or "")))
    same = any(thought == {**each, **({"index": at} if "index" in thought else {})} for each in known)
    return None if same or str(thought.get("text") or "").startswith(begun) else thought


def _behind(wanted: Item, said: Item) -> tuple[list[Item], list[Item]] | None:
    """Return what is left of two pieces without what both begin with; None if neither is the beginning of the other.

    White space around a text is no difference.
    """
    told, heard = _text(wanted), _text(said)
    if told is None or heard is None:
        return ([], []) if told is heard and _words(wanted) == _words(said) else None
    for first, second in ((told, heard), (told.strip(), heard.strip())):
        if second.startswith(first):
            return [], [_without_start(said, heard.index(second) + len(first))]
        if first.startswith(second):
            return [_without_start(wanted, told.index(first) + len(second))], []
    return None


def _without_start(piece: Item, count: int) -> Item:
    """Return *piece*, a text, without its first *count* characters."""
    if not isinstance(parts := piece.get("content"), list):
        key = "text" if "text" in piece else "content"
        return {**piece, key: piece[key][count:]}
    kept = []
    for part in parts:
        size = len(_text(part) or "")
        if size > count:
            kept.append(_without_start(part, count) if count else part)
        count = max(0, count - size)
    return {**piece, "content": kept}


def _text(piece: Item) -> str | None:
    """Return the text of *piece*; None if it is no text."""
    match piece:
        case {"text": str(text)} | {"role": "assistant", "content": str(text)}:
            return text
        case {"role": "assistant", "content": list(parts)}:
            return "".join(_text(part) or "" for part in parts if isinstance(part, dict))
    return None


def _is_thought(piece: Item) -> bool:
    return piece.get("type") in _THOUGHTS


def _says(piece: Item) -> bool:
    """Return whether *piece* is more than a thought or white space."""
    return not _is_thought(piece) and ((text := _text(piece)) is None or bool(text.strip()))


def _words(piece: Item) -> str:
    """Return the values of *piece*; of a call its id, its name, and the value of its arguments."""
    if called(piece) is not None:
        body = call_body(piece) or piece
        given = next((body[key] for key in ("arguments", "input", "action") if key in body), None)
        said: object = [piece.get("call_id") or piece.get("id"), body.get("name"), value_of(given)]
    else:
        left = MARKS | ({"id", "status"} if piece.get("type") == "reasoning" else {"status"})
        said = {key: value for key, value in piece.items() if key not in left}
    return json.dumps(value_of(json.dumps(said)), sort_keys=True)
