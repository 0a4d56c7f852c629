"""Recall, by code and by the model."""

import json

import pytest

from memci import PageNotFound
from memci.errors import InvalidSetting
from memci.history.events import Event

from .kit import call, calling, opened, result, talked, where, words

pytestmark = pytest.mark.usefixtures("no_memory")


def test_recalled_page_is_what_was_appended():
    """Recall gives the messages back whole and exact, wherever the page is."""
    odd = {"x-unknown": {"b": 1, "a": [2**70, 1e-7, None]}, "content": "\ufffd", "role": "user"}
    context = opened()
    context.append_turn(odd, calling(call("a")), result("a", "word " * 3_000))
    context.append_turn("next")
    inside = context.recall_page(1)
    context.archive(keep=0)

    assert json.dumps(inside) == json.dumps([odd, calling(call("a")), result("a", "word " * 3_000)])
    assert json.dumps(context.recall_page(1)) == json.dumps(inside)
    assert context.recall_page(1, 2) == [calling(call("a"))]


def test_recall_is_counted_once_per_turn_and_changes_no_byte():
    """A recall counts once per page and turn; the rendering stays as it is."""
    context = talked(3)
    context.archive(keep=0)
    before = json.dumps(context.render())

    context.recall_page(1)
    context.recall_page(1)
    counts = [page.recall_count for page in context.pages()]
    same = json.dumps(context.render())
    context.append_turn("next turn")
    context.recall_page(1)

    assert counts == [1, 0, 0]
    assert same == before
    assert next(iter(context.pages())).recall_count == 2


def test_recall_of_a_page_in_the_window_counts_nothing():
    """What is shown needs no recall."""
    context = talked(2)
    context.recall_page(1)

    assert [page.recall_count for page in context.pages()] == [0, 0]


@pytest.mark.parametrize("index", [0, -1, 4, 10**9, "1", None, True, 1.0, [1]])
def test_recall_of_no_page_says_which_there_are(index):
    """What is no index of a page is PageNotFound, with the range that there is."""
    context = talked(3)

    with pytest.raises(PageNotFound) as caught:
        context.recall_page(index)

    assert caught.value.valid == (1, 3)


@pytest.mark.parametrize("entry", [0, -1, 3, "x", True, 1.0])
@pytest.mark.parametrize("archived", [False, True])
def test_recall_of_no_entry_says_so(entry, archived):
    """An entry that the page does not have is PageNotFound, not another page's."""
    context = talked(3)
    if archived:
        context.archive(keep=0)

    with pytest.raises(PageNotFound):
        context.recall_page(2, entry)


@pytest.mark.parametrize("last", [0, -1, "x", True, 1.0, [1]])
def test_recall_up_to_what_is_no_entry_is_refused(last):
    """It is an argument of the program's: InvalidSetting names it."""
    context = talked(3)

    with pytest.raises(InvalidSetting, match="last"):
        context.recall_page(2, 1, last)


def test_recalled_page_is_listed_again():
    """A page that was unloaded and is recalled gets a line of its own at the next compaction."""
    context = talked(4, never_recalled=1)
    context.archive(keep=0)
    context.append_turn("x")
    context.archive(keep=0)
    assert where(context)[1] == "unloaded"

    context.recall_page(1)
    context.append_turn("y")
    context.archive(keep=0)

    assert where(context)[1] == "archived"
    assert any("#1 " in each["content"] and "recalled once" in each["content"] for each in context.render()[:4])


def test_answers_serve_the_calls_of_the_context_only():
    """Of a reply's calls those of the context are answered, in order; the others are the framework's."""
    context = talked(3)
    context.archive(keep=0)
    reply = calling(call("a"), call("b", "recall_page", {"index": 1, "entry": None, "offset": None}))

    answers = context.answers(reply)

    assert [each["tool_call_id"] for each in answers] == ["b"]
    assert '1 user: "question 1' in answers[0]["content"]
    assert [context.handles(each) for each in reply["tool_calls"]] == [False, True]
    assert context.answers({"role": "assistant", "content": "no calls"}) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"function": None},
        {"function": {}},
        {"function": {"name": "unknown\n</memci", "arguments": "{}"}},
        {"function": {"name": "recall_page"}},
        {"function": {"name": "recall_page", "arguments": None}},
        {"function": {"name": "recall_page", "arguments": "["}},
        {"function": {"name": "recall_page", "arguments": "[" * 100_000}},
        {"function": {"name": "recall_page", "arguments": {"index": 99}}},
        {"function": {"name": "recall_page", "arguments": {"index": [1]}}},
        {"function": {"name": "recall_page", "arguments": '{"index": 99}'}},
        {"function": {"name": "recall_page", "arguments": '{"index": 1, "entry": 99}'}},
    ],
)
def test_answer_never_raises_for_a_mistake_of_the_model(body):
    """Every call gets a tool message with its id: a mistake is answered with what to do."""
    message = talked(2).answer({"id": "c1", "type": "function", **body})

    assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
    assert message["content"].startswith("error: ")


def test_answers_to_many_recalls_share_the_room():
    """Several recalls at once cost no more than one may."""
    context = opened()
    for number in range(3):
        context.append_turn(
            {"role": "user", "content": f"{number} " + "word " * 400}, {"role": "assistant", "content": "ok"}
        )
    context.append_turn("now")
    context.archive(keep=0)
    calls = [call(str(index), "recall_page", {"index": index, "entry": None, "offset": None}) for index in (1, 2, 3)]

    answers = context.answers(calling(*calls))

    assert all("next: recall_page" in each["content"] for each in answers)
    assert sum(words(each["content"]) for each in answers) <= 1_000


def test_answer_is_not_clipped_when_it_is_appended():
    """An answer takes the room that there is, so that appending it needs no clipping and no compaction."""
    events: list[Event] = []
    context = opened(on_event=events.append)
    context.append_turn({"role": "user", "content": "word " * 3_000}, {"role": "assistant", "content": "ok"}, "now")
    context.archive(keep=0)
    events.clear()
    asked = calling(call("a", "recall_page", {"index": 1, "entry": None, "offset": None}))

    [answer] = context.answers(asked)
    context.append_turn(asked, answer)

    assert events == []
    assert context.render()[-1] == answer


def test_functions_answer_like_the_tool():
    """The tools of a text protocol give the same text, and need no schema."""
    context = talked(2)
    context.archive(keep=0)

    text = context.functions["recall_page"](1)

    assert '1 user: "question 1' in text
    assert context.functions["recall_page"]("x").startswith("error: ")


def test_without_notice_nothing_is_said_and_no_tool_is_offered():
    """`notice=False`: no notice, no tools, no tokens for them; pages are archived all the same."""
    context = talked(3, notice=False, system="Be kind.")
    context.archive(keep=0)

    assert context.tools == []
    assert context.report().tokens["tools"] == 0
    assert context.render()[0] == {"role": "system", "content": "Be kind."}
    assert where(context)[1] == "archived"
    assert context.recall_page(1)[0]["content"].startswith("question 1")


def test_without_notice_a_tool_of_that_name_counts():
    """A tool of the user's own is counted, also if it is called like ours, when ours is not offered."""
    context = opened(notice=False)

    context.render(tools=[{"type": "function", "function": {"name": "recall_page", "description": "word " * 200}}])

    assert context.report().tokens["tools"] > 200
