"""A quick look at `door`: it runs, nothing that is offered breaks anything, and each target has teeth."""

from random import Random
from time import monotonic

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memci import Context
from memci.errors import MemciError
from memci.formats import FORMATS
from memci.llm.model import Reply
from memci.llm.replies import reply_of
from tests.faults import door_targets, native_targets
from tests.faults.door import TARGETS, Door, offered, offered_natives
from tests.faults.fuzz import tried
from tests.faults.tally import Order


def broken(target, *, tries: int = 40, **instead) -> str | None:
    """What is found first: a promise that was broken, or an error that is none of memci's."""
    for seed in range(tries):
        found = tried(seed, {"x": (lambda rng: target(rng, **instead), 1)})[1]
        if found is not None:
            return found
    return None


@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_what_is_taken_can_be_used_by_every_other_call(seed):
    """A message of any form is refused by a `MemciError`; or it is kept exactly, in a file with a memory, rendered,
    searched, recalled, exported, imported, forked, undone and erased."""
    assert door_targets.messages(Random(seed), searched=True) is None


def test_nothing_that_is_offered_breaks_a_promise():
    """Messages, replies and arguments of any form are taken or refused; of the messages more than a third is taken."""
    seen = offered(range(24), monotonic() + 600)

    assert seen.violations == []
    assert seen.runs == 24
    assert all(seen.counts[name] for name in TARGETS if name != "exports")
    assert seen.counts["messages: answered"] > seen.counts["messages: refused"] / 2


@pytest.mark.slow
def test_run_counts_each_value_that_was_offered():
    """A run of the harness is one value; a seed makes forty."""
    tally = Door().run(Order(seed=3, aim=120, seconds=600, workers=1), lambda _: None)

    assert tally.violations == []
    assert tally.runs == 120


def test_exports_that_were_forged_break_nothing():
    """All of them are refused whole, or used as any other context."""
    assert door_targets.exports(Random(4)) is None


def test_items_of_every_form_break_nothing():
    """A third of them is taken or more, and of forged exports some are taken and some refused."""
    seen = offered_natives(range(10), monotonic() + 600)

    assert seen.violations == []
    assert all(seen.counts[f"items of {form}: answered"] for form in FORMATS)
    assert seen.counts["forged exports: refused"] > seen.counts["forged exports: answered"] > 0


def test_native_items_that_can_not_be_sent_are_noticed():
    """An import that does not read the items of a forged export again is found out."""
    assert broken(native_targets.natives, tries=4) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("memci.history.verify.check_native", lambda message: None)
        assert broken(native_targets.natives, tries=40) is not None


def test_error_that_is_not_typed_is_noticed():
    """A message that is refused with a TypeError, and a reply that is read with one, are found out."""

    def untyped(context, *messages, **more):
        try:
            return Context.append_turn(context, *messages, **more)
        except MemciError as error:
            raise TypeError(str(error)) from error

    assert "TypeError" in str(broken(door_targets.messages, append=untyped))
    assert "KeyError" in str(broken(door_targets.replies, read=lambda body: Reply({}[body])))


def test_message_that_is_changed_on_its_way_is_noticed():
    """An append that loses a key is found out."""

    def lossy(context, *messages, **more):
        kept = [{**each, "name": "x"} if isinstance(each, dict) else each for each in messages]
        return Context.append_turn(context, *kept, **more)

    assert "is not what was taken" in str(broken(door_targets.messages, append=lossy))


def test_import_that_takes_half_is_noticed():
    """One that stores something before it refuses the rest is found out."""

    def hasty(storage, lines, **given):
        Context.open(storage, "half", window=4_000)
        return Context.import_(storage, lines, **given)

    assert "something is stored" in str(broken(door_targets.exports, tries=3, take=hasty))
    assert reply_of(b'{"choices": [{"message": {"content": "Hi"}}]}').text == "Hi"
