"""What went wrong elsewhere when a memory was tidied, by rules or by a model, and can't here. The numbers are public
issues.
"""

import json

import pytest

from tests.context.kit import again, call, calling, opened, result, talked, turn, where

NONSENSE = {
    "nothing": lambda pages, turn: None,
    "a number": lambda pages, turn: 7,
    "prose": lambda pages, turn: "Sure! Here is the list:",
    "pages that never were": lambda pages, turn: [0, -1, 99, 10**30],
    "other types": lambda pages, turn: [True, 1.5, "1", None],
    "everything": lambda pages, turn: [page.index for page in pages],
}


@pytest.mark.parametrize("rule", NONSENSE.values(), ids=NONSENSE)
def test_decision_that_makes_no_sense_costs_no_source(storage, rule):
    """hindsight#3876: output against the schema, and the sources were deleted. A rule raises, or moves lines only."""
    context = talked(8, storage=storage, rules=[rule])
    before = list(context.messages())

    for _ in range(2):
        try:
            context.archive(keep=0)
        except TypeError:
            assert not context.report().pages["archived"], "nothing happened then"
        context.append_turn("Go on.")

    assert [context.recall_page(index) for index in range(1, 9)] == [list(turn(number)) for number in range(1, 9)]
    assert list(context.messages())[: len(before)] == before
    assert again(storage).verify() == []


def test_page_that_is_tidied_away_is_told_and_still_there(storage):
    """nowledge-mem#81: curation deleted for good, without an event. Unloading takes a line, is told, keeps the page."""
    events = []
    context = talked(4, storage=storage, rules=[lambda pages, turn: [page.index for page in pages]])
    context.on_event = events.append
    context.archive(keep=0)
    context.append_turn("Go on.")
    context.archive(keep=0)

    gone = [index for index, place in where(context).items() if place == "unloaded"]

    assert gone
    assert sorted(index for event in events if event.kind == "unload" for index in event.pages) == gone
    assert [context.recall_page(index) for index in gone] == [list(turn(number)) for number in gone]


def test_same_thing_said_twice_is_there_twice(storage):
    """mem0#1674: adding the same memory again deleted the old one. Twice is twice, and the first one stays."""
    context = talked(1, storage=storage)
    for _ in range(3):
        context.append_turn(*turn(1))
    context.archive(keep=0)

    assert list(again(storage).messages()) == [*turn(1)] * 4
    assert [context.recall_page(index) for index in (1, 2, 3, 4)] == [list(turn(1))] * 4


@pytest.mark.parametrize("arguments", ["", "{", '{"facts": ["I like', "Sure! {}", "null", '{"a": 1, "a": 2}', "\x00"])
def test_malformed_json_of_a_model_is_kept_as_it_is(storage, arguments):
    """mem0#4540: malformed JSON became an empty list, in silence. What a model wrote is kept to the character."""
    said = [calling(call("a", "remember", arguments)), result("a", arguments)]
    context = opened(storage)
    context.append_turn("go", *said)
    context.archive(keep=0)

    assert list(again(storage).messages())[1:] == said
    assert context.recall_page(1)[1:] == said


@pytest.mark.parametrize("empty", ["", " ", "\n", "\u200b"])
def test_empty_text_is_kept_and_listed(storage, empty):
    """mem0#2307: an empty text made a malformed vector. It is a message like any other, and its page has a line."""
    said = [{"role": "user", "content": empty}, {"role": "assistant", "content": empty}]
    context = opened(storage)
    context.append_turn(*said)
    context.append_turn("Go on.")
    context.archive(keep=0)

    assert context.recall_page(1) == said
    assert all(page.title is None or page.title.strip() for page in context.pages())


@pytest.mark.parametrize("index", [0, 99, -1, 10**30, "7f3a", None])
def test_id_that_a_model_made_up_is_answered_and_changes_nothing(storage, index):
    """mem0#3931, #4708: an id that the model made up was a KeyError, or its item was dropped. It gets an answer."""
    context = talked(3, storage=storage)
    context.archive(keep=0)
    before = list(context.pages())

    told = context.answer(call("a", "recall_page", json.dumps({"index": index})))

    assert told["content"].startswith("error: ")
    assert list(context.pages()) == before
