"""The first page stands in front of the Contents Page: it is the oldest, and stays cached."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from memci import CachePricing, EphemeralStorage, Policy
from memci.formats import FORMATS
from tests.invariants import check

from .kit import again, call, calling, opened, result, turn

pytestmark = pytest.mark.usefixtures("no_memory")

SMALL = Policy(contents_tokens=300)


def told(turns, storage=None, **given):
    """Return a context of *turns* turns, of which few fit."""
    context = opened(storage, window=1_200, reply=0, policy=SMALL, clock=None, **given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number, 40))
    return context


def kinds(view):
    """Return what stands where: numbers of questions, and "contents"."""
    texts = [json.dumps(each) for each in view]
    return [
        "contents" if "<memci:contents 0" in text else int(text.split("question ")[1].split()[0])
        for text in texts
        if "<memci:contents 0" in text or "question " in text
    ]


def test_first_page_stands_in_front_of_the_contents():
    """The first page, the list of those that left, and the latest ones: in the order in which they were said."""
    shown = kinds(told(12).render())
    behind = shown[shown.index("contents") :]

    assert shown[0] == 1 and shown[1] == "contents"
    assert [each for each in behind if each != "contents"] == [
        *range(13 - sum(isinstance(each, int) for each in behind), 13)
    ]


def test_beginning_stays_from_compaction_to_compaction():
    """System prompt and first page are the same bytes before and after: a provider's cache keeps both."""
    context = told(6)
    before = context.render()
    compactions = context.report().compactions
    for number in range(7, 30):
        context.append_turn(*turn(number, 40))
        after = context.render()
        assert after[:3] == before[:3], "the system message, the question and its answer"

    assert context.report().compactions > compactions
    assert context.report().cached_last >= 0


@pytest.mark.parametrize("form", FORMATS)
def test_order_is_the_same_in_every_format(form):
    """Each provider gets the first page before the contents."""
    shown = kinds(told(12).render(format=form))
    assert shown[0] == 1 and "contents" in shown[1:3]


def test_order_is_the_same_after_a_restart_and_in_a_fork():
    """Where the contents stand is stored with the window."""
    storage = EphemeralStorage()
    context = told(12, storage)
    before = json.dumps(context.render())
    assert json.dumps(context.fork("bob").render()) == before
    assert json.dumps(again(storage, clock=None).render()) == before


def test_open_first_page_gives_its_beginning():
    """Of a long task the user's message stands first, then the list of what left, then the latest steps."""
    context = opened(window=1_200, reply=0, policy=SMALL, clock=None)
    context.append_turn("question 1 Mend the parser, please.")
    for number in range(40):
        context.append_turn(calling(call(f"c{number}")), result(f"c{number}", f"step {number} " + "word " * 40))
        view = context.render()
    roles = [each["role"] for each in view]

    assert kinds(view)[0] == 1 and kinds(view)[1] == "contents"
    assert roles[:3] == ["system", "user", "user"]


def test_what_is_taken_back_stands_nowhere():
    """When turn after turn is undone, the first page stands in front until it is taken back, too."""
    context = told(12)
    for _ in range(12):
        context.undo()
        check(context._parts.window)
        assert 1 not in kinds(context.render())[1:]

    assert kinds(context.render()) == []


def test_blocks_become_one_when_the_cache_has_expired():
    """As long as a provider may have them cached, blocks keep their bytes; after that a frame less is cheaper."""
    now = [datetime(2026, 11, 25, 12, tzinfo=UTC)]
    policy = Policy(contents_tokens=900, preset="balanced", pricing=CachePricing(lifetime=300), dates="never")
    context = opened(window=3_000, reply=0, policy=policy, clock=lambda: now[0])

    def talk(first: int, last: int) -> int:
        for number in range(first, last):
            context.append_turn(*turn(number, 60))
        return kinds(context.render()).count("contents")

    assert talk(1, 60) > 1
    now[0] += timedelta(hours=1)
    assert talk(60, 61) <= 2
    assert kinds(context.render())[0] == 1


@pytest.mark.parametrize(
    "answer", ["好的，记下了。", "Got it, noted!", "Danke, notiert.", "承知しました。", "De acuerdo, anotado."]
)
def test_acknowledgements_take_no_room_on_the_contents_page(answer):
    """Neither a slot of a page's line nor a line of an entry says that something was noted."""
    context = opened(window=4_000, clock=None, counter=None)
    for told in ("My dentist is Dr. Lee in Graz.", "The car is a green Volvo of 2019.", "Bye for now."):
        context.append_turn(told, {"role": "assistant", "content": answer})
    context.archive(keep=0)
    shown = context.render()[1]["content"]

    assert "Lee" in shown and "Volvo" in shown
    assert not any(word in shown for word in re.findall(r"\w{2,}", answer))
    assert "assistant" not in shown
