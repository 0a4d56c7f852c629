"""Streamed answers, put together: from the events of a stream to the answer that the provider would have sent whole.

    answer = streamed("anthropic")
    for event in events:                      # dicts, or objects of the provider's SDK
        print(answer.add(event), end="")      # the text that the event adds
    answer.whole                              # for `formats.read`, `formats.calls` and `Context.append_turn`
    answer.usage                              # for `Context.append_turn(usage=…)`
    answer.ended                              # False: the stream was cut

`formats.read([answer.whole])` gives the messages. Fields that memci does not know are kept.
"""

import re
from itertools import pairwise
from typing import Any, Final

from ..errors import InvalidMessage
from ..messages import Item, plain
from . import anthropic, gemini, openai_chat, openai_responses
from .envelope import arguments_as_object, written
from .usage import usage_in, usages_in

_MOST_CALLS: Final = 1_000  # tool calls of one message, at most: no model makes more, so a higher index is an error
_WHOLE: Final = frozenset({"id", "type", "format", "name", "role"})  # keys of texts that come whole, each time again
_KEYS: Final = re.compile(r"[^$.\[\]'\"]+")  # of a path like $.stops[0].name


class StreamedAnswer:
    """One answer of a model, added up from the events of its stream."""

    format = ""

    def __init__(self) -> None:
        self.finish: str | None = None
        """the provider's reason for the end of the answer, None before"""
        self.error: str | None = None
        """what the provider says went wrong, None if nothing did"""
        self._fields: dict[str, Any] = {}
        """the fields of the answer beside its contents"""
        self._pieces: list[str] = []

    def add(self, event: object) -> str:
        """Add the next *event*, and return the text that it adds, "" if it adds none; None is no event. O(event).

        InvalidMessage if it is no event of this format.
        """
        try:
            given = plain({} if event is None else event, "event")
            if given.get("type") == "error" or (given.get("error") and not given.get("type")):
                self.error = error_text(given.get("error") or given)
                return ""
            piece = self._add(given)
        except InvalidMessage:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise InvalidMessage("event", f"it is no event of a stream of {self.format}") from None
        self._pieces.append(piece)
        return piece

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    @property
    def ended(self) -> bool:
        """Whether the provider ended the answer; only its usage may still follow."""
        return self.finish is not None

    @property
    def usage(self) -> dict[str, Any] | None:
        """The cost that the provider reported so far, None if it reported none."""
        return usage_in(self._fields)  # type: ignore[no-any-return]

    @property
    def whole(self) -> dict[str, Any]:
        """The answer so far, as a call without streaming returns it. O(answer)."""
        return self._fields | self._contents()

    def _contents(self) -> dict[str, Any]:
        raise NotImplementedError

    def _add(self, event: Item) -> str:
        raise NotImplementedError


class ChatAnswer(StreamedAnswer):
    """An answer of Chat Completions."""

    format = openai_chat.NAME

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[int, Item] = {}
        """the tool calls so far, by their index"""
        self._moved: dict[int, int] = {}
        """the indexes of calls that came under the index of another call"""
        self.continued: list[int] = []
        """the indexes of the calls that the last event went on with, in its order"""
        self._message: Item = {}
        self._texts: dict[str, list[str]] = {}

    def _contents(self) -> dict[str, Any]:
        texts: dict[str, Any] = {key: "".join(pieces) for key, pieces in self._texts.items()}
        if isinstance(thoughts := self._message.get("content"), list) and texts.get("content"):  # Mistral's are parts
            texts["content"] = [*thoughts, {"type": "text", "text": texts["content"]}]
        message = {"role": "assistant", "content": None, **self._message, **texts}
        if self.calls:
            message["tool_calls"] = [self.calls[index] for index in sorted(self.calls)]
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return {"object": "chat.completion", "choices": [choice]}

    def _add(self, event: Item) -> str:
        self._fields |= {key: value for key, value in event.items() if key != "choices" and value is not None}
        self.continued = []
        choice = next(iter(event.get("choices") or ()), None) or {}
        for usage in usages_in(event):
            self._fields["usage"] = usage
        if choice.get("error"):
            self.error = error_text(choice["error"])
        self.finish = finish if isinstance(finish := choice.get("finish_reason"), str) else self.finish
        delta = choice.get("delta") or {}
        for key, value in delta.items():
            if key == "tool_calls":
                self.continued = [self._add_call(call) for call in value or ()]
            elif isinstance(value, str) and key != "role":
                self._texts.setdefault(key, []).append(value)
            elif value is not None and key != "role":
                self._message[key] = _merged(self._message.get(key), value)
        content = delta.get("content") or delta.get("refusal")
        return content if isinstance(content, str) else ""

    def _add_call(self, piece: Item) -> int:
        index = piece.get("index")
        if type(index) is not int:  # some servers leave it out: a new id begins a new call
            last = max(self.calls, default=-1)
            same = last >= 0 and piece.get("id") in (None, "", self.calls[last]["id"])
            index = last if same else last + 1
        elif (known := self.calls.get(self._moved.get(index, index))) is not None:
            name = (piece.get("function") or piece.get("custom") or {}).get("name")
            if name and piece.get("id") not in (None, "", known["id"]):  # some servers count all parallel calls as 0
                self._moved[index] = max(self.calls) + 1
        index = self._moved.get(index, index)
        if not 0 <= index < _MOST_CALLS:
            raise InvalidMessage("event", f"a tool call has an index that is not within 0 to {_MOST_CALLS - 1}")
        call = self.calls.setdefault(index, {"id": "", "type": "function"})
        for key, value in piece.items():
            if key in {"function", "custom"} and isinstance(value, dict):
                body = call.setdefault(key, {"name": "", "arguments" if key == "function" else "input": ""})
                for name, part in value.items():
                    if name in {"arguments", "input"}:
                        body[name] = f"{body.get(name, '')}{'' if part is None else written(part)}"
                    elif part:
                        body[name] = part
            elif key not in {"index", "function", "custom"} and value:  # a null or empty value repeats an earlier one
                call[key] = value
        return index


