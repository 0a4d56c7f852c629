"""Streams of events: the part of them that a client gets while they come, if the model may call memci's tools.

    data: {… "content": "Let"}          sent on as it came
    data: {… "recall_page" …}           kept: memci answers it, and the next stream continues the same answer
    data: {… "find" …}                  sent on, with the number that it has without the calls that were kept
    data: {… the end …}                 kept as well, if only memci was called; else with the usage of all streams

Only calls of memci's tools wait; everything else is sent on at once.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any

from ..errors import InvalidMessage
from ..formats.events import Events, data_of, load_object
from ..formats.streams import ChatAnswer, MessagesAnswer, ResponsesAnswer, StreamedAnswer, streamed
from ..formats.usage import usages_in
from ..messages import Item, call_name, parts_of
from .replies import Calls, calls, merged, pieces_of, placed, total, visible


class ReplyStream:
    """One answer to the client, made of one stream for each round: for each time that the model is asked."""

    format = ""
    contents = ""
    """the key of a whole reply that has its contents"""

    def __init__(self, own: Collection[str], echo: Mapping[str, Any]) -> None:
        """Hide the calls of the tools *own*; *echo* are the fields of the client's request that a reply repeats."""
        self.rounds = 0
        self.reply: dict[str, Any] = {}
        """the model's answer in this round, once it has ended"""
        self.final = False
        self.ended = False
        """whether the stream of this round came to its end"""
        self._own, self._echo = own, echo
        self._answer: StreamedAnswer = streamed(self.format)
        self._replies: list[dict[str, Any]] = []
        self._usages: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        """the position at which the client sees a call, a block or an item of this round; memci's calls have none"""
        self._next = self._sequence = 0
        self._output: list[Item] = []
        """the items of a Responses answer so far"""
        self._id: object = None
        """the id of the first reply: clients know the answer by it"""

    def begin(self, *, final: bool) -> None:
        """Begin the next round; no other follows a *final* one."""
        self._usages.append(self.usage)
        self._answer = streamed(self.format)
        self.rounds += 1
        self.final, self.ended, self.reply, self._numbers = final, False, {}, {}

    def take(self, reply: dict[str, Any]) -> None:
        """Take the *reply* of this round, which came whole; any error means that it can't be read."""
        if not reply[self.contents] and self.contents == "choices":  # some providers say an error with the status 200
            raise InvalidMessage(self.contents, "there is none")
        calls(self.format, reply, self._own)
        self.ended, self.reply = True, reply
        self._replies.append(reply)

    def whole(self, raw: bytes) -> bytes:
        """Return what the client gets of the replies that came whole: *raw*, the last one, if nothing changes."""
        if len(self._replies) == 1 and not self.calls.own and self.format != ResponsesAnswer.format:
            return raw
        reply = echoed(merged(self.format, self._replies, self._own), self._echo)
        return json.dumps(reply, ensure_ascii=False).encode("utf-8", "surrogatepass")

    @property
    def calls(self) -> Calls:
        """The owners of the tools that this round calls."""
        return calls(self.format, self.reply, self._own)

    @property
    def failed(self) -> bool:
        """Whether the provider has said within the stream that this round failed."""
        return self._answer.error is not None

    @property
    def goes_on(self) -> bool:
        """Whether another round follows."""
        return self.ended and not self.final and self.calls.goes_on

    @property
    def usage(self) -> dict[str, Any]:
        """The cost of this round, {} if it reports none."""
        return self._answer.usage or {}

    def shown(self, event: bytes) -> bytes:
        """Return what the client gets of *event*: itself, the event without memci's part, or nothing."""
        data = load_object(data_of(event))
        if data is None:
            return b"" if self.goes_on else event
        try:
            self._answer.add(data)
        except InvalidMessage:  # an event that memci can't read: the client may
            return event
        if self._answer.ended and not self.ended:
            self.ended, self.reply = True, self._answer.whole
        edited = self._edit(data)
        if edited is data:
            return event
        if edited is None:
            return b""
        name = b"event: " + str(edited["type"]).encode() + b"\n" if b"event:" in event else b""
        return name + b"data: " + json.dumps(edited, separators=(",", ":")).encode() + b"\n\n"

    def _edit(self, data: dict[str, Any]) -> dict[str, Any] | None:
        """Return the event with *data* as the client gets it, *data* itself if nothing changes, None to keep it."""
        raise NotImplementedError

    def _renumber(self, data: dict[str, Any], key: str, begun: Item | None) -> dict[str, Any] | None:
        """Return *data* with the position that the client sees under *key*; None if it sees none.

        *begun* is the block or the item that begins with this event, if one does.
        """
        at = data[key]
        if begun is not None and visible([begun], self._own):
            self._numbers[at] = self._next
            self._next += 1
        if at not in self._numbers:
            return None
        return data if self._numbers[at] == at else {**data, key: self._numbers[at]}

    def _total(self) -> dict[str, Any]:
        """Return the usage of all rounds."""
        return total([*self._usages, self.usage])


