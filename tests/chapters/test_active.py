"""The Active chapter: its rendering is kept up to date, whatever comes and goes."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from memci.chapters.active import ActiveChapter
from memci.chapters.messagelist import MessageNode
from memci.formats.envelope import INTERRUPTED
from tests.invariants import check

INTERRUPTION = 11


def chapter() -> ActiveChapter:
    return ActiveChapter(nonce="00000000", interrupted=INTERRUPTION)


def text(role: str, seq: int, tokens: int = 5) -> MessageNode:
    return MessageNode({"role": role, "content": f"{role} {seq}"}, tokens, seq=seq)


def calling(seq: int, *ids: str) -> MessageNode:
    calls = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ids]
    return MessageNode({"role": "assistant", "content": None, "tool_calls": calls}, 5, seq=seq)


def result(seq: int, call_id: str) -> MessageNode:
    return MessageNode({"role": "tool", "tool_call_id": call_id, "content": f"result {seq}"}, 5, seq=seq)


def filled(*pages: list[MessageNode]) -> ActiveChapter:
    active = chapter()
    for index, nodes in enumerate(pages, 1):
        active.open_page(index, nodes[0].seq)
        for node in nodes:
            active.append(node)
    return active


def shown(active: ActiveChapter) -> list[str]:
    return [each["content"] or "calls" for each in active.view]


class Growing(RuleBasedStateMachine):
    """Pages and messages come, pages leave and come back, the middle of the open page is cut out."""

    def __init__(self) -> None:
        super().__init__()
        self.active = chapter()
        self.seq = self.index = 0
        self.left: list = []

    @initialize()
    def begin(self) -> None:
        self._start()

    def _start(self) -> None:
        self.index += 1
        self.active.open_page(self.index, self.seq)
        self._append(text("user", self.seq))

    def _append(self, node: MessageNode) -> None:
        before, waiting = list(self.active.view), bool(self.active.missing)
        self.active.append(node)
        self.seq += 1
        assert self.active.view[: len(before)] == before, "appending only adds to the rendering"
        assert waiting or len(self.active.view) + len(self.active.missing) > len(before), "what was said is shown"

    @rule()
    def user(self) -> None:
        self._start()

    @rule()
    def reply(self) -> None:
        self._append(text("assistant", self.seq))

    @rule(ids=st.lists(st.sampled_from("aab"), min_size=1, max_size=3))
    def call(self, ids: list[str]) -> None:
        self._append(calling(self.seq, *ids))

    @rule(call_id=st.sampled_from("ab"))
    def answer(self, call_id: str) -> None:
        self._append(result(self.seq, call_id))

    @precondition(lambda self: len(self.active) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        closed = [page.index for page in self.active if page is not self.active.open]
        self.left += self.active.remove(data.draw(st.lists(st.sampled_from(closed), unique=True, min_size=1)))

    @precondition(lambda self: self.left)
    @rule()
    def restore(self) -> None:
        page = self.left.pop()
        nodes = [MessageNode(each.message, 5, seq=each.seq) for each in page]
        self.active.restore(page.index, page.base, nodes)

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        units = list(self.active.units(self.active.open))
        last = len(units) - (2 if self.active.missing else 1)
        if last < 1:
            return
        count = data.draw(st.integers(1, last))
        self.active.leave({self.active.open.index: (units[1][0], units[count][-1])})

    @invariant()
    def holds(self) -> None:
        check(self.active)
        orders = [page.head.seq for page in self.active if page.head is not None]
        assert orders == sorted(orders), "pages stand in the order of their first messages"
        answered = {each["tool_call_id"] for each in self.active.view if each["role"] == "tool"}
        called = {call["id"] for each in self.active.view for call in each.get("tool_calls") or []}
        assert answered == called, "what is shown of a settled group is whole"


TestGrowing = Growing.TestCase
TestGrowing.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def test_open_group_joins_the_rendering_when_it_is_complete():
    """Until its last result a group is the tail, afterwards it is part of the rendering."""
    active = filled([text("user", 0), calling(1, "a", "b"), result(2, "b")])
    assert (shown(active), active.missing) == (["user 0"], ["a"])
    assert [each["role"] for each in active.tail()] == ["assistant", "tool"]

    active.append(result(3, "a"))

    assert (shown(active), active.missing, active.tail()) == (["user 0", "calls", "result 3", "result 2"], [], [])
    check(active)


def test_open_group_is_given_up_when_something_else_follows():
    """A call without result is answered by the constant, and that costs what it costs."""
    active = filled([text("user", 0), calling(1, "a", "b"), result(2, "b")])
    tokens = active.messages.tokens

    active.open_page(2, 3)

    assert shown(active) == ["user 0", "calls", INTERRUPTED, "result 2"]
    assert active.messages.tokens == tokens + INTERRUPTION


def test_result_of_an_earlier_page_is_data_on_the_open_page():
    """A result that comes a page too late stands on the open page, in the user's role."""
    active = filled([text("user", 0), calling(1, "a")], [text("user", 2), result(3, "a")])

    late = active.view[-1]

    assert late["role"] == "user"
    assert "late result of call" in late["content"]
    assert [each.seq for each in active.page(2)] == [2, 3]