class ResponsesAnswer(StreamedAnswer):
    """An answer of Responses, which the provider sends whole at the end; of a text that is cut, what was sent of it."""

    format = openai_responses.NAME

    def __init__(self) -> None:
        super().__init__()
        self._items: dict[int, Item] = {}

    def _contents(self) -> dict[str, Any]:
        output = self._fields.get("output") or [self._items[index] for index in sorted(self._items)]
        return {"object": "response", "output": output}

    def _add(self, event: Item) -> str:
        kind, response = event.get("type"), event.get("response")
        if isinstance(response, dict):
            self._fields = response
            if kind not in {"response.created", "response.in_progress", "response.queued"}:
                self.finish = str(response.get("status"))
            if response.get("error"):
                self.error = error_text(response["error"])
        elif kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind == "response.output_item.added" and event["item"].get("type") == "message":
            self._items[event["output_index"]] = {**event["item"], "status": "incomplete", "content": []}
        if kind not in {"response.output_text.delta", "response.refusal.delta"}:
            return ""
        begun = self._items.get(event.get("output_index", -1))
        if begun is not None:
            said = "".join(part["text"] for part in begun["content"]) + str(event["delta"])
            begun["content"] = [{"type": "output_text", "text": said, "annotations": []}]
        return str(event["delta"])


class MessagesAnswer(StreamedAnswer):
    """An answer of Anthropic's Messages."""

    format = anthropic.NAME

    def __init__(self) -> None:
        super().__init__()
        self._blocks: dict[int, Item] = {}
        self._inputs: dict[int, str] = {}

    def _contents(self) -> dict[str, Any]:
        inputs = {index: {"input": arguments_as_object(text or "{}")} for index, text in self._inputs.items()}
        content = [{**block, **inputs.get(index, {})} for index, block in self._blocks.items()]
        return {"type": "message", "role": "assistant", "stop_reason": self.finish, "content": content}

    def _add(self, event: Item) -> str:
        match event.get("type"):
            case "message_start":
                self._fields = {**event["message"]}
            case "message_delta":
                delta, counted = event.get("delta") or {}, event.get("usage") or {}
                known = {key: value for key, value in counted.items() if value is not None}
                self._fields |= {**delta, "usage": {**(self.usage or {}), **known}}
                self.finish = delta.get("stop_reason") or self.finish
            case "content_block_start":
                self._blocks[event["index"]] = {**event["content_block"]}
            case "content_block_delta":
                return self._add_delta(event["index"], event["delta"])
        return ""

    def _add_delta(self, index: int, delta: Item) -> str:
        block = self._blocks[index]
        for key, value in delta.items():
            if key == "partial_json":
                self._inputs[index] = self._inputs.get(index, "") + value
            elif key == "citation":
                block["citations"] = [*(block.get("citations") or ()), value]
            elif key != "type" and isinstance(value, str):
                block[key] = (block.get(key) or "") + value
        return str(delta["text"]) if delta.get("type") == "text_delta" else ""


