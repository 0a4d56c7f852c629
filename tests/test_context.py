"""The façade: what a framework calls, and what it may rely on."""

import contextlib
import json
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from memci import BudgetExceeded, Context, EphemeralStorage, InvalidMessage, OpenToolGroup, PageNotFound, SQLiteStorage
from memci.chapters.system import NOTICE
from memci.errors import HandlePoisoned, InvalidSetting, OpConflict, Undone
from memci.report import Event, Receipt

OWN_TOOL = {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {}}}


def words(text: str) -> int:
    return len(text.split())


def opened(storage: object = None, **given: object) -> Context:
    given = {"id": "alice", "window": 4_000, "counter": words, "nonce": "00000000", **given}
    return Context.open(EphemeralStorage() if storage is None else storage, **given)


def call(call_id: str, name: str = "search", arguments: object = "{}") -> dict:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


def calling(*calls: dict) -> dict:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def result(call_id: str, text: str = "found") -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def turn(number: int, size: int = 3) -> tuple[dict, dict]:
    return (
        {"role": "user", "content": f"question {number} " + "word " * size},
        {"role": "assistant", "content": f"answer {number} " + "word " * size},
    )


def talked(turns: int, size: int = 3, **given: object) -> Context:
    context = opened(**given)
    for number in range(1, turns + 1):
        context.append_turn(*turn(number, size))
    return context


def where(context: Context) -> dict[int, str]:
    return {page.index: page.where for page in context.pages()}


def extends(new: list[dict], old: list[dict]) -> bool:
    return json.dumps(new)[: len(json.dumps(old)) - 1] == json.dumps(old)[:-1]


# -- the loop of an agent


def test_loop_of_an_agent_runs_as_it_is_written(tmp_path):
    """The example: render, call, append, answer the context's own calls, render again."""
    with Context.open(
        tmp_path / "agent.db", id="alice", system="You are a travel agent.", model="gpt-5", window=32_000
    ) as context:
        asked = "Book me a flight to Oslo."
        first = context.render(asked, tools=[OWN_TOOL])
        reply = calling(call("c1", arguments={"to": "Oslo"}), call("c2", "recall_page", {"index": 1}))
        context.append_turn(asked, reply, usage={"prompt_tokens": 400})
        answers = context.answers(reply)
        context.append_turn(*answers, result("c1"))
        second = context.render(tools=[OWN_TOOL])

    assert [each["role"] for each in first] == ["system", "user"]
    assert first[0]["content"] == f"You are a travel agent.\n\n{NOTICE}"
    assert [each["role"] for each in second] == ["system", "user", "assistant", "tool", "tool"]
    assert extends(second, first)
    assert [each["tool_call_id"] for each in second[3:]] == ["c1", "c2"]
    assert [each["tool_call_id"] for each in answers] == ["c2"]
    assert "shown in full above" in answers[0]["content"]


def test_render_of_nothing_is_the_system_message():
    """A new context shows the prompt and the notice; with neither it shows nothing."""
    assert [each["role"] for each in opened(system="Be kind.").render()] == ["system"]
    assert opened(notice=False).render() == []


def test_render_twice_gives_equal_bytes():
    """Rendering changes nothing by itself."""
    context = talked(200)

    assert json.dumps(context.render()) == json.dumps(context.render())
    assert json.dumps(context.render("x")) == json.dumps(context.render("x"))
    assert context.report().messages == 400


def test_render_extends_the_one_before_between_editions():
    """After each append the new rendering begins with the old one, byte for byte, unless an edition happened."""
    events: list[Event] = []
    context, before, kept = opened(on_event=events.append, window=1_500), [], 0
    for number in range(60):
        events.clear()
        user, reply = turn(number, 20)
        pending = context.render(user)
        if not any(event.kind == "edition" for event in events):
            assert extends(pending, before)
        events.clear()
        context.append_turn(user, reply)
        after = context.render()
        if not any(event.kind == "edition" for event in events):
            assert extends(after, pending)
            kept += 1
        before = after

    assert 40 < kept < 60, "most turns keep the prefix, and there were editions"


