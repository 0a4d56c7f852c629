"""Presets and unload rules."""

import pytest

from memci.history.events import Event

from .kit import opened, talked, turn, where


def test_original_preset_archives_one_page_a_turn():
    """n = 5: from the sixth closed page on, each turn archives exactly the oldest one."""
    events: list[Event] = []
    context = opened(preset="original", window=32_000, on_event=events.append)
    archived = []
    for number in range(1, 15):
        events.clear()
        context.append_turn(*turn(number))
        archived.append([event.pages for event in events if event.kind == "compaction"])

    assert archived == [[]] * 6 + [[(number,)] for number in range(1, 9)]
    assert context._parts.window.settings.contents_tokens == 2_000


def test_original_preset_unloads_after_m_and_p_turns():
    """m = 10: a page that nobody recalled is listed for ten turns; p = 20: one that was recalled, for twenty more."""
    context = opened(preset="original", window=32_000)
    for number in range(1, 8):
        context.append_turn(*turn(number))
    context.recall_page(1)
    archived = {page.index: context.report().turn for page in context.pages() if page.where == "archived"}
    left: dict[int, int] = {}
    for number in range(8, 45):
        context.append_turn(*turn(number))
        now = context.report().turn
        for page in context.pages():
            if page.where in {"archived", "folded"}:
                archived.setdefault(page.index, now)
            if page.where == "unloaded":
                left.setdefault(page.index, now)

    assert archived[1] == 6
    assert left[1] == 6 + 20
    assert [left[index] - archived[index] for index in range(2, 20)] == [10] * 18


def test_rules_of_ones_own_take_the_place_of_the_two():
    """Any function of pages and turn is a rule; the settings' rules are not asked then."""
    asked = []

    def even(pages, turn):
        pages = list(pages)
        asked.append(turn)
        return [page.index for page in pages if page.index % 2 == 0]

    context = talked(6, rules=[even], never_recalled=1)
    context.archive(keep=0)
    context.append_turn("x")
    context.archive(keep=0)

    assert asked == [5, 6]
    assert where(context) == {
        1: "archived",
        2: "unloaded",
        3: "archived",
        4: "unloaded",
        5: "archived",
        6: "archived",
        7: "open",
    }


def test_rule_that_names_pages_that_are_not_listed_does_no_harm():
    """A rule can unload what is listed, nothing else."""
    context = talked(4, rules=[lambda pages, turn: [1, 4, 99]])
    context.archive(keep=0)
    context.append_turn("x")

    context.archive(keep=0)

    assert where(context) == {1: "unloaded", 2: "archived", 3: "archived", 4: "archived", 5: "open"}
    context._parts.window._check()


def test_compaction_that_fails_after_an_append_is_told_by_the_next_rendering():
    """What was appended is stored, so the append does not raise; the compaction is tried again where nothing is
    lost."""
    broken = [True]

    def rule(pages, turn):
        if broken[0]:
            raise RuntimeError("the rule is broken")
        return []

    context = opened(rules=[rule], active_pages=1)
    for number in range(3):
        receipt = context.append_turn(*turn(number))
        assert receipt.page == number + 1

    with pytest.raises(RuntimeError, match="broken"):
        context.render()

    broken[0] = False
    assert context.render()[1]["content"].startswith("<memci:contents ")
    assert context.report().messages == 6
