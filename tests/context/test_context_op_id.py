"""Idempotence: an append that is named is applied once."""

import pytest

from memci.errors import InvalidSetting, OpConflict, Undone

from .kit import again, opened, talked, turn

pytestmark = pytest.mark.usefixtures("no_memory")


def test_op_id_applied_twice_is_applied_once():
    """The same op_id with the same messages stores nothing again and returns the first receipt."""
    context = talked(1)
    first = context.append_turn(*turn(2), op_id="op")
    context.append_turn(*turn(3))

    again = context.append_turn(*turn(2), op_id="op")

    assert again.duplicate
    assert (again.page, again.entries, again.seq) == (first.page, first.entries, first.seq)
    assert context.report().messages == 6


def test_op_id_with_other_messages_is_a_conflict():
    """An op_id names one content for ever; another one changes nothing."""
    context = opened()
    context.append_turn("a", op_id="op")

    with pytest.raises(OpConflict, match="op"):
        context.append_turn("b", op_id="op")

    assert [each["content"] for each in context.messages()] == ["a"]


def test_op_id_is_known_after_a_restart(tmp_path):
    """A retry by another process is recognised as well."""
    with opened(tmp_path / "a.db") as context:
        context.append_turn("a", op_id="op")

    with opened(tmp_path / "a.db") as context:
        assert context.append_turn("a", op_id="op").duplicate


def test_op_id_is_known_to_a_handle_that_is_behind(tmp_path):
    """A retry gets the receipt of another handle's append, whose page it has not read; or that it was taken back."""
    with opened(tmp_path / "a.db") as other, opened(tmp_path / "a.db") as behind:
        first = other.append_turn("a", op_id="op")
        retried = behind.append_turn("a", op_id="op")
        other.undo()
        with pytest.raises(Undone):
            behind.append_turn("a", op_id="op")

    assert (retried.duplicate, retried.page, retried.entries) == (True, first.page, first.entries)


@pytest.mark.parametrize("op_id", ["", 5, b"op"])
def test_op_id_that_is_no_name_is_refused(op_id):
    """An op_id is text, and not empty."""
    with pytest.raises(InvalidSetting, match="op_id"):
        opened().append_turn("a", op_id=op_id)


def test_op_that_is_known_drops_nothing_that_opening_changed(tmp_path):
    """A repeated append stores nothing: what opening counted anew, by another counter, is stored with the next one."""
    with opened(tmp_path / "a.db", window=4_000) as context:
        context.append_turn("a few words", op_id="op")
    with opened(tmp_path / "a.db", window=8_000, counter=len) as context:
        assert context.append_turn("a few words", op_id="op").duplicate
        context.append_turn("b")
        tokens = context.report().tokens

    with again(tmp_path / "a.db", counter=len) as context:
        assert context.window == 8_000
        assert context.report().tokens == tokens
        assert context.verify() == []