def test_render_within_the_budget_whatever_was_said():
    """However much is said, the request fits; tools and pending messages included."""
    context = opened(window=1_500)
    for number in range(80):
        context.append_turn(*turn(number, 5 + 60 * (number % 3)))
        shown = context.render("pending " * (30 + 50 * (number % 4)), tools=[OWN_TOOL])

        report = context.report()
        assert report.total <= report.budget
        assert sum(words(each["content"]) + 4 for each in shown) + report.tokens["tools"] + 3 <= report.budget


def test_pending_messages_are_shown_and_not_kept():
    """What is rendered as pending is neither stored nor counted afterwards."""
    context = talked(2)
    before = context.render()

    pending = context.render("What now?")

    assert pending == [*before, {"role": "user", "content": "What now?"}]
    assert context.render() == before
    assert context.report().messages == 4


def test_render_with_an_open_tool_group_is_refused():
    """No provider takes calls without results: the error names the calls, and `strict=False` shows them anyway."""
    context = opened()
    context.append_turn("go", calling(call("a"), call("b")), result("b"))

    with pytest.raises(OpenToolGroup) as caught:
        context.render()

    assert caught.value.missing == ("a",)
    assert [each["role"] for each in context.render(strict=False)[1:]] == ["user", "assistant", "tool"]
    assert [each["role"] for each in context.render(result("a"))[1:]] == ["user", "assistant", "tool", "tool"]


def test_budget_that_can_not_be_met_is_said_with_its_parts():
    """What is irreducible is named; appending it was stored all the same."""
    context = opened(window=1_000)
    context.append_turn("go")

    with pytest.raises(BudgetExceeded) as caught:
        context.render(tools=[{"type": "function", "function": {"name": "big", "description": "word " * 2_000}}])

    assert caught.value.parts["tools"] > 2_000
    assert context.render()[-1]["content"] == "go"


def test_system_prompt_that_does_not_fit_is_refused_at_open():
    """A window in which nothing could be said is refused before it is made."""
    storage = EphemeralStorage()

    with pytest.raises(BudgetExceeded):
        opened(storage, system="word " * 4_000)

    assert storage.contexts() == []


# -- appending


def test_receipt_tells_what_was_stored():
    """Page, entries, sequence number: the handles by which everything is found again."""
    context = talked(2)

    receipt = context.append_turn(*turn(3), op_id="op")

    assert isinstance(receipt, Receipt)
    assert (receipt.page, receipt.seq, receipt.op_id, receipt.duplicate) == (3, 4, "op", False)
    assert [(each.page, each.ordinal, each.role) for each in receipt.entries] == [(3, 1, "user"), (3, 2, "assistant")]


def test_receipt_of_several_pages_names_each():
    """One append may close and open pages; every entry knows its own, the receipt the last."""
    receipt = opened().append_turn("a", {"role": "assistant", "content": "b"}, "c", "d")

    assert receipt.page == 3
    assert [(each.page, each.ordinal) for each in receipt.entries] == [(1, 1), (1, 2), (2, 1), (3, 1)]


def test_receipt_of_nothing_is_empty():
    """Appending no message is allowed, and stores none."""
    context = opened()

    assert context.append_turn() == Receipt(0, (), 0)
    assert context.report().messages == 0


def test_user_message_closes_the_page_unless_it_is_an_observation():
    """`opens_page=False` extends the open page by a message in the user's role."""
    context = opened()
    context.append_turn("task")

    observed = context.append_turn("observation", opens_page=False)
    asked = context.append_turn("next")

    assert ((observed.page, observed.entries[0].ordinal), asked.page) == ((1, 2), 2)
    assert context.report().turn == 1


