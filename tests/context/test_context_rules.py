"""Presets and unload rules."""

from datetime import UTC, datetime

import pytest

from memci import NeverRecalled
from memci.history.events import Event
from memci.window import snapshot
from memci.window.stored import checked_snapshot
from tests.invariants import check

from .kit import opened, talked, turn, where

pytestmark = pytest.mark.usefixtures("no_memory")


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


def lines_of(context):
    """Return the lines of each listed page, entries included, by index."""
    found, index = {}, 0
    for row in "\n".join(block["content"] for block in context._parts.window.common.archive.view).split("\n"):
        index = int(row[1:].split(maxsplit=1)[0]) if row[:1] == "#" else index
        if row[:1] in {"#", " "}:
            found.setdefault(index, []).append(row)
    return found


def test_original_preset_lists_every_entry_of_every_page():
    """Acknowledgements too, each page with a line of its own, and how often it was recalled."""
    context = opened(preset="original", window=32_000)
    for number in range(1, 13):
        thanks = ("Thanks!", {"role": "assistant", "content": "Welcome."})
        context.append_turn(*(thanks if number % 3 == 0 else turn(number)))

    shown = lines_of(context)

    assert list(shown) == [1, 2, 3, 4, 5, 6]
    assert shown[3][1:] == ["  1 user: Thanks!", "  2 assistant: Welcome."]
    assert all(len(rows) == 3 and rows[0].endswith("(never recalled)") for rows in shown.values())


def test_line_of_the_original_preset_changes_only_when_its_page_was_recalled():
    """Whatever leaves or joins the Contents Page beside it; a recall counts at the next compaction."""
    context, before = opened(preset="original", window=32_000), {}
    for number in range(1, 40):
        at = datetime(2026, 3, 1 + number // 3, tzinfo=UTC)
        context.append_turn(*turn(number), at=at)
        now = lines_of(context)
        changed = {index for index in before.keys() & now.keys() if before[index] != now[index]}
        assert changed == ({4} if number in {12, 21} else set())
        before = now
        if number in {11, 20}:
            context.recall_page(4)
        if number == 39:
            assert "(recalled 2 times, last in turn 19)" in now[4][0]


def test_original_preset_unloads_what_was_used_longest_ago_when_the_page_is_full():
    """MaxToken: no line folds; a page that was recalled stays longer than others of its age."""
    events: list[Event] = []
    context = opened(preset="original", window=32_000, contents_tokens=120, on_event=events.append)
    for number in range(1, 16):
        context.append_turn(*turn(number))
        if number == 14:
            context.recall_page(1)

    shown = lines_of(context)
    full = [event for event in events if event.kind == "unload"]

    assert 1 in shown
    assert 2 not in shown
    assert not context._parts.window.contents.ranges
    assert all(event.reason.startswith("OverCeiling(") for event in full)
    assert {index for event in full for index in event.pages} - {1} == set(range(1, 10)) - shown.keys()
    check(context._parts.window)


def test_page_of_the_original_preset_that_is_too_large_for_the_contents_lists_its_first_entries():
    context = opened(preset="original", window=32_000, contents_tokens=300)
    said = [
        {"role": "assistant", "content": f"Step {at} of the plan: paint the {at} doors of the barn."}
        for at in range(18)
    ]
    context.append_turn("Make a plan.", *said)
    for number in range(2, 9):
        context.append_turn(*turn(number))
    context.recall_page(1)
    context.append_turn(*turn(9))

    rows = lines_of(context)[1]

    assert 2 <= len(rows) <= 18
    assert rows[1] == "  1 user: Make a plan."
    assert context._parts.window.contents.tokens <= 300


def test_unload_says_which_rule_named_the_pages():
    """One event for each rule; a rule of one's own has its name; the compaction stores it."""
    events: list[Event] = []

    def even(pages, turn):
        return [page.index for page in pages if page.index % 2 == 0]

    context = talked(4, rules=[NeverRecalled(1), even], on_event=events.append)
    context.archive(keep=0)
    context.recall_page(2)
    context.append_turn("x")
    context.archive(keep=0)

    told = [(event.pages, event.reason) for event in events if event.kind == "unload"]

    assert told == [
        ((1, 3), "NeverRecalled(1): no recall within 1 turns after it left the window"),
        ((2,), "even"),
    ]
    row = next(context._storage.compactions("alice"))
    assert {
        rule: tuple(pages) for rule, pages in snapshot.loads(row, context._parts.window.record).unloaded.items()
    } == {reason: pages for pages, reason in told}
    checked_snapshot(row, context._parts.window.record)


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
    check(context._parts.window)


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