class GeminiAnswer(StreamedAnswer):
    """An answer of Gemini."""

    format = gemini.NAME

    def __init__(self) -> None:
        super().__init__()
        self._candidate: Item = {}
        self._parts: list[Item] = []
        self._calling = False
        """whether the last part is a call whose arguments come piece by piece"""

    def _contents(self) -> dict[str, Any]:
        return {"candidates": [{**self._candidate, "content": {"role": "model", "parts": self._parts}}]}

    def _add(self, event: Item) -> str:
        self._fields |= {key: value for key, value in event.items() if key != "candidates"}
        candidate: Item = next(iter(event.get("candidates") or ()), {})
        self._candidate |= {key: value for key, value in candidate.items() if key != "content"}
        feedback = event.get("promptFeedback") or event.get("prompt_feedback") or {}
        blocked = feedback.get("blockReason") or feedback.get("block_reason")
        ended = "OTHER" if not candidate and self.usage and not self.finish else None  # some end with their usage alone
        self.finish = candidate.get("finishReason") or candidate.get("finish_reason") or blocked or ended or self.finish
        parts = (candidate.get("content") or {}).get("parts") or []
        for part in parts:
            before = self._parts[-1] if self._parts else {}
            call = part.get("functionCall") or {}
            if self._calling or call.get("willContinue"):
                self._add_call(part, call)
            elif part.keys() == before.keys() and {"text"} <= part.keys() <= {"text", "thought"}:
                self._parts[-1] = {**before, "text": before["text"] + part["text"]}
            else:
                self._parts.append(part)
        return "".join(str(part["text"]) for part in parts if part.get("text") and not part.get("thought"))

    def _add_call(self, part: Item, call: Item) -> None:
        """Add *part* with a piece of *call*: its beginning, some of its arguments by their paths, or its end."""
        if not self._calling:
            own = {key: each for key, each in call.items() if key not in {"partialArgs", "willContinue"}}
            self._parts.append({**part, "functionCall": {**own, "args": dict(call.get("args") or {})}})
        for piece in call.get("partialArgs") or ():
            path = [int(key) if key.isdigit() else key for key in _KEYS.findall(piece["jsonPath"])]
            value = next(each for key, each in piece.items() if key.endswith("Value"))
            _put(self._parts[-1]["functionCall"]["args"], path, None if "nullValue" in piece else value)
        self._calling = bool(call.get("willContinue"))


def _merged(before: Any, piece: Any, key: str = "") -> Any:
    """Return *before* with the next *piece* of it: texts grow, and so do objects and lists, these by their indexes."""
    if isinstance(before, str) and isinstance(piece, str) and key not in _WHOLE:
        return before + piece
    if isinstance(before, dict) and isinstance(piece, dict):
        return before | {key: _merged(before.get(key), each, key) for key, each in piece.items() if each is not None}
    if not isinstance(before, list) or not isinstance(piece, list):
        return piece
    made, places = [*before], {each["index"]: at for at, each in enumerate(before) if _is_indexed(each)}
    for each in piece:
        at = places.get(each["index"]) if _is_indexed(each) else None
        if at is None or made[at].get("type") != each.get("type", made[at].get("type")):
            made.append(each)
        else:
            made[at] = _merged(made[at], each)
    return made


def _put(into: Any, path: list[Any], value: object) -> None:
    """Put *value* into the arguments *into* at *path*; a text goes on, and a list grows by one at most."""
    for key, following in pairwise([*path, None]):
        if isinstance(into, list) and key == len(into):
            into.append(None)
        old = into[key] if isinstance(into, list) else into.get(key)
        if following is None:
            into[key] = _merged(old, value)
        elif old is None:
            into[key] = [] if isinstance(following, int) else {}
        into = into[key]


def _is_indexed(value: object) -> bool:
    return isinstance(value, dict) and type(value.get("index")) is int


def error_text(error: object) -> str:
    """Return the provider's *error* as a text."""
    fields = error if isinstance(error, dict) else {"message": getattr(error, "message", error)}
    named = [str(fields[key]) for key in ("code", "type", "message") if fields.get(key) and fields[key] != "error"]
    return ": ".join(named) or "an error without a description"


_ANSWERS: Final = {each.format: each for each in (ChatAnswer, ResponsesAnswer, MessagesAnswer, GeminiAnswer)}


def streamed(format: str) -> StreamedAnswer:  # noqa: A002 -- as in `Context.request`
    """Return an empty answer of *format*, one of `memci.formats.FORMATS`."""
    return _ANSWERS[format]()
