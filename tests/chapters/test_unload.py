"""The unload rules: pure functions, each one exactly what it says."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memci import Context, EphemeralStorage, Policy
from memci.chapters.folding import OverCeiling, last_used
from memci.chapters.unload import NeverRecalled, Stale
from memci.rows import PageRow, PageState

TURN = 50

shared = settings(suppress_health_check=[HealthCheck.differing_executors], max_examples=40, deadline=None)
"""for tests that several classes inherit"""


@st.composite
def rows(draw) -> list[PageRow]:
    pages = []
    for index in draw(st.sets(st.integers(1, 60), max_size=12)):
        archived = draw(st.integers(0, TURN))
        recalls = draw(st.integers(0, 3))
        last = draw(st.integers(archived, TURN)) if recalls else None
        pages.append(
            PageRow(
                index,
                index * 2,
                index * 2 + 2,
                min(index, archived),
                PageState.ARCHIVED,
                archived_turn=archived,
                recall_count=recalls,
                last_recalled_turn=last,
            )
        )
    return draw(st.permutations(pages))


def page(index: int, archived: int, recalls: int = 0, last: int | None = None) -> PageRow:
    return PageRow(
        index, 0, 1, 0, PageState.ARCHIVED, archived_turn=archived, recall_count=recalls, last_recalled_turn=last
    )


class UnloadRuleConformance:
    """What every rule promises: a function of pages and turn, nothing else."""

    rule = None

    @shared
    @given(rows(), st.integers(0, 2 * TURN))
    def test_rule_chooses_among_the_pages_that_it_is_asked_about(self, pages, turn):
        """The answer names archived pages only, each once."""
        chosen = list(type(self).rule(pages, turn))

        assert set(chosen) <= {each.index for each in pages}
        assert len(set(chosen)) == len(chosen)

    @shared
    @given(rows(), st.integers(0, 2 * TURN))
    def test_rule_is_pure_and_deterministic(self, pages, turn):
        """Asked twice it answers the same, in whatever order the pages come, and changes nothing."""
        before = list(pages)
        rule = type(self).rule

        first, again, backwards = rule(pages, turn), rule(pages, turn), rule(pages[::-1], turn)

        assert list(first) == list(again)
        assert set(first) == set(backwards)
        assert pages == before

    @shared
    @given(rows(), st.integers(0, 2 * TURN))
    def test_rule_takes_any_iterable(self, pages, turn):
        """A dict's values do as well as a list."""
        rule = type(self).rule

        assert set(rule({each.index: each for each in pages}.values(), turn)) == set(rule(pages, turn))

    @shared
    @given(rows(), st.integers(0, TURN), st.integers(0, TURN))
    def test_rule_only_chooses_more_as_turns_pass(self, pages, turn, later):
        """A page that is due stays due until it is recalled."""
        rule = type(self).rule

        assert set(rule(pages, turn)) <= set(rule(pages, turn + later))

    def test_rule_of_no_pages_chooses_none(self):
        """Nothing archived, nothing to unload."""
        assert list(type(self).rule([], TURN)) == []

    def test_window_respects_pins_against_the_rule(self):
        """A page that is pinned stays in the window, whatever the rule says of it."""
        context = Context.open(
            EphemeralStorage(), id="a", window=4_000, policy=Policy(rules=[type(self).rule]), nonce="00000000"
        )
        for number in range(8):
            context.append_turn(f"question {number}", {"role": "assistant", "content": f"answer {number}"})
        context.pin(2)
        for number in range(TURN):
            context.archive(keep=0)
            context.append_turn(f"more {number}", {"role": "assistant", "content": "fine"})

        context.archive(keep=0)

        where = {each.index: each.where for each in context.pages()}
        assert where[2] == "active"
        assert [each["content"] for each in context.render() if each["content"].startswith("question")] == [
            "question 1"
        ]
        assert where[8] == "unloaded", "the rule was asked, or the pin proves nothing"


class TestNeverRecalled(UnloadRuleConformance):
    rule = NeverRecalled(10)


class TestStale(UnloadRuleConformance):
    rule = Stale(20)

    def test_window_respects_pins_against_the_rule(self):
        """A page that was recalled and pinned stays; one that was recalled once leaves after p turns."""
        context = Context.open(
            EphemeralStorage(), id="a", window=4_000, policy=Policy(rules=[type(self).rule]), nonce="00000000"
        )
        for number in range(4):
            context.append_turn(f"question {number}", {"role": "assistant", "content": f"answer {number}"})
        context.archive(keep=0)
        for index in (1, 2):
            context.recall_page(index)
        context.pin(2)
        for number in range(25):
            context.append_turn(f"more {number}", {"role": "assistant", "content": "fine"})

        context.archive(keep=0)

        where = {each.index: each.where for each in context.pages()}
        assert (where[1], where[2]) == ("unloaded", "active")
        assert where[3] in {"archived", "folded"}


def everything(pages, turn):
    """A rule of one's own."""
    return [each.index for each in pages if turn - (each.archived_turn or 0) >= 1]


class TestRuleOfOnesOwn(UnloadRuleConformance):
    rule = staticmethod(everything)


@pytest.mark.parametrize(("turn", "due"), [(13, False), (14, False), (15, True), (99, True)])
def test_never_recalled_is_due_after_exactly_m_turns(turn, due):
    """Rule m fires when m turns have passed since archiving, not one earlier."""
    assert NeverRecalled(10)([page(1, archived=5)], turn) == ([1] if due else [])


def test_never_recalled_spares_what_was_recalled():
    """One recall is enough to leave rule m for good."""
    assert NeverRecalled(10)([page(1, 0, recalls=1, last=0), page(2, 0)], 99) == [2]


@pytest.mark.parametrize(("turn", "due"), [(25, False), (26, True)])
def test_stale_counts_from_the_last_recall(turn, due):
    """Rule p counts turns since the last recall, not since archiving."""
    assert Stale(20)([page(1, archived=0, recalls=3, last=6)], turn) == ([1] if due else [])


def test_stale_spares_what_was_never_recalled():
    """What nobody recalled is rule m's business."""
    assert Stale(20)([page(1, archived=0)], 99) == []


def test_over_ceiling_unloads_the_least_recently_used_first():
    """The last recall counts, else the archiving; the smaller index goes first among equals."""
    pages = [page(1, 9), page(2, 3, recalls=1, last=12), page(3, 5), page(4, 5)]

    assert OverCeiling(1_000).order(pages) == [3, 4, 1, 2]
    assert [last_used(each) for each in pages] == [(9, 1), (12, 2), (5, 3), (5, 4)]


def test_over_ceiling_has_its_shares():
    """The target and the share of range lines are parts of the ceiling."""
    rule = OverCeiling(1_000)

    assert (rule.target, rule.range_tokens) == (850, 150)
