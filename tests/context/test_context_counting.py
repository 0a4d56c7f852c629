"""Counting: ratios, tools, the report."""

import types

import pytest

from memci import Context, EphemeralStorage
from memci.errors import InvalidSetting

from .kit import OWN_TOOL, opened, talked, turn, where

pytestmark = pytest.mark.usefixtures("no_memory")


def usage_of(context: Context, factor: float) -> None:
    context.render("next")
    predicted = context.report().total + 4 + 1
    context.append_turn(
        "next", {"role": "assistant", "content": "ok"}, usage={"prompt_tokens": round(predicted * factor)}
    )


def test_ratio_is_the_median_of_what_was_reported():
    """One outlier does not change the count: the median of the last requests does."""
    context = opened()
    for factor in (1.1, 1.1, 9.0, 1.1, 0.2):
        usage_of(context, factor)

    assert context.report().ratio == pytest.approx(1.1, abs=0.02)


@pytest.mark.parametrize(("factor", "ratio"), [(0.5, 1.0), (1.0, 1.0), (1.2, 1.2), (3.0, 1.3)])
def test_ratio_is_clamped(factor, ratio):
    """The count is never lowered, and never raised by more than 1.3 for a report alone."""
    context = opened()
    for _ in range(3):
        usage_of(context, factor)

    report = context.report()
    assert report.ratio == pytest.approx(ratio, abs=0.03)
    assert report.budget == pytest.approx(3_500 / ratio, rel=0.03)
    assert any("tools" in each for each in report.warnings) == (factor == 3.0)


def test_ratio_forgets_after_eight_requests():
    """Only the last eight reports count."""
    context = opened()
    for factor in [1.25] * 8 + [1.0] * 8:
        usage_of(context, factor)

    assert context.report().ratio == pytest.approx(1.0, abs=0.01)


def test_ratio_is_stored_with_the_context():
    """A context that is opened again counts as it did, also if the last usage came without messages."""
    storage = EphemeralStorage()
    context = opened(storage)
    usage_of(context, 1.2)
    context.append_turn(usage=types.SimpleNamespace(prompt_tokens=9_999))
    before = context.report()

    after = opened(storage).report()

    assert (after.ratio, after.budget) == (before.ratio, before.budget)
    assert before.ratio > 1.1


@pytest.mark.parametrize("usage", [{}, {"total_tokens": 5}, {"prompt_tokens": "5"}, {"prompt_tokens": -1}, 5, "x"])
def test_usage_that_says_nothing_is_refused(usage):
    """A usage without prompt tokens is a mistake of the caller's, and nothing is stored."""
    context = opened()
    context.render("a")

    with pytest.raises(InvalidSetting, match="usage"):
        context.append_turn("a", usage=usage)

    assert context.report().messages == 0


def test_context_tools_count_once():
    """Whether the context's own tools are passed to render or not, they cost the same."""
    context = talked(1)
    context.render(tools=[OWN_TOOL])
    without = context.report().tokens["tools"]

    context.render(tools=[OWN_TOOL, *context.tools])

    assert context.report().tokens["tools"] == without > 0


def test_report_adds_up():
    """The parts are the total, every page is in one place, every message was counted."""
    context = opened(window=1_200, never_recalled=8)
    for number in range(40):
        context.append_turn(*turn(number, 25))
    context.undo()
    context.append_turn("open")
    context.render()

    report = context.report()

    assert sum(report.tokens.values()) == report.total <= report.budget
    assert sum(report.pages.values()) == 41 == len(list(context.pages()))
    places = list(where(context).values())
    assert report.pages == {place: places.count(place) for place in report.pages}
    assert set(places) <= set(report.pages)
    assert report.pages["unloaded"] > 0
    assert (report.messages, report.turn, report.window) == (81, 39, 1_200)
    assert report.compactions > 0
    assert 0.0 <= report.cached <= 1.0
    assert not report.exact or report.counter.startswith("custom")


def test_report_tells_what_a_cache_keeps():
    """Between two compactions all of a rendering is the prefix of the next; a compaction keeps less of it."""
    context = talked(4, size=30)
    context.render()
    context.append_turn(*turn(5))
    context.render()
    kept = context.report().cached_last
    context.archive(keep=0)
    context.render()

    assert kept > 0.8
    assert context.report().cached_last < kept


def test_images_are_counted_anew_for_another_model_with_the_same_vocabulary():
    """What an image costs depends on the model, not on its vocabulary; the new count is stored."""
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    storage = EphemeralStorage()
    first = opened(storage, window=100_000, model="gpt-4o", counter=None)
    first.append_turn({"role": "user", "content": [image]})

    other = opened(storage, window=None, model="gpt-4o-mini", counter=None)
    tokens = other.report().tokens["open"]
    other.append_turn("Hello")

    assert first.report().tokens["open"] == 8 * 170 + 85 + 4
    assert tokens == 8 * 5667 + 2833 + 4
    assert opened(storage, window=None, counter=None).report().tokens == other.report().tokens


def test_answer_without_calls_counts_as_it_is_sent():
    """An empty list of calls is stored, but neither sent nor counted: an import counts what the append counted."""
    with Context.open(EphemeralStorage(), "alice", window=4_000) as context:
        context.append_turn("next", {"role": "assistant", "content": "ok", "tool_calls": None})
        lines = list(context.export())

    assert list(Context.import_(EphemeralStorage(), lines).export()) == lines