def test_assistant_first_is_a_page():
    """A context may begin with the assistant, and is rendered as it is."""
    context = opened(notice=False)

    context.append_turn({"role": "assistant", "content": "Hello!"}, "Hi")

    assert context.render() == [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi"}]
    assert [page.entries for page in context.pages()] == [1, 1]


def test_append_takes_sdk_objects_and_mappings():
    """What an SDK returned is appended as it is, with the fields that were set."""
    chat = pytest.importorskip("openai.types.chat")
    context = opened(notice=False)
    reply = chat.ChatCompletionMessage.model_validate(calling(call("c1")))

    context.append_turn(types.MappingProxyType({"role": "user", "content": "hi"}), reply, result("c1"))

    assert list(context.messages()) == [{"role": "user", "content": "hi"}, calling(call("c1")), result("c1")]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"role": "system", "content": "obey"}, "messages[1].role"),
        ({"role": "user", "content": float("nan")}, "messages[1].content"),
        ({"role": "user", "content": "x", "extra": (1, 2)}, "messages[1].extra"),
        ({"role": "user", "content": "x", "at": datetime(2026, 1, 1)}, "messages[1].at"),  # noqa: DTZ001
        (result("never"), "messages[1].tool_call_id"),
        (4, "messages[1]"),
    ],
)
def test_append_of_a_wrong_message_leaves_no_trace(wrong, path):
    """All or none: a wrong message is refused with its place, and the good ones before it are not stored."""
    context = talked(1)
    before = context.render()

    with pytest.raises(InvalidMessage) as caught:
        context.append_turn("good", wrong)

    assert caught.value.path.startswith(path)
    assert context.render() == before
    assert context.append_turn("next").seq == 2


def test_append_copies_what_it_takes():
    """Whoever changes a message afterwards changes neither the window nor the store."""
    context, message = opened(), {"role": "user", "content": [{"type": "text", "text": "before"}]}
    context.append_turn(message)

    message["content"][0]["text"] = "after"

    assert context.render()[-1]["content"][0]["text"] == "before"


def test_moment_is_for_information_only():
    """Any order of moments is taken, in either form; what is no moment is refused."""
    context = opened()
    context.append_turn("a", at=datetime(2026, 5, 2, tzinfo=UTC))
    context.append_turn("b", at="2026-05-01T10:00:00")

    with pytest.raises(InvalidSetting, match="at"):
        context.append_turn("c", at="yesterday")

    assert [each["content"] for each in context.messages()] == ["a", "b"]


# -- op_id


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


@pytest.mark.parametrize("op_id", ["", 5, b"op"])
def test_op_id_that_is_no_name_is_refused(op_id):
    """An op_id is text, and not empty."""
    with pytest.raises(InvalidSetting, match="op_id"):
        opened().append_turn("a", op_id=op_id)


# -- counting


def usage_of(context: Context, factor: float) -> None:
    context.render("next")
    predicted = context.report().total + 4 + 1
    context.append_turn(
        "next", {"role": "assistant", "content": "ok"}, usage={"prompt_tokens": round(predicted * factor)}
    )


def test_ratio_is_the_median_of_what_was_reported():
    """One outlier does not change the count: the median of the last requests does."""
    context = opened()
    for factor in (1.1, 1.1, 9.0, 1.1, 0.2):
        usage_of(context, factor)

    assert context.report().ratio == pytest.approx(1.1, abs=0.02)


@pytest.mark.parametrize(("factor", "ratio"), [(0.5, 1.0), (1.0, 1.0), (1.2, 1.2), (3.0, 1.3)])
def test_ratio_is_clamped(factor, ratio):
    """The count is never lowered, and never raised by more than 1.3."""
    context = opened()
    for _ in range(3):
        usage_of(context, factor)

    report = context.report()
    assert report.ratio == pytest.approx(ratio, abs=0.03)
    assert report.budget == pytest.approx(3_500 / ratio, rel=0.03)
    assert any("tools" in each for each in report.warnings) == (factor == 3.0)


def test_ratio_forgets_after_eight_requests():
    """Only the last eight reports count."""
    context = opened()
    for factor in [1.25] * 8 + [1.0] * 8:
        usage_of(context, factor)

    assert context.report().ratio == pytest.approx(1.0, abs=0.01)


def test_ratio_is_stored_with_the_context():
    """A context that is opened again counts as it did, also if the last usage came without messages."""
    storage = EphemeralStorage()
    context = opened(storage)
    usage_of(context, 1.2)
    context.append_turn(usage=types.SimpleNamespace(prompt_tokens=9_999))
    before = context.report()

    after = opened(storage).report()

    assert (after.ratio, after.budget) == (before.ratio, before.budget)
    assert before.ratio > 1.1


@pytest.mark.parametrize("usage", [{}, {"total_tokens": 5}, {"prompt_tokens": "5"}, {"prompt_tokens": -1}, 5, "x"])
def test_usage_that_says_nothing_is_refused(usage):
    """A usage without prompt tokens is a mistake of the caller's, and nothing is stored."""
    context = opened()
    context.render("a")

    with pytest.raises(InvalidSetting, match="usage"):
        context.append_turn("a", usage=usage)

    assert context.report().messages == 0


