"""Events: what a context tells while it works."""

import pytest

from memci.history.events import Event
from tests.invariants import check

from .kit import opened, talked, where

pytestmark = pytest.mark.usefixtures("no_memory")


def test_events_tell_of_compactions_unloads_and_clips():
    """What happens to the window is told after it was committed, with the pages it happened to."""
    events: list[Event] = []
    context = opened(on_event=events.append, window=1_000, never_recalled=1)
    context.append_turn("task", {"role": "assistant", "content": "word " * 900}, "more")
    context.archive(keep=0)
    context.append_turn("and more")
    context.archive(keep=0)

    kinds = [(event.kind, event.pages) for event in events]

    assert kinds[0] == ("clip", (1,))
    assert ("compaction", (1,)) in kinds
    assert ("unload", (1,)) in kinds
    assert all(event.context == "alice" and event.tokens > 0 for event in events)


def test_event_of_a_pinned_page_that_comes_back_is_no_unload():
    """A page that returns to the window in a compaction was not unloaded by it."""
    events: list[Event] = []
    context = talked(4, on_event=events.append, never_recalled=1)
    context.archive(keep=0)
    context.append_turn("x")
    context.pin(2)
    events.clear()

    context.archive()

    [unload] = [event for event in events if event.kind == "unload"]
    assert unload.pages == (1, 3)
    assert where(context)[2] == "active"


def test_error_in_an_event_reaches_the_caller_after_the_commit():
    """A listener that raises does not undo what happened."""

    def listener(_: Event) -> None:
        raise RuntimeError("listener")

    context = talked(3, on_event=None)
    context.on_event = listener

    with pytest.raises(RuntimeError, match="listener"):
        context.archive(keep=0)

    assert where(context)[1] == "archived"
    check(context._parts.window)


def test_listener_may_call_the_context():
    """A listener that asks for a report does not wait for ever."""
    context = talked(3)
    totals = []
    context.on_event = lambda _: totals.append(context.report().total)

    context.archive(keep=0)

    assert totals == [context.report().total]
