"""The graph: what pages tell, and how activation spreads along it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from memci.memory.tiers.graph import FAN, FRONT, Graph, Relation, activate, name_key, seeds
from tests.invariants import check

names = st.sampled_from(["Mel", "mel", "Rex", "Oslo", "上海", "小明", "Anna", "violin", "", "  "])
pages = st.tuples(st.just("c"), st.integers(1, 4))
statements = st.builds(
    Relation, names, st.sampled_from(["with", "play", "住在"]), names, pages, st.none() | st.floats(0, 9)
)


def edge(source, target, page=1, kind="with"):
    return Relation(source, kind, target, ("c", page))


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

    @invariant()
    def is_what_was_told(self):
        check(self.graph)
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
TestGraph.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)


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

    assert [key for key, _ in activate(graph, ["a", "nobody"])] == ["a", "b", "c", "d"]
    heavy = [edge("b", f"x{number}", page) for number in range(3) for page in range(1, 5)]
    assert "d" not in dict(activate(Graph([edge("a", "b"), *heavy, edge("b", "c"), edge("c", "d")]), ["a"]))


def test_activation_looks_at_a_bounded_part_of_a_large_graph():
    """T12: of a concept with thousands of relations only the strongest take part."""
    graph = Graph(edge("hub", f"spoke {number}", page) for page in (1, 2) for number in range(2_000 // page))

    found = activate(graph, ["hub"], limit=10_000)

    assert len(found) == 1 + FAN
    assert all(int(key.split()[1]) < 1_000 for key, _ in found[1:])
    assert FRONT * FAN * 3 < 5_000
    check(graph)


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


@given(st.one_of(st.text(), st.lists(st.sampled_from(["dog", "'s", " ", ".", "’s", "*", "ſ", "-", "K"])).map("".join)))
def test_key_of_a_key_is_itself(name):
    """Whatever a concept is called, its key is found again by the key: a search meets no key that is not there."""
    assert name_key(name_key(name)) == name_key(name)
