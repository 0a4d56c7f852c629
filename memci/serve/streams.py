"""Streams of events: what a client gets of them while they come, if the model may call memci's tools.

    data: {… "content": "Let"}          sent on as it came
    data: {… "recall_page" …}           kept: memci answers it, and the next stream goes on in the same answer
    data: {… "find" …}                  sent on, with the number that it has without the calls that were kept
    data: {… the end …}                 kept as well, if only memci was called; else with the usage of all streams

Nothing waits but calls of memci's tools. This module knows nothing of contexts or HTTP.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from ..messages import Item
from .events import data_of
from .replies import Calls, calls, total, visible

_TEXTS: Final = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class ReplyStream:
    """One answer to the client, made of the stream of each time that the model was asked."""

    format = ""

    def __init__(self, own: Collection[str]) -> None:
        self.own = own
        """the names of memci's tools"""
        self.rounds = 0
        self.reply: dict[str, Any] = {}
        """what the model said in this round, as a whole answer"""
        self.usages: list[dict[str, Any]] = []
        self.final = False
        self.ended = False
        """whether the stream of this round came to its end"""

    def begin(self, *, final: bool) -> None:
        """Begin the next round; after a *final* one there is none."""
        self.rounds += 1
        self.final, self.ended, self.reply = final, False, {}

    @property
    def calls(self) -> Calls:
        """Whose tools this round calls."""
        return calls(self.format, self.reply, self.own)

    @property
    def goes_on(self) -> bool:
        """Whether another round follows."""
        return self.ended and not self.final and self.calls.goes_on

    @property
    def usage(self) -> dict[str, Any] | None:
        """What this round cost, as far as it said so."""
        return self.usages[-1] if len(self.usages) == self.rounds else None

    def shown(self, event: bytes) -> bytes:
        """Return what the client gets of *event*: itself, what it is without memci's part, or nothing."""
        data = data_of(event)
        if data is None:
            return b"" if self.goes_on else event
        edited = self._edited(data)
        if edited is data:
            return event
        if edited is None:
            return b""
        name = b"event: " + str(edited["type"]).encode() + b"\n" if b"event:" in event else b""
        return name + b"data: " + json.dumps(edited, separators=(",", ":")).encode() + b"\n\n"

    def _edited(self, data: dict[str, Any]) -> dict[str, Any] | None:
        raise NotImplementedError

    def _summed(self, usage: Mapping[str, Any]) -> dict[str, Any]:
        """Note *usage* of this round, and return that of all rounds."""
        self.usages += [{}] * (self.rounds - len(self.usages))
        self.usages[-1] = dict(usage)
        return total(self.usages)


class ChatStream(ReplyStream):
    """A stream of Chat Completions."""

    format = "openai_chat"

    def __init__(self, own: Collection[str]) -> None:
        super().__init__(own)
        self._id: object = None
        self._message: dict[str, Any] = {}
        self._calls: dict[int, Item] = {}
        self._numbers: dict[int, int] = {}
        """under which number the client sees a call; memci's have none"""

    def begin(self, *, final: bool) -> None:
        """Begin the next round."""
        super().begin(final=final)
        self._message, self._calls, self._numbers = {"role": "assistant", "content": None}, {}, {}
        self.reply = {"object": "chat.completion", "choices": [{"message": self._message}]}

    def _edited(self, data: dict[str, Any]) -> dict[str, Any] | None:
        made = data
        if self.rounds > 1 and data.get("id") != self._id:
            made = {**data, "id": self._id}
        self._id = made.get("id")
        choices = data.get("choices") or []
        if choices:
            choice = choices[0]
            delta = choice.get("delta") or {}
            self._add(delta)
            kept = self._delta(delta)
            finish = choice.get("finish_reason")
            if finish is not None:
                self.reply["choices"][0]["finish_reason"] = finish
                self.ended = True
                if self.goes_on:
                    finish = None
                elif finish == "tool_calls" and not self.calls.clients:
                    finish = "stop"
            if kept is not delta or finish != choice.get("finish_reason"):
                if not kept and finish is None and not data.get("usage"):
                    return None
                made = {**made, "choices": [{**choice, "delta": kept, "finish_reason": finish}]}
        if isinstance(data.get("usage"), dict):
            usage = self._summed(data["usage"])
            if self.goes_on and not choices:
                return None
            made = {**made, "usage": None if self.goes_on else usage} if made is not data or self.rounds > 1 else made
        return made

    def _add(self, delta: Mapping[str, Any]) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for piece in value or []:
                    self._add_call(piece)
            elif isinstance(value, str) and key != "role":
                self._message[key] = (self._message.get(key) or "") + value
            elif value is not None:
                before = self._message.get(key)
                self._message[key] = before + value if isinstance(before, list) and isinstance(value, list) else value

    def _add_call(self, piece: Item) -> None:
        at = piece.get("index", 0)
        body = piece.get("function") or {}
        if at not in self._calls:
            self._calls[at] = {**piece, "function": {"name": "", "arguments": "", **body}}
            del self._calls[at]["index"]
            self._message.setdefault("tool_calls", []).append(self._calls[at])
            if body.get("name") not in self.own:
                self._numbers[at] = len(self._numbers)
            return
        call = self._calls[at]
        call["function"]["arguments"] += body.get("arguments") or ""
        call.update({key: value for key, value in piece.items() if key not in {"index", "function"} and value})

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return *delta* without memci's calls."""
        made = delta
        if self.rounds > 1 and "role" in made:
            made = {key: value for key, value in made.items() if key != "role"}
        if given := delta.get("tool_calls"):
            numbers = self._numbers
            kept = [
                {**each, "index": numbers[each.get("index", 0)]} for each in given if each.get("index", 0) in numbers
            ]
            if kept != given:
                made = {key: value for key, value in made.items() if key != "tool_calls"}
                made = {**made, "tool_calls": kept} if kept else {k: v for k, v in made.items() if v is not None}
        return made