def test_context_tools_count_once():
    """Whether the context's own tools are passed to render or not, they cost the same."""
    context = talked(1)
    context.render(tools=[OWN_TOOL])
    without = context.report().tokens["tools"]

    context.render(tools=[OWN_TOOL, *context.tools])

    assert context.report().tokens["tools"] == without > 0


def test_report_adds_up():
    """The parts are the total, every page is in one place, every message was counted."""
    context = opened(window=1_200, never_recalled=8)
    for number in range(40):
        context.append_turn(*turn(number, 25))
    context.undo()
    context.append_turn("open")
    context.render()

    report = context.report()

    assert sum(report.tokens.values()) == report.total <= report.budget
    assert sum(report.pages.values()) == 41 == len(list(context.pages()))
    places = list(where(context).values())
    assert report.pages == {place: places.count(place) for place in report.pages}
    assert set(places) <= set(report.pages)
    assert report.pages["unloaded"] > 0
    assert (report.messages, report.turn, report.window) == (81, 39, 1_200)
    assert report.editions > 0
    assert 0.0 <= report.cached <= 1.0
    assert not report.exact or report.counter.startswith("custom")


def test_report_tells_what_a_cache_keeps():
    """Between two editions all of a rendering is the prefix of the next; an edition keeps less of it."""
    context = talked(4, size=30)
    context.render()
    context.append_turn(*turn(5))
    context.render()
    kept = context.report().cached_last
    context.archive(keep=0)
    context.render()

    assert kept > 0.8
    assert context.report().cached_last < kept


# -- events


def test_events_tell_of_editions_unloads_and_clips():
    """What happens to the window is told after it was committed, with the pages it happened to."""
    events: list[Event] = []
    context = opened(on_event=events.append, window=1_000, never_recalled=1)
    context.append_turn("task", {"role": "assistant", "content": "word " * 900}, "more")
    context.archive(keep=0)
    context.append_turn("and more")
    context.archive(keep=0)

    kinds = [(event.kind, event.pages) for event in events]

    assert kinds[0] == ("clip", (1,))
    assert ("edition", (1,)) in kinds
    assert ("unload", (1,)) in kinds
    assert all(event.context == "alice" and event.tokens > 0 for event in events)


def test_event_of_a_pinned_page_that_comes_back_is_no_unload():
    """A page that returns to the window in an edition was not unloaded by it."""
    events: list[Event] = []
    context = talked(4, on_event=events.append, never_recalled=1)
    context.archive(keep=0)
    context.append_turn("x")
    context.pin(2)
    events.clear()

    context.archive()

    [unload] = [event for event in events if event.kind == "unload"]
    assert unload.pages == (1, 3)
    assert where(context)[2] == "active"


def test_error_in_an_event_reaches_the_caller_after_the_commit():
    """A listener that raises does not undo what happened."""

    def listener(_: Event) -> None:
        raise RuntimeError("listener")

    context = talked(3, on_event=None)
    context.on_event = listener

    with pytest.raises(RuntimeError, match="listener"):
        context.archive(keep=0)

    assert where(context)[1] == "archived"
    context._window._check()


def test_listener_may_call_the_context():
    """A listener that asks for a report does not wait for ever."""
    context = talked(3)
    totals = []
    context.on_event = lambda _: totals.append(context.report().total)

    context.archive(keep=0)

    assert totals == [context.report().total]


# -- recall


def test_recalled_page_is_what_was_appended():
    """Recall gives the messages back whole and exact, wherever the page is."""
    odd = {"x-unknown": {"b": 1, "a": [2**70, 1e-7, None]}, "content": "\ud83d", "role": "user"}
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


def test_recalled_page_is_listed_again():
    """A page that was unloaded and is recalled gets a line of its own at the next edition."""
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
    """An answer takes the room that there is, so that appending it needs no clipping and no edition."""
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


# -- pages


def test_archive_leaves_half_of_the_active_pages():
    """An edition now archives oldest first, the task last, until half of the active tokens are left, and no further."""
    context = talked(9, size=30)
    sizes = {page.index: page.tokens for page in context._window.active}

    archived = context.archive()

    left = sum(sizes.values()) - sum(sizes[index] for index in archived)
    assert archived == tuple(range(2, 2 + len(archived)))
    assert left <= sum(sizes.values()) / 2 < left + sizes[archived[-1]]


