"""The knowledge graph: concepts and the relations between them, weighted by the number of statements on pages.

    "My wife Anna adopted a puppy in Oslo."     Mel ──wife──▶ Anna ──adopt──▶ puppy   Mel ──with──▶ Oslo

    "Mel plays the violin in Oslo."        mel ──plays(1)── violin       query: "What does Mel play?"
    "Mel adopted Rex."                      ├──adopted(1)── rex          hop 0   mel 1.0
                                            └──with(1)── oslo            hop 1   violin, rex, oslo: 1.0 · ⅓ · 0.5

A model finds the relations. Activation spreads from the concepts that a query names: a hop passes `activation ·
weight / all weights there · decay` along a relation, either way. Only the strongest relations of the most active
concepts take part, so that the work of a query is bounded.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import nsmallest

from ...text.language.marks import normalize
from ..backend import PageKey

FAN = 24  # relations along which a concept passes activation at most, so that a hop is bounded
FRONT = 48  # concepts from which a hop starts at most, so that a query is bounded
PER_PAGE = 40  # relations that a page gives at most: a bound for the answer of a model
_SEEDS = 8  # concepts of a query that activation starts from: a question names few
_DECAY, _HOPS, _FLOOR = 0.5, 3, 0.05  # what a hop passes on, how many there are, and what passes nothing on
_WORDS, _WIDE = 4, 8  # words of a name in a query at most, and characters in scripts without spaces
_QUERY = 2_000  # characters of a query in which names are looked up, so that the work is bounded


@dataclass(frozen=True, slots=True)
class Relation:
    """A statement of a page: *source* *kind* *target*."""

    source: str
    kind: str  # a verb or a role
    target: str
    page: PageKey
    at: float | None = None


@dataclass(slots=True, eq=False)
class Edge:
    """All equal statements about two concepts."""

    source: str  # key of a name
    kind: str
    target: str
    pages: dict[PageKey, int] = field(default_factory=dict)  # number of statements by page
    weight: int = 0  # number of statements
    last: float | None = None


@dataclass(slots=True, eq=False)
class _Node:
    names: dict[str, int] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    strongest: list[Edge] | None = None  # its strongest edges, at most `FAN`; None after a change
    weight: int = 0


class Graph:
    """Concepts and relations in memory."""

    __slots__ = ("_edges", "_nodes")

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self._nodes: dict[str, _Node] = {}
        self._edges: dict[tuple[str, str, str], Edge] = {}
        self.merge(relations)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, key: object) -> bool:
        return key in self._nodes

    def merge(self, relations: Iterable[Relation]) -> None:
        """Add relations of pages. O(relations)."""
        for each in relations:
            source, kind, target = name_key(each.source), name_key(each.kind), name_key(each.target)
            if not source or not target or source == target:
                continue
            if kind == "with" and target < source:
                source, target = target, source
            names = {name_key(name): name for name in (each.source, each.target)}
            key = source, kind, target
            known = self._edges.get(key)
            edge = known or self._edges.setdefault(key, Edge(*key))
            edge.weight += 1
            edge.pages[each.page] = edge.pages.get(each.page, 0) + 1
            edge.last = max((at for at in (edge.last, each.at) if at is not None), default=None)
            for end in (source, target):
                node = self._nodes.setdefault(end, _Node())
                node.weight += 1
                node.names[names[end]] = node.names.get(names[end], 0) + 1
                node.strongest = None
                if known is None:
                    node.edges.append(edge)

    def name(self, key: str) -> str:
        """Return the most frequent name of a concept."""
        names = self._nodes[key].names
        return max(names, key=lambda name: (names[name], name))

    def relations(self, key: str, limit: int = 5) -> Sequence[Edge]:
        """Return the strongest relations of a concept. O(its relations) after a change of it, else O(limit)."""
        node = self._nodes[key]
        if node.strongest is None:
            node.strongest = nsmallest(FAN, node.edges, key=_strength)
        return node.strongest[:limit]

    def pages(self, key: str, limit: int = 10) -> tuple[PageKey, ...]:
        """Return the pages with most statements about a concept."""
        told: dict[PageKey, int] = {}
        for edge in self.relations(key, FAN):
            for page, count in edge.pages.items():
                told[page] = told.get(page, 0) + count
        return tuple(sorted(told, key=lambda page: (-told[page], page))[:limit])

    def most_stated(self, limit: int) -> tuple[tuple[str, int], ...]:
        """Return the names of the most frequent concepts, with their numbers of statements. O(concepts)."""
        stated = [(self.name(key), node.weight) for key, node in self._nodes.items()]
        return tuple(sorted(stated, key=lambda each: (-each[1], each[0]))[:limit])


def name_key(name: str) -> str:
    """Return the key of a name, in which case, width and marks at the ends make no difference."""
    key, before = name, None
    while key != before:  # "the dog's 's." ends in marks again, and the key of a key must be the key
        before, folded = key, normalize("NFKC", key).casefold().replace("’", "'")
        key = " ".join(folded.split()).rstrip(_MARKS).removesuffix("'s").strip(_MARKS)
    return key


def seeds(graph: Graph, query: str) -> tuple[str, ...]:
    """Return the keys of the concepts that *query* names, in order, the longest name at each place. O(length)."""
    words = normalize("NFKC", query[:_QUERY]).split()
    found: dict[str, None] = {}
    start = 0
    while start < len(words) and len(found) < _SEEDS:
        for length in range(min(_WORDS, len(words) - start), 0, -1):
            key = name_key(" ".join(words[start : start + length]))
            if key in graph:
                found[key] = None
                start += length - 1
                break
        else:
            found.update(dict.fromkeys(_names_inside(graph, words[start].casefold())))
        start += 1
    return tuple(found)[:_SEEDS]


def activate(graph: Graph, start: Iterable[str], *, limit: int = 10) -> list[tuple[str, float]]:
    """Return the keys of the most activated concepts with their activation, from 1 to 0. O(hops · front · fan).

    The concepts of *start* have 1. A hop multiplies it by `_DECAY`; concepts below `_FLOOR` pass nothing on.
    """
    front = {key: 1.0 for key in start if key in graph}
    active = dict(front)
    for _ in range(_HOPS):
        passed: dict[str, float] = {}
        for key, value in sorted(front.items(), key=lambda one: (-one[1], one[0]))[:FRONT]:
            if value < _FLOOR:
                break
            for edge in graph.relations(key, FAN):
                other = edge.target if edge.source == key else edge.source
                passed[other] = passed.get(other, 0.0) + value * _DECAY * edge.weight / graph._nodes[key].weight
        # activation that returns to a concept does not count again
        front = {key: min(1.0, value) for key, value in passed.items() if min(1.0, value) > active.get(key, 0.0)}
        active |= front
    return sorted(active.items(), key=lambda one: (-one[1], one[0]))[:limit]


def _names_inside(graph: Graph, word: str) -> list[str]:
    """Return the names inside a word, in scripts without spaces; the longest at each place."""
    if word.isascii():
        return []
    found = []
    start = 0
    while start < len(word):
        for length in range(min(_WIDE, len(word) - start), 1, -1):
            key = name_key(word[start : start + length])
            if len(key) == length and key in graph and not key.isascii():
                found.append(key)
                start += length - 1
                break
        start += 1
    return found


def _strength(edge: Edge) -> tuple[int, float, str, str, str]:
    return (-edge.weight, -(edge.last or 0.0), edge.source, edge.kind, edge.target)


_MARKS = " .,;:!?\"'()[]{}“”‘`*-"
