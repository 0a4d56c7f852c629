"""What went wrong elsewhere when a conversation was made smaller, and can't here. The numbers are public issues."""

import hashlib
import json

import pytest

from memci import Context, EphemeralStorage
from memci.errors import BudgetExceeded
from memci.memory import NullMemory
from tests.context.kit import again, calling, opened, result, talked, turn, where, words

pytestmark = pytest.mark.usefixtures("no_memory")


def digests(context):
    return [hashlib.sha256(json.dumps(message).encode()).hexdigest() for message in context.messages()]


def test_compaction_rewrites_no_message_that_is_stored(storage):
    """codex#44363, #42311, maki#814: compaction rewrote the log, 3,777 replies became 0. A compaction changes none."""
    context = talked(40, storage=storage, window=600)
    before = digests(context)

    for _ in range(3):
        context.archive(keep=0)
        context.append_turn(*turn(99))

    assert digests(context)[: len(before)] == before
    assert context.report().compactions > 3


def test_export_after_a_compaction_has_everything(storage):
    """hermes-agent#92080: compaction exported the parent session with `messages: []`. Whoever is exported is whole."""
    context = talked(30, storage=storage, window=600)
    said = list(context.messages())
    context.archive(keep=0)
    child = context.fork("child")

    for each in (context, child):
        copy = Context.import_(EphemeralStorage(), each.export(), counter=words)
        assert list(copy.messages()) == list(each.messages()) == said
        assert copy.recall_page(1) == list(turn(1))


def test_interrupted_compaction_loses_nothing(storage):
    """hermes-agent#79391: an interrupted compaction deleted two hours. Here the compaction is there or it is not."""

    def rule(pages, turn):
        raise KeyboardInterrupt

    talked(30, storage=storage, window=600, rules=[])
    context = again(storage, rules=[rule])
    before = digests(context)

    with pytest.raises(KeyboardInterrupt):
        context.archive(keep=0)

    with again(storage, rules=[]) as other:
        assert digests(other) == before
        assert other.verify() == []
        other.archive(keep=0)
        assert digests(other) == before


def test_compaction_leaves_every_page_a_line_that_says_something(storage):
    """openclaw#120663: 47 % of the summaries were empty skeletons. Each page has a line that says something."""
    context = opened(storage)
    for odd in ("", " ", "\u200b", "\n\n", "<>", "….", "\x00", "🙂"):
        context.append_turn({"role": "user", "content": odd}, {"role": "assistant", "content": odd})
    context.archive(keep=0)

    lines = context.render()[0]["content"].split("\n") + context.render()[1]["content"].split("\n")
    titles = {page.index: page.title for page in context.pages() if page.where == "archived"}

    assert all(title and title.strip() for title in titles.values())
    assert titles
    assert any(line.startswith(f"#{min(titles)}–#{max(titles)} ") for line in lines), "one line: they say nothing"


def test_compaction_takes_only_what_is_old(storage):
    """letta#2601: the summariser took all messages of the window, not those before the cut. The newest pages stay."""
    context = talked(6, storage=storage)

    context.archive(keep=2)

    assert [index for index, place in where(context).items() if place != "archived"] == [1, 5, 6], "and the task"
    assert [message["content"] for message in context.render()[-4:]] == [
        each["content"] for number in (5, 6) for each in turn(number)
    ]


def test_making_room_needs_no_room(storage):
    """letta#353: the call that should shorten the window overflowed it. Making room is no request, and needs none."""
    context = opened(storage, window=700)
    for number in range(60):
        context.append_turn(*turn(number, 60))
        try:
            context.render()
        except BudgetExceeded as error:
            pytest.fail(f"turn {number}: {error}")

        assert context.report().total <= context.report().budget


def test_window_is_never_cleared_by_force(storage):
    """letta#2768: "forcefully clearing message history". What can't fit is an error that names it, and nothing goes."""
    context = talked(3, storage=storage, window=360, memory=NullMemory())
    before = digests(context)

    with pytest.raises(BudgetExceeded):
        context.render({"role": "user", "content": "word " * 900})

    assert digests(context) == before
    assert context.render()


def test_messages_that_arrive_while_the_window_shrinks_stay(storage):
    """openai-agents#4679: items appended while a compaction ran were deleted. A listener may append in the middle."""
    context = talked(6, storage=storage)
    said = []

    def listener(event):
        if not said:
            said.append(event)
            context.append_turn(*turn(77))

    context.on_event = listener
    context.archive(keep=0)

    assert said
    assert [message["content"].split()[1] for message in context.messages()][-2:] == ["77", "77"]
    with again(storage) as other:
        assert list(other.messages()) == list(context.messages())
        assert other.verify() == []


def test_what_is_erased_while_the_window_shrinks_stays_erased(storage):
    """openai-agents#4679: a clear during a compaction was undone by it. Erased in the middle is erased."""
    context = talked(6, storage=storage)
    told = []

    def listener(event):
        if not told:
            told.append(event)
            context.erase(2)

    context.on_event = listener
    context.archive(keep=0)

    assert told
    for each in (context, again(storage)):
        assert "question 2 " not in json.dumps(each.render(strict=False)) + json.dumps(list(each.messages()))
        assert where(each)[2] == "erased"
        assert each.verify() == []


def test_tool_results_survive_as_what_they_were(storage):
    """claude-code#19888: after a compaction the history was gone. Every page comes back exactly, calls and results."""
    context = opened(storage, window=600)
    said = []
    for number in range(12):
        said.append([turn(number)[0], calling(f"c{number}"), result(f"c{number}", f"found {number} " * 20)])
        context.append_turn(*said[-1])
        context.render()
    context.archive(keep=0)

    assert [context.recall_page(index) for index in range(1, 13)] == said