def test_archive_keeps_as_many_pages_as_are_asked_for():
    """`keep` closed pages stay, the task among them, beside the open one."""
    context = talked(9)

    archived = context.archive(keep=2)

    assert archived == (2, 3, 4, 5, 6, 7)
    assert [index for index, place in where(context).items() if place != "archived"] == [1, 8, 9]


@pytest.mark.parametrize("keep", [-1, 1.5, "1", True])
def test_archive_with_a_keep_that_makes_no_sense_is_refused(keep):
    """A number of pages is an integer from 0."""
    with pytest.raises(InvalidSetting, match="keep"):
        talked(3).archive(keep=keep)


def test_archived_messages_leave_the_window():
    """What is archived is no longer shown but by a line, and no longer counted but by that."""
    context = talked(6, size=40)
    before = context.report().total

    context.archive(keep=0)

    shown = [each["content"] for each in context.render()]
    assert "#1 question 1" in shown[1]
    assert shown[2:] == [each["content"] for each in turn(6, 40)]
    assert context.report().total < before
    context._window._check()


def test_pinned_page_stays_and_unpinned_goes():
    """A pin exempts from archiving; without it the page goes like others."""
    context = talked(5)
    context.pin(2)
    context.archive(keep=0)
    pinned = where(context)
    context.unpin(2)
    context.archive(keep=0)

    assert (pinned[2], pinned[3], where(context)[2]) == ("active", "archived", "archived")


def test_pin_of_an_archived_page_restores_it_at_the_next_edition():
    """A page that is pinned when it is gone comes back at the next edition, where it stood, and not before."""
    context = talked(5)
    whole = context.render()
    context.archive(keep=0)
    context.pin(2)
    shown = context.render()
    context.append_turn("next")

    context.archive(keep=0)

    assert "question 2 word word word " not in [each["content"] for each in shown]
    assert whole[3:5] == [each for each in context.render() if each in whole[3:5]]
    assert where(context)[2] == "active"
    assert [page.index for page in context.pages() if page.pinned] == [2]
    context._window._check()


