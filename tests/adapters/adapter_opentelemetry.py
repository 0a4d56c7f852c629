"""Telemetry over OpenTelemetry's own SDK: the spans and metrics that its exporters in memory get."""

import asyncio
import cProfile
import pstats

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased

from memci import AsyncContext, Context, EphemeralStorage
from memci.adapters.opentelemetry import CAPTURE, Telemetry
from memci.errors import InvalidSetting, WriteConflict
from memci.llm import Chat
from memci.testing.llm.server import ModelServer, Status

SECRET = "the password is zebra"


class Seen:
    def __init__(self, sampled=1.0, **given):
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracing = TracerProvider(sampler=TraceIdRatioBased(sampled))
        tracing.add_span_processor(SimpleSpanProcessor(self.exporter))
        metering = MeterProvider(metric_readers=[self.reader])
        self.tracer = tracing.get_tracer("test")
        self.telemetry = Telemetry(tracer_provider=tracing, meter_provider=metering, **given)
        self.telemetry.instrument()

    @property
    def spans(self):
        return self.exporter.get_finished_spans()

    def named(self, name):
        return [span for span in self.spans if span.name == name]

    def counted(self):
        """Return how often each event was counted."""
        return {point.attributes["memci.event"]: point.value for point in self.points("memci.events")}

    def points(self, name):
        """Return the data points of the metric *name*."""
        metrics = self.reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        return next(each for each in metrics if each.name == name).data.data_points


@pytest.fixture
def seen():
    seen = Seen()
    yield seen
    seen.telemetry.uninstrument()


def test_each_call_is_a_span_with_what_happened(seen):
    """Appends, renderings, compactions, searches, recalls, breaks of the cache and erasure, by conversation."""
    heard = []
    with Context.open(EphemeralStorage(), "alice", system="Be brief.", window=2_000, on_event=heard.append) as context:
        context.append_turn("Hello.", {"role": "assistant", "content": "Hello."})
        context.append_turn(SECRET, {"role": "assistant", "content": "Noted."})
        for number in range(12):
            context.append_turn(f"fig{number} " * 60, {"role": "assistant", "content": f"plum{number} " * 60})
            context.render()
        context.flush()
        context.search_memory("password")
        context.recall_page(1)
        call = {"id": "c", "type": "function", "function": {"name": "recall_page", "arguments": '{"index": 1}'}}
        context.answers({"role": "assistant", "content": None, "tool_calls": [call]})
        context.erase(1)
    assert [span.attributes["memci.messages"] for span in seen.named("memci.append")] == [2] * 14
    assert {span.attributes["gen_ai.conversation.id"] for span in seen.spans} == {"alice"}
    renderings = seen.named("memci.render")
    assert all(span.attributes["memci.tokens"] <= span.attributes["memci.budget"] for span in renderings)
    compacted = [span for span in seen.spans if span.attributes.get("gen_ai.conversation.compacted")]
    assert compacted
    assert {event.name for span in compacted for event in span.events} >= {"memci.compaction"}
    (search,), (erasure,) = seen.named("search_memory"), seen.named("delete_memory")
    assert search.attributes["gen_ai.operation.name"] == "search_memory"
    assert search.attributes["gen_ai.memory.record.count"] >= 1
    assert erasure.attributes["gen_ai.operation.name"] == "delete_memory"
    assert seen.named("execute_tool")[0].attributes["gen_ai.tool.name"] == "recall_page"
    counted = seen.counted()
    assert counted["compaction"] == len([each for each in heard if each.kind == "compaction"]) > 0
    assert counted["cache_break"] == len([e for span in renderings for e in span.events if e.name.endswith("break")])
    assert 0 < counted["cache_break"] <= counted["compaction"]
    assert (counted["search"], counted["recall"], counted["erase"]) == (1, 2, 1)


def test_metrics_do_not_depend_on_how_many_traces_are_sampled():
    """Events, calls and sizes of requests are equal with no trace, some and all."""
    found = []
    for sampled in (0.0, 0.1, 1.0):
        seen = Seen(sampled)
        try:
            with Context.open(EphemeralStorage(), "alice", window=2_000, nonce="0123abcd") as context:
                for number in range(12):
                    context.append_turn(f"fig{number} " * 60, {"role": "assistant", "content": f"plum{number} " * 60})
                    context.render()
                context.flush()
                context.search_memory("fig3")
                context.recall_page(1)
        finally:
            seen.telemetry.uninstrument()
        calls = {point.attributes["memci.call"]: point.count for point in seen.points("memci.call.duration")}
        (tokens,) = seen.points("memci.request.tokens")
        found.append((seen.counted(), calls, tokens.count, tokens.sum))
    assert len(seen.spans) > 24
    assert found[0] == found[1] == found[2]
    assert found[0][0].keys() >= {"compaction", "cache_break", "search", "recall"}


