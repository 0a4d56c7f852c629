"""Condensed pages: of a chat with long answers the user's words stay, and go last."""

import json

import pytest

from memci import EphemeralStorage, SQLiteStorage
from tests.invariants import check

from .kit import again, call, calling, opened, result

LONG = "An answer. " * 250


def chat(storage, turns=40, said=20, **given):
    """A chat of short questions and long answers."""
    context = opened(storage, window=16_000, preset="economy", **given)
    for number in range(turns):
        question = f"Question Q{number:03} " + "about it " * said
        context.append_turn(question, {"role": "assistant", "content": f"Reply R{number:03} {LONG}"})
        context.render()
    return context


@pytest.mark.parametrize("kind", ["ram", "sqlite"])
def test_the_users_words_stay_and_the_answers_leave(kind, tmp_path):
    """What was asked stands in the window, answers are recalled and found, and a restart renders the same."""
    storage = EphemeralStorage() if kind == "ram" else SQLiteStorage(tmp_path / "all.db")
    context = chat(storage)

    shown = json.dumps(context.render())
    asked = [number for number in range(40) if f"Q{number:03}" in shown]
    answered = [number for number in range(40) if f"R{number:03}" in shown]

    assert len(asked) > 35
    assert len(answered) < 12
    gone = next(number for number in asked if number not in answered)
    assert context.recall_page(gone + 1)[1]["content"].startswith(f"Reply R{gone:03}")
    found = context.search_memory(f"R{gone:03}").pages
    assert (found[0].index, found[0].entry) == (gone + 1, 2)
    assert not [page for page in context.search_memory(f"Q{gone:03}").pages if page.entry == 1]
    assert context.verify() == []
    check(context._parts.window)
    assert again(storage, preset="economy").render() == context.render()


def test_the_oldest_words_leave_once_they_fill_their_share():
    """Long questions fill their share of the budget: the oldest pages are archived, and listed."""
    context = chat(EphemeralStorage(), turns=80, said=120)

    places = [page.where for page in context.pages()]
    window = context._parts.window
    assert "archived" in places or "folded" in places
    assert window.words - window.active.open.head.tokens <= window.limits.words


def test_long_words_are_clipped_and_recalled_whole():
    """A pasted text above 400 tokens is shown clipped on a condensed page; the store has every byte."""
    context = chat(EphemeralStorage(), turns=4)
    pasted = "Look at this: " + "pasted word " * 400
    context.append_turn(pasted, {"role": "assistant", "content": LONG})
    for number in range(20):
        context.append_turn(f"And {number}?", {"role": "assistant", "content": LONG})
    shown = json.dumps(context.render())

    assert "Look at this" in shown
    assert pasted not in shown
    assert context.recall_page(5)[0]["content"] == pasted


def test_a_kept_prefix_stays_byte_for_byte_when_answers_leave():
    """A compaction that only condenses changes nothing before the first answer that leaves."""
    context = chat(EphemeralStorage(), turns=12)
    for number in range(12, 40):
        before = context.render()
        marked = context._parts.window.stable[0]
        compactions = context.report().compactions
        context.append_turn(f"Question Q{number:03}", {"role": "assistant", "content": LONG})
        after = context.render()
        archived = {page.where for page in context.pages()} & {"archived", "folded"}
        if context.report().compactions > compactions and not archived:
            assert after[: 1 + marked] == before[: 1 + marked]
            assert marked > 1


def test_work_that_leaves_a_condensed_page_is_on_a_line():
    """A task that a later message of the user closed: what its calls did and found is recalled from a line."""
    context = opened(window=6_000, preset="economy", gate=0)
    context.append_turn("Migrate the billing module.")
    for number in range(50):
        if number == 26:
            context.append_turn("And leave src/legacy.py alone.")
        ask = call(f"c{number}", "cat", {"path": f"src/part_{number}.py"})
        context.append_turn(calling(ask), result(f"c{number}", f"import src/part_{number + 1}.py " + "word " * 100))
        context.render()
    shown = [str(message["content"]) for message in context.render()]

    assert "Migrate the billing module." in shown
    assert any("#1 entries 2–53: cat ×26" in text for text in shown)
    assert context.verify() == []
