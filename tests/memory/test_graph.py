"""The graph: told by pages, spread along, and forgotten with them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memci.memory.backend import PageRecord
from memci.memory.graph import FAN, FRONT, Graph, Relation, activate, name_key, relations, seeds

names = st.sampled_from(["Mel", "mel", "Rex", "Oslo", "上海", "小明", "Anna", "violin", "", "  "])
pages = st.tuples(st.just("c"), st.integers(1, 4))
statements = st.builds(
    Relation, names, st.sampled_from(["with", "play", "住在"]), names, pages, st.none() | st.floats(0, 9)
)


def told(*texts, role="user", **more):
    return PageRecord("c", 1, 1, tuple((n, {"role": role, "content": text, **more}) for n, text in enumerate(texts, 1)))


def says(text, **more):
    return [(each.source, each.kind, each.target) for each in relations(told(text, name="Mel", **more))]


def edge(source, target, page=1, kind="with"):
    return Relation(source, kind, target, ("c", page))


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


class GraphMachine(RuleBasedStateMachine):
    """The graph against the plain list of what was told."""

    def __init__(self):
        super().__init__()
        self.graph = Graph()
        self.model: list[Relation] = []

    @rule(said=st.lists(statements, max_size=4))
    def merge(self, said):
        self.graph.merge(said)
        self.model += said

    @rule(gone=st.sets(pages, max_size=2))
    def forget(self, gone):
        self.graph.forget(gone)
        self.model = [each for each in self.model if each.page not in gone]

    @invariant()
    def is_what_was_told(self):
        self.graph._check()
        ends = {
            name_key(name)
            for each in self.model
            for name in (each.source, each.target)
            if name_key(each.source) and name_key(each.target) and name_key(each.source) != name_key(each.target)
        }
        assert {key for key in ends if key in self.graph} == ends
        assert len(self.graph) == len(ends)

    @invariant()
    def spreads_within_bounds(self):
        found = activate(self.graph, ["mel"], limit=4)
        assert len(found) <= 4
        assert all(0 < value <= 1 for _, value in found)
        assert found == sorted(found, key=lambda one: (-one[1], one[0]))
        assert not found or found[0] == ("mel", 1.0)


TestGraph = GraphMachine.TestCase


def test_merge_counts_support_whatever_the_case():
    """T11: a name is one concept in any case; a relation weighs as much as it is told, and knows its pages."""
    graph = Graph([edge("Mel", "Rex", 1, "owns"), edge("MEL", "rex", 2, "owns"), edge("mel", "Rex", 2, "owns")])

    (only,) = graph.relations("mel")
    assert (only.source, only.kind, only.target, only.weight) == ("mel", "owns", "rex", 3)
    assert graph.pages("mel") == (("c", 2), ("c", 1))
    assert graph.name("rex") == "Rex"


def test_activation_is_shared_by_weight_and_decays():
    """T12: a concept passes on half of what it has, divided by the weights of its relations."""
    graph = Graph([edge("a", "b", 1), edge("a", "b", 2), edge("a", "b", 3), edge("a", "c", 1), edge("c", "d", 1)])

    found = dict(activate(graph, ["a"]))

    assert found == {"a": 1.0, "b": 0.5 * 3 / 4, "c": 0.5 / 4, "d": 0.5 / 4 * 0.5 / 2}


def test_activation_stops_after_its_hops_and_below_its_floor():
    """T12: it goes three hops far, and what fell below the floor passes nothing on."""
    graph = Graph([edge("a", "b"), edge("b", "c"), edge("c", "d"), edge("d", "e")])

    assert [key for key, _ in activate(graph, ["a"], floor=0.0)] == ["a", "b", "c", "d"]
    assert [key for key, _ in activate(graph, ["a"], floor=0.2)] == ["a", "b", "c"]
    assert activate(graph, ["a"], hops=0) == [("a", 1.0)]
    assert activate(graph, {"a": 0.4, "nobody": 1.0}, hops=0) == [("a", 0.4)]


def test_activation_looks_at_a_bounded_part_of_a_large_graph():
    """T12: of a concept with thousands of relations only the strongest take part."""
    graph = Graph(edge("hub", f"spoke {number}", page) for page in (1, 2) for number in range(2_000 // page))

    found = activate(graph, ["hub"], limit=10_000)

    assert len(found) == 1 + FAN
    assert all(int(key.split()[1]) < 1_000 for key, _ in found[1:])
    assert FRONT * FAN * 3 < 5_000
    graph._check()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("What does mel's dog Rex eat?", ("mel", "rex")),
        ("Did Mia Li call?", ("mia li",)),
        ("小明住在上海吗", ("小明", "上海")),
        ("민수는 어디에 살아요?", ("민수",)),
        ("Where is Sweden?", ()),
        ("", ()),
    ],
)
def test_seeds_are_the_names_in_the_query(query, found):
    """A query names concepts in its own words, the longest name at each place, with spaces or without."""
    graph = Graph([edge("Mel", "Rex"), edge("Mia", "Mia Li"), edge("小明", "上海"), edge("민수", "서울")])

    assert seeds(graph, query) == found


@given(st.text(max_size=60))
def test_seeds_of_any_query_are_in_the_graph(query):
    """Whatever is asked, only what is known is a seed."""
    graph = Graph([edge("Mel", "Rex"), edge("小明", "上海")])

    assert all(key in graph for key in seeds(graph, query))