def test_pin_survives_a_restart_and_is_counted_as_it_is_shown():
    """A page that was restored costs what it shows, before and after a restart, late results included."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn("a", calling(call("k"), call("never")))
    context.append_turn("b")
    context.append_turn(result("k", "late " * 50), "c", "d")
    context.archive(keep=0)
    context.pin(1)
    context.pin(2)
    context.archive(keep=0)

    for each in (context, opened(storage)):
        window = each._window
        shown = sum(window.weigh(message) for message in window.active.view)
        assert window.active.messages.tokens == shown
        window._check()
    assert json.dumps(opened(storage).render()) == json.dumps(context.render())


def test_pin_that_leaves_no_room_is_refused():
    """Pins, system and a quarter for the open page fit, or the pin is refused and nothing changed."""
    context = opened(window=1_500)
    for number in range(8):
        context.append_turn(*turn(number, 110))
    pinned = 0
    with pytest.raises(BudgetExceeded) as caught:
        for index in range(1, 8):
            context.pin(index)
            pinned += 1

    assert 1 <= pinned < 7
    assert "pinned" in caught.value.parts
    assert sum(page.pinned for page in context.pages()) == pinned
    context.render("still " * 100)


@pytest.mark.parametrize("act", ["pin", "unpin"])
def test_pin_of_no_page_is_not_found(act):
    """Only pages that were given out can be pinned or unpinned."""
    for index in (0, 9, True, "1"):
        with pytest.raises(PageNotFound):
            getattr(talked(2), act)(index)


def test_undo_takes_back_the_newest_interaction():
    """The messages come back in order; the window, recall and search show nothing of them any more."""
    context = talked(2)
    before = context.render()
    receipt = context.append_turn("oops", calling(call("a")), result("a"))

    taken = context.undo()

    assert taken == [{"role": "user", "content": "oops"}, calling(call("a")), result("a")]
    assert context.render() == before
    assert where(context)[receipt.page] == "undone"
    assert [each["content"] for each in context.messages()] == [each["content"] for n in (1, 2) for each in turn(n)]
    with pytest.raises(Undone):
        context.recall_page(receipt.page)
    context._window._check()


def test_undo_twice_takes_back_two():
    """Each undo takes back one more; numbers are not used again."""
    context = talked(3)

    first, second = context.undo(), context.undo()
    receipt = context.append_turn("again")

    assert (first[0]["content"][:10], second[0]["content"][:10]) == ("question 3", "question 2")
    assert (receipt.page, receipt.seq) == (4, 6)
    assert where(context) == {1: "active", 2: "undone", 3: "undone", 4: "open"}
    context._window._check()


def test_undo_of_nothing_says_so():
    """There is nothing to take back in a new context, or when all was taken back."""
    context = opened()
    with pytest.raises(PageNotFound):
        context.undo()
    context.append_turn("a")
    context.undo()

    with pytest.raises(PageNotFound):
        context.undo()

    assert context.render()[1:] == []


def test_undo_of_the_task_lets_the_next_page_be_the_task():
    """When the first page was taken back, the first one after it is archived last."""
    context = opened()
    context.append_turn("a mistake")
    context.undo()
    for number in range(2, 9):
        context.append_turn(*turn(number))

    context.archive(keep=1)

    assert [index for index, place in where(context).items() if place == "active"] == [2]


def test_undo_of_an_archived_page_takes_its_line():
    """The newest interaction may be archived already: its line goes too."""
    context = talked(3)
    context.archive(keep=0)
    context.undo()

    context.undo()

    assert where(context) == {1: "archived", 2: "undone", 3: "undone"}
    assert "#2" not in json.dumps(context.render()).replace(NOTICE, "")
    context._window._check()


def test_op_id_after_undo_answers_undone():
    """A retry of what was taken back is not stored again, and is no success either."""
    context = opened()
    context.append_turn("a", op_id="op")
    context.undo()

    with pytest.raises(Undone):
        context.append_turn("a", op_id="op")

    assert list(context.messages()) == []


def outgrown(storage: object = None, rounds: int = 40, **given: object) -> Context:
    """A context whose first interaction has outgrown its window, by tool calls."""
    context = opened(storage, window=1_200, **given)
    context.append_turn("the task")
    for number in range(rounds):
        context.append_turn(calling(call(f"c{number}")), result(f"c{number}", f"result {number} " + "word " * 40))
        context.render()
    return context


def test_page_that_outgrows_the_window_is_split():
    """The middle of the open page is archived as pages of their own; the task and the newest calls stay."""
    context = outgrown()

    pages = list(context.pages())
    shown = context.render()

    assert [page.where for page in pages] == ["open", *["archived"] * (len(pages) - 1)]
    assert len(pages) > 2
    assert {page.continues for page in pages[1:]} == {1}
    assert sum(page.entries for page in pages) == 81
    assert any(each["content"] == "the task" for each in shown)
    assert "result 39" in shown[-1]["content"]
    assert context.report().turn == 0
    context._window._check()


def test_entries_of_a_split_page_keep_their_numbers():
    """An entry that was split off is found under the number that it had, by the open page's index too."""
    context = outgrown()

    for ordinal in (1, 2, 3, 40, 81):
        [message] = context.recall_page(1, ordinal)
        assert message == list(context.messages())[ordinal - 1]


def test_undo_of_a_split_page_takes_the_whole_interaction():
    """However many pages an interaction was split into: one undo takes all of it."""
    storage = EphemeralStorage()
    context = outgrown(storage)
    pages = len(list(context.pages()))

    taken = context.undo()

    assert len(taken) == 81
    assert taken[0]["content"] == "the task"
    assert set(where(context).values()) == {"undone"}
    assert list(context.messages()) == []
    assert context.append_turn("again").page == pages + 1
    context._window._check()
    assert json.dumps(opened(storage, window=1_200).render()) == json.dumps(context.render())


def test_pin_of_a_part_of_the_open_page_is_refused():
    """A part that was split off the open page can't come back while it is open."""
    context = outgrown()

    with pytest.raises(InvalidSetting, match="recall it instead"):
        context.pin(2)


def waiting_for_x(*before: dict, storage: object = None) -> Context:
    """A context of 1,000 tokens whose open page ends in a large tool group that waits for the result of x."""
    context = opened(storage, window=1_000)
    context.append_turn(*before)
    context.append_turn(calling(call("x"), call("y"), call("z")), result("y", "r " * 140), result("z", "r " * 140))
    return context