class MessagesStream(ReplyStream):
    """A stream of Anthropic's Messages."""

    format = "anthropic"

    def __init__(self, own: Collection[str]) -> None:
        super().__init__(own)
        self._blocks: dict[int, Item] = {}
        self._inputs: dict[int, str] = {}
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._usage: dict[str, Any] = {}

    def begin(self, *, final: bool) -> None:
        """Begin the next round; its blocks follow those of the round before."""
        super().begin(final=final)
        self._blocks, self._inputs, self._numbers, self._usage = {}, {}, {}, {}
        self.reply = {"type": "message", "role": "assistant", "content": [], "stop_reason": None}

    def _edited(self, data: dict[str, Any]) -> dict[str, Any] | None:
        match data.get("type"):
            case "message_start":
                self._usage = dict((data.get("message") or {}).get("usage") or {})
                return data if self.rounds == 1 else None
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                at = data.get("index", 0)
                self._add(data, at)
                if at not in self._numbers:
                    return None
                return data if self._numbers[at] == at else {**data, "index": self._numbers[at]}
            case "message_delta":
                return self._ended(data)
            case "message_stop":
                return None if self.goes_on else data
        return data

    def _ended(self, data: dict[str, Any]) -> dict[str, Any] | None:
        delta = data.get("delta") or {}
        self._usage |= {key: value for key, value in (data.get("usage") or {}).items() if value is not None}
        usage = self._summed(self._usage)
        if (reason := delta.get("stop_reason")) is None:
            return data
        self.reply["stop_reason"], self.ended = reason, True
        if self.goes_on:
            return None
        if reason == "tool_use" and not self.calls.clients:
            delta = {**delta, "stop_reason": "end_turn"}
        elif self.rounds == 1:
            return data
        return {**data, "delta": delta, "usage": usage}

    def _add(self, data: dict[str, Any], at: int) -> None:
        block = self._blocks.get(at)
        if data["type"] == "content_block_start":
            block = self._blocks[at] = dict(data.get("content_block") or {})
            self.reply["content"].append(block)
            if block.get("type") != "tool_use" or block.get("name") not in self.own:
                self._numbers[at] = self._next
                self._next += 1
        elif block is not None and data["type"] == "content_block_delta":
            delta = data.get("delta") or {}
            if (key := _TEXTS.get(str(delta.get("type")))) is not None:
                block[key] = (block.get(key) or "") + delta.get(key, "")
            elif delta.get("type") == "input_json_delta":
                self._inputs[at] = self._inputs.get(at, "") + delta.get("partial_json", "")
            elif delta.get("type") == "citations_delta":
                block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        elif block is not None and at in self._inputs:
            try:
                block["input"] = json.loads(self._inputs[at] or "{}")
            except ValueError:
                block["input"] = {"input": self._inputs[at]}


class ResponsesStream(ReplyStream):
    """A stream of Responses."""

    format = "openai_responses"

    def __init__(self, own: Collection[str], echo: Mapping[str, Any]) -> None:
        super().__init__(own)
        self._echo = echo
        """fields of the client's request that the response repeats"""
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._sequence = 0
        self._id: object = None
        """of the first response: clients know the answer by it"""
        self._output: list[Item] = []

    def begin(self, *, final: bool) -> None:
        """Begin the next round; its items follow those of the round before."""
        super().begin(final=final)
        self._numbers = {}

    def _edited(self, data: dict[str, Any]) -> dict[str, Any] | None:
        made = self._without_own(data)
        if made is None:
            return None
        if "sequence_number" in data:
            if made["sequence_number"] != self._sequence:
                made = {**made, "sequence_number": self._sequence}
            self._sequence += 1
        return made

    def _without_own(self, data: dict[str, Any]) -> dict[str, Any] | None:
        at = data.get("output_index")
        if isinstance(at, int):
            if data.get("type") == "response.output_item.added" and at not in self._numbers:
                item = data.get("item") or {}
                if item.get("type") != "function_call" or item.get("name") not in self.own:
                    self._numbers[at] = self._next
                    self._next += 1
            if at not in self._numbers:
                return None
            return data if self._numbers[at] == at else {**data, "output_index": self._numbers[at]}
        response = data.get("response")
        if not isinstance(response, dict):
            return data
        if self.rounds == 1:
            self._id = response.get("id")
        if data["type"] in {"response.created", "response.in_progress", "response.queued"}:
            return {**data, "response": echoed(response, self._echo)} if self.rounds == 1 else None
        self.reply, self.ended = {**response, "object": "response"}, True
        usage = self._summed(response["usage"]) if isinstance(response.get("usage"), dict) else None
        if self.goes_on:
            self._output += visible(self.format, response.get("output") or [], self.own)
            return None
        output = [*self._output, *visible(self.format, response.get("output") or [], self.own)]
        whole = {**response, "id": self._id, "output": output, "usage": usage}
        return {**data, "response": echoed(whole, self._echo)}


def echoed(response: dict[str, Any], echo: Mapping[str, Any]) -> dict[str, Any]:
    """Return *response* with the fields that it repeats of the request as the client sent them."""
    return {**response, **{key: value for key, value in echo.items() if key in response}}


def stream_of(format: str, own: Collection[str], echo: Mapping[str, Any]) -> ReplyStream:  # noqa: A002
    """Return the answer to a client of *format*; *echo* are the fields of its request that are repeated to it."""
    if format == "openai_responses":
        return ResponsesStream(own, echo)
    return ChatStream(own) if format == "openai_chat" else MessagesStream(own)
