"""Knowledge: two bounded lists of facts, each with the pages that said it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.tiers.facts import Known, learn_fact, same


def known(text, index=1, **more):
    return Known(text, "user", "c", index, 1, **more)


def learn(facts, key, fact, most=100):
    fact, id_, evicted = learn_fact(facts, fact, most=most)
    for each in evicted:
        del facts[each]
    facts[key if id_ is None else id_] = fact


def learned(*new):
    facts = {}
    for key, fact in enumerate(new, 100):
        learn(facts, key, fact)
    return list(facts.values())


def test_knowledge_of_the_same_said_twice_is_one_fact():
    """P16: near-duplicates merge, and the later words stand."""
    (fact,) = learned(known("I live in Oslo.", at=1.0), known("i LIVE in oslo!", index=5, at=2.0))

    assert (fact.text, fact.index) == ("i LIVE in oslo!", 5)


@pytest.mark.parametrize("gone", [1, 5, 7])
def test_knowledge_of_several_pages_outlives_one_of_them(gone):
    """What is left has the words of the pages that are left, and nothing of the other one."""
    said = {1: "I live in Oslo.", 5: "i LIVE in oslo!", 7: "I live in OSLO"}
    told = [known(text, index=page, at=float(page), pages=(page,)) for page, text in said.items()]
    (fact,) = learned(*told)
    left = [each for each in told if each.index != gone]

    found = fact.without([gone])

    assert (found.text, found.index, found.at) == (left[-1].text, left[-1].index, left[-1].at)
    assert said[gone] not in {found.text, *(each.text for each in found.sayings)}
    assert fact.without([1, 5, 7]) is None


def test_knowledge_that_a_program_wrote_goes_without_its_page_to_the_words_of_others():
    """Its words stand before later ones; what it replaced may be derived again when they are gone."""
    (fact,) = learned(
        known("I live in Oslo!", at=1.0, pages=(1,), authored=True, instead="x"),
        *(known("I live in Oslo.", index=page, at=float(page), pages=(page,)) for page in range(2, 12)),
    )

    assert (fact.text, fact.index, fact.authored, fact.instead) == ("I live in Oslo!", 11, True, "x")
    assert fact.without([11]).text == "I live in Oslo!"
    left = fact.without([1])
    assert (left.text, left.authored, left.instead) == ("I live in Oslo.", False, "")


def test_knowledge_of_an_old_page_that_comes_late_keeps_the_newer_words():
    """Pages may be analysed out of order: what was said later stays."""
    (fact,) = learned(known("I live in Oslo!", index=5, at=2.0), known("I live in Oslo.", at=1.0))

    assert fact.text == "I live in Oslo!"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("I have 2 dogs at home now", "I have 3 dogs at home now"),
        ("I like this old violin", "I don't like this old violin"),
        ("I live in Oslo", "I live in Bergen"),
        ("我喜欢辣的菜和面条", "我不喜欢辣的菜和面条"),
        ("저는 해산물을 먹어요", "저는 해산물을 안 먹어요"),
    ],
)
def test_knowledge_that_figures_or_a_not_tell_apart_stays_apart(one, two):
    """P16: facts that contradict each other are both kept, however alike their words are."""
    assert not same(known(one), known(two))
    assert len(learned(known(one), known(two))) == 2


def test_knowledge_that_is_alike_in_words_is_the_same():
    """Another way to say it is no other fact."""
    one, two = known("I work as a nurse in Oslo"), known("I am working as an Oslo nurse")

    assert same(one, two)
    assert not same(one, replace(two, about="assistant"))


def test_knowledge_that_is_full_loses_what_was_retrieved_longest_ago():
    """P16, M10: least recently retrieved goes first, not the oldest; and never the one that comes."""
    facts = {1: known("a b", retrieved=1.0).found(5.0), 2: known("c d", retrieved=2.0)}

    _, id_, evicted = learn_fact(facts, known("e f", retrieved=0.0), most=2)

    assert (id_, evicted) == (None, [2])


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 9)), max_size=30), st.integers(1, 4))
def test_knowledge_never_exceeds_its_limit(said, limit):
    """P25: the limit that is asked for is the one that holds, and the latest fact is always there."""
    facts = {}
    for key, (letter, at) in enumerate(said):
        fact = known(f"{letter}{letter} word", index=key, at=float(at), retrieved=float(at), pages=(key,))
        learn(facts, key, fact, limit)

        assert len(facts) <= limit
        assert any((key,) == told.pages for fact in facts.values() for told in fact.sayings or (fact,))
