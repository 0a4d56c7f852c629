"""OpenTelemetry: spans and metrics of every context in the process, after the semantic conventions of generative AI.

    telemetry = Telemetry()          # your tracer and meter provider, as they are set
    telemetry.instrument()           # from here on, also in adapters, in the gateway and in AsyncContext
    Chat("gpt-4o-mini", on_call=telemetry.on_call)      # the calls of the memory's model

    memci.append                     gen_ai.conversation.id=alice, memci.messages=2
    └ memci.compaction               an event: memci.pages=[4, 5, 6], memci.tokens=3870
    search_memory                    gen_ai.operation.name=search_memory, gen_ai.memory.record.count=5

Until then nothing is called. No text of a message or a query is emitted unless *content* is on.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial, wraps
from time import perf_counter, time_ns
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from .. import formats
from ..context.context import Context
from ..errors import StorageBusy, WriteConflict
from ..history.events import Event
from ..llm.model import Call
from ..messages import call_name

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""the variable that turns content on, as in other instrumentations"""
SPANS: Mapping[str, tuple[str, str]] = {
    "open": ("memci.open", ""),
    "append_turn": ("memci.append", ""),
    "sync": ("memci.sync", ""),
    "render": ("memci.render", ""),
    "request": ("memci.render", ""),
    "recall_page": ("memci.recall", ""),
    "search_memory": ("search_memory", "search_memory"),
    "answer": ("execute_tool", "execute_tool"),
    "answers": ("execute_tool", "execute_tool"),
    "archive": ("memci.archive", ""),
    "undo": ("memci.undo", ""),
    "pop": ("memci.undo", ""),
    "fork": ("memci.fork", ""),
    "erase": ("delete_memory", "delete_memory"),
    "refresh": ("memci.refresh", ""),
    "flush": ("memci.flush", ""),
    "end_session": ("memci.end_session", ""),
}
"""the span of each method of a context, and its operation, where the conventions have one"""
_ENDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 30), tuple(4**each for each in range(11))
"""ends of buckets: in seconds, from a call in RAM to one that waits for a lock; in tokens, as the conventions say"""
_COUNTED = {"recall_page": "recall", "search_memory": "search", "erase": "erase"}