class ChatStream(ReplyStream):
    """A stream of Chat Completions."""

    format = ChatAnswer.format
    contents = "choices"

    def __init__(self, own: Collection[str], echo: Mapping[str, Any]) -> None:
        super().__init__(own, echo)
        self._thoughts = 0
        """the number of signed thoughts in earlier rounds: clients join those of one index"""

    def begin(self, *, final: bool) -> None:
        """Begin the next round."""
        for choice in self.reply.get("choices") or ():
            self._thoughts += len(parts_of((choice.get("message") or {}).get("reasoning_details")))
        super().begin(final=final)

    def _edit(self, data: dict[str, Any]) -> dict[str, Any] | None:
        made = data
        if "error" in data and "choices" not in data:
            return data
        if self.rounds > 1 and data.get("id") != self._id:
            made = {**data, "id": self._id}
        self._id = made.get("id")
        if choices := data.get("choices"):
            choice = choices[0]
            delta, finish = choice.get("delta") or {}, choice.get("finish_reason")
            kept = self._visible(delta)
            if self.goes_on:
                finish = None
            elif finish == "tool_calls" and not self.calls.clients:
                finish = "stop"
            if kept is not delta or finish != choice.get("finish_reason"):
                if not kept and finish is None and not data.get("usage"):
                    return None
                made = {**made, "choices": [{**choice, "delta": kept, "finish_reason": finish}]}
        if isinstance(data.get("usage"), dict):
            if self.goes_on and not choices:
                return None
            if made is not data or self.rounds > 1:
                made = {**made, "usage": None if self.goes_on else self._total()}
        return made

    def _visible(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Return *delta* without memci's calls, and in later rounds without the role."""
        made = delta
        if self.rounds > 1 and "role" in made:
            made = {key: value for key, value in made.items() if key != "role"}
        if self._thoughts and isinstance(thoughts := made.get("reasoning_details"), list):
            made = {**made, "reasoning_details": [placed(each, self._thoughts) for each in thoughts]}
        if not (given := delta.get("tool_calls")):
            return made
        assert isinstance(self._answer, ChatAnswer), "it is the one of this format"
        kept = []
        for piece, index in zip(given, self._answer.continued, strict=True):
            if index not in self._numbers and call_name(self._answer.calls[index]) not in self._own:
                self._numbers[index] = len(self._numbers)
            if index in self._numbers:
                kept.append({**piece, "index": self._numbers[index]})
        if kept == given:
            return made
        made = {key: value for key, value in made.items() if key != "tool_calls"}
        return {**made, "tool_calls": kept} if kept else {k: v for k, v in made.items() if v is not None}


class MessagesStream(ReplyStream):
    """A stream of Anthropic's Messages."""

    format = MessagesAnswer.format
    contents = "content"

    def _edit(self, data: dict[str, Any]) -> dict[str, Any] | None:
        match data.get("type"):
            case "message_start":
                return data if self.rounds == 1 else None
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                return self._renumber(data, "index", data.get("content_block"))
            case "message_delta" if (reason := self._answer.finish) is not None:
                if self.goes_on:
                    return None
                delta = data.get("delta") or {}
                if reason == "tool_use" and not self.calls.clients:
                    delta = {**delta, "stop_reason": "end_turn"}
                elif self.rounds == 1:
                    return data
                return {**data, "delta": delta, "usage": self._total()}
            case "message_stop" if self.goes_on:
                return None
        return data


class ResponsesStream(ReplyStream):
    """A stream of Responses."""

    format = ResponsesAnswer.format
    contents = "output"

    def _edit(self, data: dict[str, Any]) -> dict[str, Any] | None:
        made = self._edit_numbered(data)
        if made is not None and "sequence_number" in data:
            if made["sequence_number"] != self._sequence:
                made = {**made, "sequence_number": self._sequence}
            self._sequence += 1
        return made

    def _edit_numbered(self, data: dict[str, Any]) -> dict[str, Any] | None:
        if isinstance(data.get("output_index"), int):
            begins = data["type"] == "response.output_item.added"
            return self._renumber(data, "output_index", data["item"] if begins else None)
        response = data.get("response")
        if not isinstance(response, dict):
            return data
        if self.rounds == 1:
            self._id = response.get("id")
        if not self.ended:
            return {**data, "response": echoed(response, self._echo)} if self.rounds == 1 else None
        self._output += visible(pieces_of(self.reply), self._own)
        if self.goes_on:
            return None
        whole = {**response, "id": self._id, "output": self._output, "usage": self._total() or None}
        return {**data, "response": echoed(whole, self._echo)}


class UsageTap:
    """Reads the cost of an answer from its bytes, streamed or whole, while they are sent on."""

    def __init__(self) -> None:
        self._events = Events()
        self.usage: dict[str, Any] = {}
        """the cost so far, {} if the answer has reported none"""

    def feed(self, chunk: bytes) -> bytes:
        """Read *chunk*, the next bytes of the answer, and return the events that it completes."""
        events = self._events.feed(chunk)
        for event in events:
            if b'"usage"' in event:
                self._read(load_object(data_of(event)))
        return b"".join(events)

    def end(self) -> bytes:
        """Read what follows the last whole event of the answer, which has ended, and return it."""
        rest = self._events.rest()
        self._read(load_object(rest))
        return rest

    def _read(self, data: dict[str, Any] | None) -> None:
        for usage in usages_in(data or {}):
            self.usage |= {key: value for key, value in usage.items() if value is not None}


def echoed(response: dict[str, Any], echo: Mapping[str, Any]) -> dict[str, Any]:
    """Return *response* with the fields that it repeats of the request as the client sent them."""
    return {**response, **{key: value for key, value in echo.items() if key in response}}


def stream_of(format: str, own: Collection[str], echo: Mapping[str, Any]) -> ReplyStream:  # noqa: A002
    """Return the answer to a client of *format*; *echo* are the fields of its request that are repeated to it."""
    streams = {each.format: each for each in (ChatStream, ResponsesStream, MessagesStream)}
    return streams[format](own, echo)
