r"""The toolbox: the tools that the model may call during an answer, the caller's and the context's own.

    {"id": "c1", "function": {"name": "weather", "arguments": "{\"city\": \"Oslo\"}"}}
        ──▶ functions["weather"](city="Oslo")  ──▶  {"role": "tool", "tool_call_id": "c1", "content": "12 °C"}
    {"id": "c2", "function": {"name": "recall_page", …}}  ──▶  the context answers

An error in a tool becomes the result of the tool, so that the model can correct its call. This module knows nothing of
models.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..context.context import Context
from ..errors import AnswerRejected, InvalidMessage, InvalidSetting, LimitExceeded, brief
from ..messages import Message, arguments_of, call_body, call_name, calls_of, check, tool_calls
from ..storage.codec import encode
from ..text.sanitize import quoted

Function = Callable[..., object]

LONGEST_RESULT = 1_000_000
"""characters of a tool's result; a longer one is cut and ends in a note that says so"""
STOPPED_CALL = "error: the user stopped the answer before this call had a result"


class Toolbox:
    """The tools of one companion: schemas and functions by their names, and the tools of the context.

    *watch* is called with each call and its result.
    """

    def __init__(
        self,
        context: Context,
        tools: Sequence[Message],
        functions: Mapping[str, Function],
        watch: Callable[[Message, Message], None] | None = None,
    ) -> None:
        for tool in tools:
            name = call_name(tool) if isinstance(tool, dict) else ""
            if not name:
                raise InvalidSetting("tools", f"expected the schemas of functions in OpenAI's form, got {brief(tool)}")
            if context.handles(tool):
                raise InvalidSetting("tools", f"{name!r} is a tool of the context: leave it out, or rename yours")
            if not callable(functions.get(name)):
                raise InvalidSetting("functions", f"{name!r} has a schema and no function: functions={{{name!r}: …}}")
        self._context = context
        self._functions = dict(functions)
        self.own = list(tools)
        """the caller's schemas"""
        self._watch = watch

    @property
    def schemas(self) -> list[Message]:
        """The schemas that are sent with a request; constant bytes."""
        return [*self.own, *self._context.tools]

    def acts(self, message: Message) -> bool:
        """Return whether *message* calls a function of the caller's, which may have effects."""
        return any(call_name(call) in self._functions for call in tool_calls(message))

    def answers(self, message: Message) -> Iterator[Message]:
        """Yield a tool message for each call of *message*, in their order."""
        own = iter(self._context.answers(message))
        for call in tool_calls(message):
            if self._context.handles(call):
                result = next(own)
            else:
                result = {"role": "tool", "tool_call_id": call["id"], "content": self._called(call)}
            yield result
            if self._watch is not None:
                self._watch(call, result)

    def _called(self, call: Message) -> str:
        name = call_name(call)
        function = self._functions.get(name)
        if function is None:
            known = ", ".join(map(call_name, self.schemas)) or "none"
            return f"error: there is no tool {quoted(name[:60])}; there are: {known}"
        try:
            given = _arguments(call)
        except ValueError as error:
            return f"error: {error}: call {name} again with a JSON object"
        try:
            return _text(function(**given) if isinstance(given, dict) else function(given))
        except Exception as error:  # noqa: BLE001 -- an error that a tool raises is its result
            return f"error: {type(error).__name__}: {error}"[:2_000].encode("utf-8", "backslashreplace").decode()


def tidy(message: Message) -> Message:
    """Return a model's *message* ready to be appended: role "assistant", and each call with its own id."""
    tidied = {**message, "role": "assistant"}
    try:
        calls = calls_of(message)
        if calls:
            tidied["tool_calls"] = _named(calls)
        else:
            tidied.pop("tool_calls", None)
        check(tidied)
        encode(tidied)
    except (InvalidMessage, LimitExceeded) as error:
        raise AnswerRejected("chat", f"the message of the answer is none that a context accepts: {error}") from error
    return tidied


def _named(calls: Sequence[Message]) -> list[Message]:
    seen: set[str] = set()
    named = []
    for position, call in enumerate(calls, 1):
        id_ = call.get("id")
        if not isinstance(id_, str) or not id_ or id_ in seen:
            id_ = f"call-{position}"
            while id_ in seen:
                id_ += "."
        seen.add(id_)
        named.append(call if call.get("id") == id_ else {**call, "id": id_})
    return named


def unanswered(messages: Sequence[Message]) -> list[Message]:
    """Return results for the calls at the end of *messages* that have none, because the answer was stopped."""
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool" and message["tool_call_id"] in waiting:
            waiting.remove(message["tool_call_id"])
        elif message["role"] != "tool":
            waiting = [call["id"] for call in tool_calls(message)]
    return [{"role": "tool", "tool_call_id": id_, "content": STOPPED_CALL} for id_ in waiting]


def _text(result: object) -> str:
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) > LONGEST_RESULT:
        return f"{text[:LONGEST_RESULT]}\n[cut: the result has {len(text):,} characters]"
    return text


def _arguments(call: Message) -> dict[str, object] | str:
    """Return the arguments of *call*: those of a function, or the text of a custom tool."""
    if "custom" in call:
        return str(call_body(call).get("input", ""))
    return arguments_of(call_body(call).get("arguments") or "{}")
