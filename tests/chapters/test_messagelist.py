"""The doubly linked list of messages, step by step against a plain Python list."""

from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memci.chapters.messagelist import MessageList, MessageNode
from tests.invariants import check


def node(name: str = "m", tokens: int = 1) -> MessageNode:
    return MessageNode({"role": "user", "content": name}, tokens)


def filled(*names: str) -> MessageList:
    messages = MessageList()
    for name in names:
        messages.append(node(name))
    return messages


def names(messages: MessageList) -> list[str]:
    return [each.message["content"] for each in messages]


class AgainstAPlainList(RuleBasedStateMachine):
    """Every step is done to a MessageList and to a list; they must stay equal."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = MessageList()
        self.model: list[MessageNode] = []
        self.aside: list[MessageNode] = []
        self.made = 0

    def _new(self, tokens: int) -> MessageNode:
        self.made += 1
        return node(str(self.made), tokens)

    @rule(tokens=st.integers(0, 1_000))
    def append(self, tokens: int) -> None:
        new = self._new(tokens)
        self.messages.append(new)
        self.model.append(new)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), tokens=st.integers(0, 1_000))
    def insert(self, data: st.DataObject, tokens: int) -> None:
        position = data.draw(st.integers(0, len(self.model) - 1))
        new = self._new(tokens)
        self.messages.insert(new, before=self.model[position])
        self.model.insert(position, new)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def detach(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(self.model) - 1))
        last = data.draw(st.integers(first, len(self.model) - 1))
        run = self.model[first : last + 1]
        self.messages.detach(run[0], run[-1])
        del self.model[first : last + 1]
        self.aside += run
        assert run[0].prev is run[-1], "a run that left is a ring of its own"
        assert all(a.next is b and b.prev is a for a, b in pairwise(run)), "it stays linked inside"

    @precondition(lambda self: self.aside)
    @rule()
    def append_again(self) -> None:
        back = self.aside.pop()
        self.messages.append(back)
        self.model.append(back)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), tokens=st.integers(0, 1_000))
    def reweigh(self, data: st.DataObject, tokens: int) -> None:
        self.messages.reweigh(data.draw(st.sampled_from(self.model)), tokens)

    @precondition(lambda self: len(self.model) > 1)
    @rule(data=st.data())
    def detach_backwards_is_refused(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(1, len(self.model) - 1))
        last = data.draw(st.integers(0, first - 1))
        with pytest.raises(ValueError, match="does not come after"):
            self.messages.detach(self.model[first], self.model[last])

    @precondition(lambda self: self.aside)
    @rule()
    def detach_of_a_foreign_node_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not a run"):
            self.messages.detach(self.aside[-1], self.aside[-1])

    @invariant()
    def equals_the_plain_list(self) -> None:
        check(self.messages)
        assert list(self.messages) == self.model
        assert len(self.messages) == len(self.model)
        assert self.messages.tokens == sum(each.tokens for each in self.model)
        assert self.messages.head is (self.model[0] if self.model else None)
        assert self.messages.tail is (self.model[-1] if self.model else None)
        assert all(each.owner is None for each in self.aside)


TestAgainstAPlainList = AgainstAPlainList.TestCase
TestAgainstAPlainList.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


def test_detach_from_the_middle_lets_the_neighbours_meet():
    """What stood before the run and what stood behind it are neighbours afterwards."""
    messages = filled("a", "b", "c", "d")
    a, b, c, d = messages

    messages.detach(b, c)

    assert (a.next, d.prev) == (d, a)
    assert names(messages) == ["a", "d"]
    check(messages)


def test_append_after_the_last_run_was_detached_is_kept():
    """A node that is appended after the tail left is in the list."""
    messages = filled("a", "b")
    messages.detach(messages.tail, messages.tail)

    messages.append(node("c"))

    assert names(messages) == ["a", "c"]
    check(messages)


def test_append_of_a_node_that_is_in_a_list_is_refused():
    """A node stands in one list at most, and neither list changes."""
    one, other = filled("a"), filled("b")

    with pytest.raises(ValueError, match="in a list already"):
        other.append(one.head)

    assert (names(one), names(other)) == (["a"], ["b"])
    check(one)
    check(other)


def test_detach_across_two_lists_is_refused():
    """A run that ends in another list is refused before a link is touched."""
    one, other = filled("a", "b"), filled("c")

    with pytest.raises(ValueError, match="not a run of this list"):
        one.detach(one.head, other.head)

    assert (names(one), names(other)) == (["a", "b"], ["c"])
    check(one)


def test_check_finds_a_sum_that_is_wrong():
    """The list's own check sees tokens that were changed behind its back."""
    messages = filled("a", "b")
    messages.head.tokens = 99

    with pytest.raises(AssertionError, match="token sum"):
        check(messages)


def test_view_is_the_message_unless_it_is_given():
    """A node shows its message, or what it is told to show; the message stays."""
    shown = MessageNode({"role": "user", "content": "long"}, 1, view={"role": "user", "content": "short"})

    assert node("a").view["content"] == "a"
    assert (shown.message["content"], shown.view["content"]) == ("long", "short")
