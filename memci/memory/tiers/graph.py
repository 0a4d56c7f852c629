"""The graph of what is known: concepts, and the relations between them, weighted by how many pages state them.

    "Mel plays the violin in Oslo."        mel ──plays(1)── violin       query: "What does Mel play?"
    "Mel adopted Rex."                      │                            hop 0   mel 1.0
                                            ├──adopted(1)── rex          hop 1   violin, rex, oslo: 1.0 · ⅓ · 0.5
                                            └──with(1)── oslo            hop 2   …

Activation spreads from the concepts that a query names: each hop passes
`activation · weight / all weights there · decay` along a relation, either way, and what fell below the floor passes
nothing on. Only the strongest relations of the most active concepts take part, so that a query's work is bounded,
whatever the size of the graph. Erasing a page takes away exactly what it told.

This module knows nothing of what tells relations, of episodes, or of how relations are stored.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .relations import Page, Relation

FAN = 24
"""relations along which a concept passes activation at most"""
FRONT = 48
"""concepts from which a hop starts at most"""
_WORDS = 4
_WIDE = 8
_QUERY = 2_000


@dataclass(slots=True, eq=False)
class Edge:
    """All statements that say the same of two concepts."""

    source: str
    """name keys"""
    kind: str
    target: str
    pages: dict[Page, int] = field(default_factory=dict)
    """how often each page states it"""
    weight: int = 0
    """how often it is stated"""
    last: float | None = None


@dataclass(slots=True, eq=False)
class _Node:
    names: dict[str, int] = field(default_factory=dict)
    edges: dict[tuple[str, str, str], Edge] = field(default_factory=dict)
    strongest: list[Edge] = field(default_factory=list)
    """at most `FAN` of its edges, by weight"""
    weight: int = 0


class Graph:
    """Concepts and relations in memory."""

    __slots__ = ("_edges", "_nodes", "_told")

    def __init__(self, relations: Iterable[Relation] = ()) -> None:
        self._nodes: dict[str, _Node] = {}
        self._edges: dict[tuple[str, str, str], Edge] = {}
        self._told: dict[Page, dict[tuple[str, str, str], None]] = {}
        self.merge(relations)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name_key(name) in self._nodes

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
            edge = self._edges.setdefault(key, Edge(*key))
            edge.weight += 1
            edge.pages[each.page] = edge.pages.get(each.page, 0) + 1
            edge.last = max((at for at in (edge.last, each.at) if at is not None), default=None)
            self._told.setdefault(each.page, {})[key] = None
            for end in (source, target):
                node = self._nodes.setdefault(end, _Node())
                node.edges[key] = edge
                node.weight += 1
                node.names[names[end]] = node.names.get(names[end], 0) + 1
                _promote(node, edge)

    def forget(self, pages: Iterable[Page]) -> None:
        """Remove the relations of *pages*, and the concepts that have none left. O(their relations)."""
        for page in pages:
            for key in self._told.pop(page, {}):
                edge = self._edges[key]
                told = edge.pages.pop(page)
                edge.weight -= told
                for end in (edge.source, edge.target):
                    node = self._nodes[end]
                    node.weight -= told
                    if not edge.weight:
                        del node.edges[key]
                    if not node.edges:
                        del self._nodes[end]
                    else:
                        node.strongest = sorted(node.edges.values(), key=_strength)[:FAN]
                if not edge.weight:
                    del self._edges[key]

    def name(self, key: str) -> str:
        """Return the name of a concept as it is written most often, *key* itself if there is none."""
        names = self._nodes[key].names if key in self._nodes else {}
        return max(names, key=lambda name: (names[name], name), default=key)

    def relations(self, key: str, limit: int = 5) -> tuple[Edge, ...]:
        """Return the strongest relations of a concept."""
        return tuple(self._nodes[key].strongest[:limit]) if key in self._nodes else ()

    def pages(self, key: str, limit: int = 10) -> tuple[Page, ...]:
        """Return the pages that mention a concept most."""
        told: dict[Page, int] = {}
        for edge in self.relations(key, FAN):
            for page, count in edge.pages.items():
                told[page] = told.get(page, 0) + count
        return tuple(sorted(told, key=lambda page: (-told[page], page))[:limit])

    def _check(self) -> None:
        for key, edge in self._edges.items():
            assert edge.weight == sum(edge.pages.values()) > 0, "a weight is how often pages tell it"
            assert all(self._nodes[end].edges[key] is edge for end in (edge.source, edge.target)), "both ends know it"
            assert all(key in self._told[page] for page in edge.pages), "a page knows what it told"
        for node in self._nodes.values():
            assert node.edges, "a concept of which nothing is told is none"
            assert node.weight == sum(edge.weight for edge in node.edges.values()), "a concept's weight is all of it"
            best = sorted(node.edges.values(), key=_strength)[:FAN]
            assert [edge.weight for edge in node.strongest] == [edge.weight for edge in best], "the strongest are kept"


def name_key(name: str) -> str:
    """Return what makes two names the same concept: case, width and marks at the ends are no difference."""
    key = _folded(name)
    while (again := _folded(key)) != key:  # "the dog's 's." ends in marks again: a key is the key of itself
        key = again
    return key


def _folded(name: str) -> str:
    text = " ".join(unicodedata.normalize("NFKC", name).casefold().replace("’", "'").split())
    start, end = 0, len(text)
    while start < end:
        if text[end - 1] in _MARKS:
            end -= 1
        elif text.endswith("'s", start, end):
            end -= 2
        elif text[start] in _MARKS:
            start += 1
        else:
            break
    return text[start:end]


_MARKS = frozenset(" .,;:!?\"'()[]{}“”‘`*-")


def seeds(graph: Graph, query: str, limit: int = 8) -> tuple[str, ...]:
    """Return the keys of the concepts that *query* names, in order, the longest name at each place. O(length)."""
    words = unicodedata.normalize("NFKC", query[:_QUERY]).split()
    found: dict[str, None] = {}
    start = 0
    while start < len(words) and len(found) < limit:
        for length in range(min(_WORDS, len(words) - start), 0, -1):
            key = name_key(" ".join(words[start : start + length]))
            if key in graph:
                found[key] = None
                start += length - 1
                break
        else:
            found.update(dict.fromkeys(_inside(graph, words[start].casefold())))
        start += 1
    return tuple(found)[:limit]


def activate(
    graph: Graph,
    start: Mapping[str, float] | Iterable[str],
    *,
    decay: float = 0.5,
    hops: int = 3,
    floor: float = 0.05,
    limit: int = 10,
) -> list[tuple[str, float]]:
    """Return the most activated concepts by their keys, with 0 to 1 each, highest first. O(hops · front · fan).

    Args:
        graph: Where it spreads.
        start: Keys of concepts, with their activation if it is not 1.
        decay: What is left after each hop.
        hops: How far it spreads.
        floor: A concept with less passes nothing on.
        limit: How many concepts at most.
    """
    given = dict(start) if isinstance(start, Mapping) else dict.fromkeys(start, 1.0)
    front = {key: min(1.0, value) for key, value in given.items() if key in graph and value > 0}
    active = dict(front)
    for _ in range(hops):
        passed: dict[str, float] = {}
        for key, value in sorted(front.items(), key=lambda one: (-one[1], one[0]))[:FRONT]:
            if value < floor:
                break
            node = graph._nodes[key]
            for edge in node.strongest:
                other = edge.target if edge.source == key else edge.source
                passed[other] = passed.get(other, 0.0) + value * decay * edge.weight / node.weight
        # activation that returns to a concept is not counted twice
        front = {key: min(1.0, value) for key, value in passed.items() if min(1.0, value) > active.get(key, 0.0)}
        active |= front
    return sorted(active.items(), key=lambda one: (-one[1], one[0]))[:limit]


def _inside(graph: Graph, word: str) -> list[str]:
    """Return the names inside a word, where writing has no spaces; the longest at each place."""
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


def _promote(node: _Node, edge: Edge) -> None:
    if edge not in node.strongest:
        if len(node.strongest) == FAN and _strength(edge) > _strength(node.strongest[-1]):
            return
        node.strongest.append(edge)
    node.strongest.sort(key=_strength)
    del node.strongest[FAN:]