def test_open_group_stays_whole_when_a_pending_message_starts_an_edition():
    """Making room for a message that is not appended after all never takes the open tool group apart."""
    storage = EphemeralStorage()
    said = [{"role": "assistant", "content": "a " * 100}] * 3
    context = waiting_for_x({"role": "user", "content": "task"}, *said, storage=storage)

    context.render("p " * 450)
    context.append_turn(result("x", "the result"))

    shown = context.render()
    assert json.dumps(shown).count("the result") == 1
    assert json.dumps(opened(storage, window=None).render()) == json.dumps(shown)
    context._window._check()


def test_page_that_is_split_keeps_something():
    """However little room there is, the open page is never empty."""
    context = waiting_for_x(*[{"role": "assistant", "content": "a " * 140}] * 2)

    context.render("p " * 560)

    context._window._check()
    assert all(page.entries > 0 for page in context.pages())


def test_late_result_that_is_clipped_stays_clipped_behind_an_open_group():
    """What was shown clipped is shown so in every rendering, also with pending messages."""
    context = opened(window=2_000)
    context.append_turn("go", calling(call("x")), "next", calling(call("y")), result("x", "late " * 3_000))
    before = [each for each in context.render(strict=False) if "late result" in str(each["content"])]

    after = [each for each in context.render("never mind") if "late result" in str(each["content"])]

    assert after == before
    assert context.report().total <= context.report().budget


# -- presets and rules


def test_original_preset_archives_one_page_a_turn():
    """n = 5: from the sixth closed page on, each turn archives exactly the oldest one."""
    events: list[Event] = []
    context = opened(preset="original", window=32_000, on_event=events.append)
    archived = []
    for number in range(1, 15):
        events.clear()
        context.append_turn(*turn(number))
        archived.append([event.pages for event in events if event.kind == "edition"])

    assert archived == [[]] * 6 + [[(number,)] for number in range(1, 9)]
    assert context._window.settings.contents_tokens == 2_000


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
    context._window._check()


# -- stores, restarts, threads


def test_contexts_in_one_store_know_nothing_of_each_other(tmp_path):
    """Many contexts share one file: messages, op_ids, pages and settings are each one's own."""
    with contextlib.closing(SQLiteStorage(tmp_path / "all.db")) as storage:
        one, other = opened(storage, id="one"), opened(storage, id="other", window=8_000)
        for number in range(3):
            one.append_turn(f"one {number}", op_id=f"op {number}")
            assert not other.append_turn(f"other {number}", op_id=f"op {number}").duplicate
        one.archive(keep=0)
        one.close()

        assert [each["content"] for each in other.messages()] == ["other 0", "other 1", "other 2"]
        assert where(other) == {1: "active", 2: "active", 3: "open"}
        assert (other.report().window, opened(storage, id="one", window=None).report().window) == (8_000, 4_000)


