"""Relations: what pages tell of concepts, without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.memory.backend import PageRecord
from memci.memory.tiers.graph import PER_PAGE, relations


def told(*texts, role="user", **more):
    return PageRecord("c", 1, 1, tuple((n, {"role": role, "content": text, **more}) for n, text in enumerate(texts, 1)))


def says(text, **more):
    return [(each.source, each.kind, each.target) for each in relations(told(text, name="Mel", **more))]


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("I play the violin in Oslo.", ("Mel", "play", "violin")),
        ("I've been learning Spanish for years.", ("Mel", "learn", "Spanish")),
        ("I want to move to Bergen.", ("Mel", "move", "Bergen")),
        ("Yesterday Anna adopted a puppy.", ("Anna", "adopt", "puppy")),
        ("My wife Anna works at Google.", ("Mel", "wife", "Anna")),
        ("My dog's name is Rex", ("Mel", "dog", "Rex")),
        ("Anna is a nurse.", ("Anna", "is", "nurse")),
        ("We met Tom and Mia Li there.", ("Tom", "with", "Mia Li")),
        ("We met Vincent van Gogh there.", ("Mel", "meet", "Vincent van Gogh")),
        ("我住在上海，养了一只狗", ("Mel", "住在", "上海")),
        ("小明喜歡籃球", ("小明", "喜欢", "籃球")),
        ("私は東京に住んでいます", ("Mel", "住ん", "東京")),
        ("민수는 강아지를 키워요", ("민수", "키워", "강아지")),
    ],
)
def test_relations_are_who_does_what(text, relation):
    """Statements of people, in any language, become typed relations between names and things."""
    assert relation in says(text)


@pytest.mark.parametrize("text", ["Thanks!", "Can I go to Oslo?", "Hey Anna! Thanks, Tom!", "我住在上海？", ""])
def test_relations_of_greetings_and_questions_are_none(text):
    """Who is spoken to, or asked of, is told nothing about."""
    assert says(text) == []


def test_relations_of_tools_and_quotes_are_none():
    """What a tool prints, or quotes of another page, is no new statement."""
    page = PageRecord("c", 1, 1, ((1, {"role": "user", "content": "I play violin."}),), quotes=frozenset({1}))

    assert relations(page) == []
    assert relations(told("I play violin.", role="tool")) == []


def test_relations_of_one_sentence_are_all_that_it_tells():
    """Kin, deeds and what is told of together stand beside one another, each end in the words of the page."""
    assert says("My wife Anna adopted a puppy in Oslo.") == [
        ("Mel", "wife", "Anna"),
        ("Anna", "adopt", "puppy"),
        ("Anna", "with", "Oslo"),
        ("Mel", "with", "Oslo"),
    ]


@given(
    st.lists(st.text(alphabet="I met Anna Tom.我住在上海私は東京に저는 강아지를 키워요\n", max_size=200), max_size=4)
)
def test_relations_are_bounded_and_none_twice(texts):
    """A page tells so many relations at most, each once, and each of its own."""
    page = told(*texts)

    found = relations(page)

    assert len(found) == len(set(found)) <= PER_PAGE
    assert all(each.source and each.target and each.page == page.key for each in found)
