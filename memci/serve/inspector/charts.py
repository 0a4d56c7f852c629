"""Pictures as numbers: stacked columns over time, and a graph of concepts, for templates to draw as SVG."""

from collections.abc import Mapping, Sequence
from math import cos, pi, sin, sqrt
from typing import Final, NamedTuple

WIDTH: Final = 1000.0
HEIGHT: Final = 220.0  # units of the picture; the browser scales them
_GOLDEN: Final = pi * (3 - sqrt(5))  # the golden angle: points that follow one another at this angle spread evenly


class ColumnBlock(NamedTuple):
    """A rectangle of a column, in units of the picture."""

    kind: str
    x: float
    y: float
    width: float
    height: float


class GraphNode(NamedTuple):
    """A concept in a picture that is 100 wide and 70 high."""

    name: str
    weight: int
    x: float
    y: float
    radius: float


def stack_columns(values: Sequence[Mapping[str, float]], top: float) -> list[list[ColumnBlock]]:
    """Return a column of stacked blocks for each of *values*; the value *top* is as high as the picture."""
    width = WIDTH / max(1, len(values))
    drawn = []
    for place, parts in enumerate(values):
        blocks, bottom = [], HEIGHT
        for kind, value in parts.items():
            height = HEIGHT * value / (top or 1)
            bottom -= height
            blocks.append(ColumnBlock(kind, place * width, bottom, max(width * 0.86, width - 2), height))
        drawn.append(blocks)
    return drawn


def place_nodes(weights: Mapping[str, int]) -> dict[str, GraphNode]:
    """Return positions for the concepts of *weights*: a spiral with the most frequent in the middle. O(concepts)."""
    order = sorted(weights, key=lambda name: (-weights[name], name))
    most = max(weights.values(), default=1)
    nodes = {}
    for place, name in enumerate(order):
        away = sqrt(place / max(1, len(order) - 1)) if place else 0.0
        x, y = 50 + 41 * away * cos(place * _GOLDEN), 35 + 28 * away * sin(place * _GOLDEN)
        nodes[name] = GraphNode(name, weights[name], x, y, 1.0 + 1.8 * sqrt(weights[name] / most))
    return nodes