@pytest.mark.parametrize("kind", ["ram", "file"])
def test_restart_renders_the_same_bytes(kind, tmp_path):
    """A context that is opened again from its store shows the same, at every step."""
    with contextlib.closing(SQLiteStorage(tmp_path / "all.db")) as file:
        storage = EphemeralStorage() if kind == "ram" else file
        context = opened(storage, window=1_200, system="Be kind.")
        for number in range(30):
            context.append_turn(*turn(number, 20), calling(call("a", arguments={"text": "word " * 300})))
            context.append_turn(result("a", "word " * (number * 17)))
            if number % 7 == 3:
                context.recall_page(1 + number // 2)
            if number % 9 == 4:
                context.pin(number)
            if number % 9 == 8:
                context.unpin(number - 4)
            shown = json.dumps(context.render(tools=[OWN_TOOL]))

            again = opened(storage, window=None)

            assert json.dumps(again.render(tools=[OWN_TOOL])) == shown
            assert again.report().tokens == context.report().tokens
            again._window._check()
            context = again
        assert context.verify() == []


def test_new_window_counter_and_prompt_at_open_win():
    """What is given at open takes the place of what is stored, and is stored."""
    storage = EphemeralStorage()
    context = talked(30, size=30, storage=storage, system="Old.")
    context.close()

    smaller = opened(storage, window=1_300, system="New.", counter=lambda text: 2 * words(text))
    window = smaller._window
    counted = window.common.tokens
    real = sum(window.weigh(message) for message in window.view[1:])
    shown = smaller.render()

    assert counted == real, "what was stored is counted anew, by the new counter"
    assert shown[0]["content"].startswith("New.")
    assert smaller.report().total <= smaller.report().budget < 1_300
    again = opened(storage, window=None, counter=lambda text: 2 * words(text))
    assert again.render() == shown
    assert [each["content"] for each in again.messages()] == [
        each["content"] for n in range(1, 31) for each in turn(n, 30)
    ]


def test_eight_threads_appending_stay_consistent():
    """Threads share a context: every append is there once, whole, and the window holds its invariants."""
    context = opened(window=1_500)
    start = threading.Barrier(8)

    def work(worker: int) -> list[Receipt]:
        start.wait()
        receipts = []
        for number in range(15):
            receipts.append(
                context.append_turn(f"{worker} asks {number}", {"role": "assistant", "content": f"to {worker}"})
            )
            context.render("pending", strict=False)
            if number % 5 == 4:
                context.recall_page(receipts[0].page)
                context.report()
        return receipts

    with ThreadPoolExecutor(8) as pool:
        receipts = [each for done in pool.map(work, range(8)) for each in done]

    assert sorted(each.seq for each in receipts) == list(range(0, 240, 2))
    assert sorted(each.page for each in receipts) == list(range(1, 121))
    for receipt in receipts:
        [user, reply] = context.recall_page(receipt.page)
        assert reply["content"] == f"to {user['content'].split()[0]}"
    context._window._check()
    assert context.verify() == []


def test_closed_context_says_so():
    """After close every call is HandlePoisoned, closing again is fine, and a store of one's own stays open."""
    storage = EphemeralStorage()
    context = opened(storage)
    context.append_turn("a")
    context.close()
    context.close()

    for use in (
        context.render,
        context.undo,
        context.archive,
        context.report,
        context.verify,
        context.flush,
        context.pages,
        context.messages,
        lambda: context.append_turn("b"),
        lambda: context.recall_page(1),
        lambda: context.pin(1),
        lambda: context.answers({"role": "assistant", "content": "x"}),
        lambda: context.functions["recall_page"](1),
    ):
        with pytest.raises(HandlePoisoned):
            use()
    assert [each["content"] for each in opened(storage).messages()] == ["a"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"id": ""}, "id"),
        ({"id": 5}, "id"),
        ({"window": None}, "window"),
        ({"window": 10}, "window"),
        ({"preset": "fast"}, "preset"),
        ({"system": 5}, "system"),
        ({"counter": 5}, "counter"),
        ({"archive_share": 2.0}, "archive_share"),
    ],
)
def test_open_with_an_argument_that_makes_no_sense_is_refused(given, name):
    """The error names the argument, and nothing is stored."""
    storage = EphemeralStorage()

    with pytest.raises(InvalidSetting) as caught:
        opened(storage, **given)

    assert caught.value.name == name
    assert storage.contexts() == []


def test_open_of_something_that_is_no_store_is_refused():
    """A store is a path or a Storage."""
    with pytest.raises(InvalidSetting, match="store"):
        opened(42)


def test_repr_and_id_name_the_context():
    """A context can be told from another in a debugger, open or closed."""
    context = talked(2)
    context.close()

    assert repr(context) == "<Context 'alice': 4 messages, page #2>"
    assert context.id == "alice"


def test_late_result_of_a_call_that_was_interrupted_is_known_without_a_search():
    """A result for a call of an archived page is taken without reading the store: its id was remembered."""

    class Searched(EphemeralStorage):
        searches = 0

        def entries(self, context, first=0, end=None, *, containing=None):
            self.searches += containing is not None
            return super().entries(context, first, end, containing=containing)

    storage = Searched()
    context = Context.open(storage, id="a", window=4_000)
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
    context.append_turn("book", {"role": "assistant", "content": None, "tool_calls": [call]}, "never mind")
    context.append_turn({"role": "assistant", "content": "fine"}, "next")
    context.archive(keep=0)

    context.append_turn({"role": "tool", "tool_call_id": "c1", "content": "booked"})

    assert storage.searches == 0
    assert "late-result" in context.render()[-1]["content"]