def test_same_id_in_a_later_page_is_paired_there():
    """Ids repeat: a result answers the call of its own page."""
    active = filled(
        [text("user", 0), calling(1, "a"), result(2, "a")], [text("user", 3), calling(4, "a"), result(5, "a")]
    )

    assert shown(active) == ["user 0", "calls", "result 2", "user 3", "calls", "result 5"]


def test_units_never_separate_a_group():
    """A message is a unit, and calls with all that answers them are one."""
    active = filled([text("user", 0), calling(1, "a", "b"), result(2, "b"), result(3, "a"), text("assistant", 4)])

    units = [[node.seq for node in unit] for unit in active.units(active.open)]

    assert units == [[0], [1, 2, 3], [4]]


def test_split_lets_the_neighbours_meet():
    """The user's message and what follows the cut stand side by side; the part that left is gone from the list."""
    active = filled([text("user", 0), *(text("assistant", seq) for seq in range(1, 6))])
    nodes = list(active.open)

    active.leave({1: (nodes[1], nodes[3])})

    assert shown(active) == ["user 0", "assistant 4", "assistant 5"]
    assert nodes[0].next is nodes[4]
    check(active)


def test_restored_page_stands_where_it_stood():
    """A page that comes back comes back between its neighbours, shown as it was."""
    pages = [[text("user", 3 * n), calling(3 * n + 1, "a"), result(3 * n + 2, "a")] for n in range(4)]
    active = filled(*pages)
    before = list(active.view)
    [page] = active.remove([2])

    active.restore(2, page.base, [MessageNode(each.message, each.tokens, seq=each.seq) for each in pages[1]])

    assert active.view == before
    assert [each.index for each in active] == [1, 2, 3, 4]
    check(active)


def test_show_lets_a_message_show_something_else():
    """A clipped result is what is shown and what is counted; the message itself stays."""
    active = filled([text("user", 0), calling(1, "a"), result(2, "a")])
    clipped = {"role": "tool", "tool_call_id": "a", "content": "clipped"}

    active.show({2: (clipped, 2)})

    assert shown(active)[-1] == "clipped"
    assert active.messages.tokens == 5 + 5 + 2
    assert list(active.open)[-1].message["content"] == "result 2"
    check(active)


def test_pages_that_are_put_back_are_drawn_in_their_place():
    """Also through the calls of any chapter: detach, add, cut, open_page, extend."""
    active = filled([text("user", 0), text("assistant", 1)], [text("user", 2)], [text("user", 3)])
    first, second = active.page(1), active.page(2)
    for page in (second, first):
        assert page.detach()
        check(active)
    assert shown(active) == ["user 3"]

    for page in (second, first):
        active.add(page)
        check(active)
    active.cut(first, first.tail, first.tail)
    active.extend(active.open_page(4, 4), text("user", 4))

    assert shown(active) == ["user 0", "user 2", "user 3", "user 4"]
    check(active)


def test_what_can_not_stand_before_the_open_page_is_refused():
    active, later = filled([text("user", 0)], [text("user", 1)]), filled([text("user", 7)])
    page = later.detach(1)
    page.index = 7

    with pytest.raises(ValueError, match="behind the open page"):
        active.add(page)
    with pytest.raises(ValueError, match="is not the open page"):
        active.extend(active.page(1), text("user", 8))
    with pytest.raises(ValueError, match="in a list"):
        active.append(active.page(1).head)

    assert shown(active) == ["user 0", "user 1"]
    check(active)


def test_open_page_that_leaves_is_closed():
    active = filled([text("user", 0)], [text("user", 1), calling(2, "a")])

    active.page(2).detach()

    assert (active.open, active.missing, shown(active)) == (None, [], ["user 0"])
    check(active)