class Telemetry:
    """Emits spans and metrics of all contexts; one for the process."""

    def __init__(self, *, tracer_provider: Any = None, meter_provider: Any = None, content: bool | None = None) -> None:
        """Prepare the spans and metrics; `instrument` starts them.

        Args:
            tracer_provider: Default: the one that is set.
            meter_provider: Default: the one that is set.
            content: Whether queries are emitted; default: as the environment variable `CAPTURE` says.
        """
        self.content = os.environ.get(CAPTURE, "").lower() == "true" if content is None else content
        self._tracer = trace.get_tracer("memci", tracer_provider=tracer_provider)
        meter = metrics.get_meter("memci", meter_provider=meter_provider)
        seconds, tokens = (partial(meter.create_histogram, explicit_bucket_boundaries_advisory=each) for each in _ENDS)
        self._seconds = seconds("memci.call.duration", "s", "of a call of a context")
        self._tokens = tokens("memci.request.tokens", "{token}", "of a rendering, as counted")
        self._used = tokens("gen_ai.client.token.usage", "{token}", "of a call of the memory's model")
        self._events = meter.create_counter("memci.events", "{event}", "what happened to windows, by memci.event")
        self._methods: dict[str, Any] = {}
        self._shown: WeakKeyDictionary[Context, float] = WeakKeyDictionary()
        """tokens of each context's last rendering"""

    def instrument(self) -> None:
        """Start emitting. A second call does nothing."""
        for name in () if self._methods else SPANS:
            self._methods[name] = vars(Context)[name]
            setattr(Context, name, self._trace(name, self._methods[name]))

    def uninstrument(self) -> None:
        """Stop emitting."""
        while self._methods:
            setattr(Context, *self._methods.popitem())

    def on_call(self, call: Call) -> None:
        """Emit a span for *call*, which `memci.llm.Chat` reports."""
        usage = {"input": call.usage.prompt, "output": call.usage.completion}
        about = {"gen_ai.operation.name": "chat", "gen_ai.request.model": call.model, "memci.step": call.step}
        counts = {f"gen_ai.usage.{kind}_tokens": number for kind, number in usage.items()}
        counts["gen_ai.usage.cache_read.input_tokens"] = call.usage.cached
        ended = {"gen_ai.response.finish_reasons": [call.finish]} if call.finish else {}
        span = self._tracer.start_span(
            f"chat {call.model}",
            kind=SpanKind.CLIENT,
            start_time=time_ns() - int(call.seconds * 1e9),
            attributes={**about, **counts, **ended},
        )
        if call.error is not None:
            span.set_attribute("error.type", call.error)
            span.set_status(Status(StatusCode.ERROR))
        span.end()
        for kind, number in usage.items():
            self._used.record(number, {**about, "gen_ai.token.type": kind})

    def _trace(self, name: str, method: Any) -> Any:
        title, operation = SPANS[name]
        opens = isinstance(method, classmethod)
        call: Callable[..., Any] = method.__func__ if opens else method

        @wraps(call)
        def traced(self_or_class: Any, *arguments: Any, **named: Any) -> Any:
            if not opens:
                self._watch(self_or_class)
            begun = perf_counter()
            about = {"memci.call": name} | ({"gen_ai.operation.name": operation} if operation else {})
            with self._tracer.start_as_current_span(
                title, attributes=about, record_exception=self.content, set_status_on_exception=False
            ) as span:
                try:
                    result = call(self_or_class, *arguments, **named)
                except Exception as error:
                    about["error.type"] = type(error).__name__
                    span.set_attribute("error.type", about["error.type"])
                    span.set_status(Status(StatusCode.ERROR))
                    if isinstance(error, WriteConflict | StorageBusy):
                        self._emit("conflict" if isinstance(error, WriteConflict) else "lock")
                    raise
                else:
                    context = result if name in {"open", "fork"} else self_or_class
                    span.set_attributes(self._count(name, context, arguments, named, result))
                    return result
                finally:
                    self._seconds.record(perf_counter() - begun, about)

        return classmethod(traced) if opens else traced

    def _count(self, name: str, context: Context, arguments: Any, named: Any, result: Any) -> dict[str, Any]:
        """Count a successful call, whether or not its span is sampled, and return the attributes of the span.

        O(messages in the window) after a rendering.
        """
        self._watch(context)
        facts: dict[str, Any] = {"gen_ai.conversation.id": context.id}
        if name in _COUNTED:
            self._emit(_COUNTED[name])
        if name == "append_turn":
            facts |= {"memci.messages": len(result.entries), "memci.page": result.page}
        elif name in {"render", "request"}:
            report = context.report()
            kept, before = report.cached_last * report.total, self._shown.get(context, 0.0)
            self._shown[context] = report.total
            self._tokens.record(report.total)
            if kept < before * 0.99:
                self._emit("cache_break", {"memci.tokens": int(before - kept)})
            facts |= {"memci.tokens": report.total, "memci.budget": report.budget, "memci.cached": report.cached_last}
        elif name == "search_memory":
            facts["gen_ai.memory.record.count"] = len(result.pages)
            if self.content:
                facts["gen_ai.memory.query.text"] = arguments[0] if arguments else named["query"]
        elif name in {"answer", "answers"}:
            _, calls = formats.calls(arguments[0], context.format)
            tools = [call_name(call) for call in calls if context.handles(call)]
            facts["gen_ai.tool.name"] = ", ".join(tools)
            for tool in tools:
                self._emit(tool.partition("_")[0])
        return facts

    def _watch(self, context: Context) -> None:
        """Listen to the events of *context*, before its own listener."""
        if not isinstance(context.on_event, _Listener):
            context.on_event = _Listener(self, context.on_event)

    def _emit(self, kind: str, facts: Mapping[str, Any] | None = None) -> None:
        if self._methods:
            trace.get_current_span().add_event(f"memci.{kind}", {**(facts or {})})
            self._events.add(1, {"memci.event": kind})


class _Listener:
    def __init__(self, telemetry: Telemetry, given: Callable[[Event], None] | None) -> None:
        self._telemetry, self._given = telemetry, given

    def __call__(self, event: Event) -> None:
        facts = {"memci.pages": event.pages, "memci.tokens": event.tokens, "memci.reason": event.reason}
        if event.kind == "compaction":
            trace.get_current_span().set_attribute("gen_ai.conversation.compacted", value=True)
        self._telemetry._emit(event.kind, facts)
        if self._given is not None:
            self._given(event)