def test_buckets_tell_a_quick_call_from_a_slow_one(seen):
    """A quantile of seconds, or of tokens, is no number that a bucket of the wrong size makes up."""
    with Context.open(EphemeralStorage(), "alice", window=2_000) as context:
        context.render("Hi")
    (seconds,) = (each for each in seen.points("memci.call.duration") if each.attributes["memci.call"] == "render")
    (tokens,) = seen.points("memci.request.tokens")

    for point in (seconds, tokens):
        at = next(place for place, count in enumerate(point.bucket_counts) if count)
        assert point.explicit_bounds[at] <= max(0.001, 5 * point.sum)


@pytest.mark.parametrize("content", [False, True])
def test_content_is_emitted_only_where_it_is_asked_for(content, monkeypatch):
    """No text of a message, of a query or of an error is in a span, unless the environment says so."""
    monkeypatch.setenv(CAPTURE, str(content).lower())
    seen = Seen()
    try:
        with Context.open(EphemeralStorage(), "alice", system=SECRET, window=2_000) as context:
            context.append_turn(SECRET)
            context.render()
            context.search_memory(SECRET)
            with pytest.raises(InvalidSetting, match="zebra"):
                context.search_memory(SECRET, k=SECRET)
    finally:
        seen.telemetry.uninstrument()
    emitted = "".join(span.to_json() for span in seen.spans)
    assert ("zebra" in emitted) is content
    assert "error.type" in emitted


def test_a_conflict_is_counted_and_its_span_has_failed(seen):
    """The span says which error it was; the call raises as it did."""
    store = EphemeralStorage()
    with Context.open(store, "alice", window=2_000) as one, Context.open(store, "alice", window=2_000) as other:
        one.append_turn("first")
        with pytest.raises(WriteConflict):
            other.append_turn("second")
    assert seen.spans[-1].attributes["error.type"] == "WriteConflict"
    assert not seen.spans[-1].status.is_ok
    assert seen.counted() == {"conflict": 1}


def test_awaited_calls_are_spans_below_the_callers(seen):
    """The context of OpenTelemetry goes along into the thread."""

    async def steps():
        async with AsyncContext.open(EphemeralStorage(), "alice", window=2_000) as context:
            with seen.tracer.start_as_current_span("agent"):
                await context.append_turn("hello")
                await context.render()

    asyncio.run(steps())
    (agent,) = seen.named("agent")
    below = [span.name for span in seen.spans if span.parent and span.parent.span_id == agent.context.span_id]
    assert below == ["memci.append", "memci.render"]


def test_a_call_of_the_memorys_model_is_a_span(seen):
    """With its tokens, its step and its error; of the right length."""
    with ModelServer(["Hello."]) as server:
        chat = Chat("gpt-4o", base_url=server.base_url, api_key="key", on_call=seen.telemetry.on_call)
        chat([{"role": "user", "content": "Hi"}], step="title")
        server.fails(Status(400))
        with pytest.raises(Exception, match="400"):
            chat([{"role": "user", "content": "Hi"}], step="title")
    good, bad = seen.named("chat gpt-4o")
    assert good.attributes["memci.step"] == "title"
    assert good.attributes["gen_ai.usage.input_tokens"] > 0
    assert good.end_time > good.start_time
    assert bad.attributes["error.type"]


def calls_of_a_turn():
    """Return how many functions a turn calls."""
    with Context.open(EphemeralStorage(), "alice", window=8_000) as context:
        context.append_turn("warm", {"role": "assistant", "content": "up"})
        profile = cProfile.Profile()
        profile.enable()
        context.append_turn("hello", {"role": "assistant", "content": "there"})
        context.render()
        profile.disable()
    return pstats.Stats(profile).total_calls


def test_it_costs_nothing_until_it_is_on_and_nothing_after():
    """Not one function call more: the methods are the context's own again."""
    calls_of_a_turn()  # what a process does once
    before = calls_of_a_turn()
    seen = Seen()
    on = calls_of_a_turn()
    seen.telemetry.uninstrument()
    assert calls_of_a_turn() == before < on


def test_events_are_heard_by_who_heard_them(seen):
    """A function that is set later takes its turn; instrumenting twice is once."""
    seen.telemetry.instrument()
    heard = []
    with Context.open(EphemeralStorage(), "alice", window=2_000) as context:
        context.on_event = heard.append
        for number in range(12):
            context.append_turn(f"fig{number} " * 120)
        context.render()
    assert [each.kind for each in heard].count("compaction") == seen.counted()["compaction"]
    assert len(seen.named("memci.append")) == 12
