"""Traits: what the way somebody writes shows."""

from memci.memory.backend import PageRecord
from memci.memory.tiers.profile import DIMENSIONS, Trait, traits, united

CASUAL = ["hey", "whats up?", "lol why?", "haha ok", "how?"]
FORMAL = ["Dear Sir, I would like a quote.", "Could you please confirm the 12 items? Kind regards", "Thank you, Madam."]


def page(*said, index=1, quotes=()):
    messages = [{"role": "user", "content": text} for text in said]
    return PageRecord("c", index, index, tuple(enumerate(messages, 1)), quotes=frozenset(quotes))


def levels(found):
    return {trait.dimension: trait.level for trait in found}


def test_traits_tell_casual_from_formal_writers():
    """How somebody writes shows in three levels, each with its reason and page."""
    casual, formal = levels(traits([page(*CASUAL)])), levels(traits([page(*FORMAL)]))

    assert (casual["formality"], formal["formality"]) == ("low", "high")
    assert (casual["politeness"], formal["politeness"]) == ("low", "high")
    assert (casual["verbosity"], casual["curiosity"], casual["humour"]) == ("low", "high", "high")
    assert {*casual, *formal} <= set(DIMENSIONS)
    assert all(trait.context == "c" and trait.index == 1 and trait.reason for trait in traits([page(*CASUAL)]))


def test_traits_of_too_little_are_none():
    """Two messages, or quotes of old ones, show nothing of a person."""
    assert traits([page("hey", "you")]) == []
    assert traits([page(*CASUAL, quotes=range(1, 6))]) == []


def test_traits_of_one_dimension_are_one():
    """United, a dimension has the newer level."""
    assert united([Trait("humour", "low", "a")], [Trait("humour", "high", "b")]) == (Trait("humour", "high", "b"),)
