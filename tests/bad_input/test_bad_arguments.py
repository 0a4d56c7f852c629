"""Arguments that make no sense: each is named, and nothing has changed."""

import math
from typing import Any

import pytest

from memci import Context
from memci.errors import BudgetExceeded, HandlePoisoned, InvalidSetting, MemciError, OpConflict, OpenToolGroup
from memci.storage import Storage
from tests.door import open_context

CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
HELLO = {"role": "user", "content": "Hello"}


def user(content: object, **extra: object) -> dict[str, object]:
    """Return a user's message."""
    return {"role": "user", "content": content, **extra}


def calls(*made: object) -> dict[str, object]:
    """Return an assistant's message with these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(made)}


def test_a_wrong_setting_at_reopening_changes_nothing(storage: Storage, refused: Any) -> None:
    """The context keeps the settings that it had."""
    for wrong in ({"window": 10}, {"reply": 3_000}, {"preset": "fast"}, {"system": 7}):
        refused(lambda wrong=wrong: open_context(storage, id="x", **wrong), InvalidSetting)  # type: ignore[misc]

    assert Context.open(storage, id="x").report().window == 2_000


def test_a_larger_prompt_at_reopening_changes_nothing(storage: Storage, refused: Any) -> None:
    """A context that can't hold its new prompt keeps the old one."""
    refused(lambda: Context.open(storage, id="x", system="word " * 3_000), BudgetExceeded)

    assert Context.open(storage, id="x").render()[0]["content"].startswith("Be brief.")


def test_pending_messages_and_tools_that_can_never_fit_are_named(context: Context, refused: Any) -> None:
    """What is too large is in the error's parts, and the next rendering is as it was."""
    tool = {"type": "function", "function": {"name": "f", "description": "word " * 3_000, "parameters": {}}}
    before = context.render()

    with pytest.raises(BudgetExceeded) as caught:
        context.render(tools=[tool])

    assert caught.value.parts["tools"] > 3_000
    assert context.render() == before


@pytest.mark.parametrize("op_id", ["", 7, b"x", True, ["x"]], ids=repr)
def test_an_op_id_is_a_text(context: Context, refused: Any, op_id: Any) -> None:
    """A name that is none is refused before anything is stored."""
    error = refused(lambda: context.append_turn("Hello", op_id=op_id), InvalidSetting)

    assert isinstance(error, InvalidSetting)
    assert error.name == "op_id"


def test_an_op_id_with_other_messages_is_a_conflict(context: Context, refused: Any) -> None:
    """The error names the op_id."""
    error = refused(lambda: context.append_turn("Other", op_id="first"), OpConflict)

    assert isinstance(error, OpConflict)
    assert error.op_id == "first"


@pytest.mark.parametrize(
    "usage", [7, "x", {}, {"prompt_tokens": "9"}, {"prompt_tokens": -1}, {"prompt_tokens": 1.5}, {"total": 1}], ids=repr
)
def test_a_usage_says_what_the_request_cost(context: Context, refused: Any, usage: Any) -> None:
    """A usage without its tokens is refused, and the messages with it."""
    error = refused(lambda: context.append_turn("Hello", usage=usage), InvalidSetting)

    assert isinstance(error, InvalidSetting)
    assert error.name == "usage"
    assert "prompt_tokens" in str(error)


@pytest.mark.parametrize(
    "at", ["yesterday", 7, "", math.nan, ["2026"], "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"], ids=repr
)
def test_a_moment_is_a_datetime_or_iso_8601(context: Context, refused: Any, at: Any) -> None:
    """Everything else is refused, and the messages with it."""
    error = refused(lambda: context.append_turn("Hello", at=at), InvalidSetting)

    assert isinstance(error, InvalidSetting)
    assert error.name == "at"


@pytest.mark.parametrize(
    "given", [{"query": None}, {"k": None}, {"k": 0}, {"k": True}, {"budget": 0}, {"since": "soon"}], ids=repr
)
def test_a_search_says_what_it_takes(context: Context, refused: Any, given: dict[str, Any]) -> None:
    """A wrong argument is named."""
    error = refused(lambda: context.search_memory(**{"query": "Oslo", **given}), InvalidSetting)

    assert isinstance(error, InvalidSetting)
    assert error.name in given


@pytest.mark.parametrize("tools", [[7], ["x"], [None]], ids=repr)
def test_a_tool_is_an_object(context: Context, refused: Any, tools: Any) -> None:
    """What is no schema is refused by a typed error."""
    refused(lambda: context.render(tools=tools), MemciError)


def test_calls_without_results_are_named(context: Context, refused: Any) -> None:
    """A rendering that no provider accepts is refused with the ids that are missing."""
    context.append_turn(
        calls({**CALL, "id": "a"}, {**CALL, "id": "b"}), {"role": "tool", "tool_call_id": "b", "content": "x"}
    )

    error = refused(context.render, OpenToolGroup)

    assert isinstance(error, OpenToolGroup)
    assert error.missing == ("a",)
    assert "'a'" in str(error)


def test_a_closed_context_says_so(context: Context) -> None:
    """Every call of a closed context is the same typed error; closing twice is fine."""
    context.close()
    context.close()

    for act in (
        context.render,
        lambda: context.append_turn("Hello"),
        lambda: context.recall_page(1),
        lambda: context.pin(1),
        lambda: context.unpin(1),
        context.archive,
        context.undo,
        context.pages,
        context.messages,
        context.report,
        context.verify,
        context.flush,
        lambda: context.answers(calls(CALL)),
        lambda: context.answer(CALL),
        lambda: context.functions["recall_page"](1),
    ):
        with pytest.raises(HandlePoisoned, match="closed"):
            act()
