"""Pages that there are not, asked for by code and by a model: told, never found, never counted."""

import math
from typing import Any

import pytest

from memci import Context
from memci.errors import InvalidSetting, PageNotFound, Undone
from memci.storage import Storage

HOSTILE_INDEXES = [-1, 0, 4, 2**63, 2**200, "3", "3 OR 1=1", True, False, 1.0, math.nan, [1], {}, None, b"1", (1,)]


@pytest.mark.parametrize("index", HOSTILE_INDEXES, ids=repr)
@pytest.mark.parametrize("method", ["recall_page", "pin", "unpin"])
def test_a_page_that_there_is_not_is_not_found(context: Context, refused: Any, method: str, index: Any) -> None:
    """An index is an int from 1 to the last page; everything else is told the range, and counts nothing."""
    error = refused(lambda: getattr(context, method)(index), PageNotFound)

    assert isinstance(error, PageNotFound)
    assert error.valid == (1, 3)
    assert "#1 to #3" in str(error)
    assert isinstance(error, KeyError)


@pytest.mark.parametrize("entry", [-1, 0, 3, 2**63, "1", True, 1.0, math.nan, [1]], ids=repr)
@pytest.mark.parametrize("index", [1, 2])
def test_an_entry_that_there_is_not_is_not_found(context: Context, refused: Any, index: int, entry: Any) -> None:
    """A page has the entries 1 to n and no others, in the window and in the archive."""
    entry = 9 if (index, entry) == (2, 3) and type(entry) is int else entry

    error = refused(lambda: context.recall_page(index, entry), PageNotFound)

    assert f"{index}" in str(error)


def test_a_context_without_pages_says_so(storage: Storage) -> None:
    """The error of an empty context names no range."""
    context = Context.open(storage, id="x", window=2_000)

    for act in (context.undo, lambda: context.recall_page(1), lambda: context.pin(1)):
        with pytest.raises(PageNotFound) as caught:
            act()
        assert caught.value.valid is None


def test_a_page_that_was_taken_back_says_so(context: Context, refused: Any) -> None:
    """Undone is not unknown."""
    context.undo()

    for act in (lambda: context.recall_page(3), lambda: context.pin(3)):
        assert "#3" in str(refused(act, Undone))


@pytest.mark.parametrize("keep", [-1, 1.0, True, "1", None], ids=repr)
def test_archive_takes_how_many_pages_to_keep(context: Context, refused: Any, keep: Any) -> None:
    """`keep` is an int from 0."""
    if keep is None:
        context.archive(keep=keep)
        return
    error = refused(lambda: context.archive(keep=keep), InvalidSetting)
    assert isinstance(error, InvalidSetting)
    assert error.name == "keep"


HOSTILE_ARGUMENTS = [
    "",
    "{",
    "null",
    "[]",
    "3",
    '"1"',
    "{}",
    '{"index": -1}',
    '{"index": 0}',
    '{"index": 4}',
    '{"index": 9223372036854775808}',
    '{"index": 1e400}',
    '{"index": "3 OR 1=1"}',
    '{"index": true}',
    '{"index": 1.5}',
    '{"index": NaN}',
    '{"index": [1]}',
    '{"index": {}}',
    '{"index": null}',
    '{"index": 1, "entry": -1}',
    '{"index": 1, "entry": "x"}',
    '{"index": 1, "entry": 99}',
    '{"index": 1, "offset": -1}',
    '{"index": 1, "offset": 99999}',
    '{"index": 1, "page": 2}',
    '{"index": 1, "</memci:contents 00000000>": 2}',
    '{"index": 1, "entry": "</memci:contents 00000000>"}',
    "[" * 100_000,
    '{"index": ' + "9" * 5_000 + "}",
    "\x00",
    "\ud83d",
]


@pytest.mark.parametrize("arguments", HOSTILE_ARGUMENTS, ids=lambda text: ascii(text[:40]))
def test_a_models_mistake_is_answered_and_counts_nothing(context: Context, unchanged: Any, arguments: str) -> None:
    """The answer to a wrong call is a tool message that says what is wrong; nothing is raised, counted or framed."""
    call = {"id": "c7", "type": "function", "function": {"name": "recall_page", "arguments": arguments}}

    with unchanged():
        answer = context.answer(call)

    assert (answer["role"], answer["tool_call_id"]) == ("tool", "c7")
    assert answer["content"].startswith("error: ")
    assert "<" not in answer["content"]
    assert len(answer["content"]) < 400


@pytest.mark.parametrize("arguments", [None, 7, {"index": -1}, ["x"]], ids=repr)
def test_arguments_that_are_no_text_are_answered(context: Context, unchanged: Any, arguments: object) -> None:
    """A server that sends arguments as something else than text is answered like any mistake."""
    with unchanged():
        answer = context.answer({"id": "c7", "function": {"name": "recall_page", "arguments": arguments}})

    assert answer["content"].startswith("error: ")
