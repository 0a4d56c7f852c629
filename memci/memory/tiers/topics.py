"""Topics and chains: which pages are about the same thing, and which go on from one another.

    #1 flight to Oslo    #2 seat 12A    #3 my dog is ill    #4 the vet's bill       one batch, each page in one topic
    └───────── topic: flight ───────┘   └────────── topic: dog ─────────────┘

    #3 ──▶ #4 ──▶ #5     #6 ──▶ #7          #6 is about something else, or came more than six hours later
    └── chain of #3 ──┘  └─ #6 ─┘           "Flight to Oslo · … (1 more) · Seat on that flight"

Pages are alike by `cosine + Jaccard`, as episodes are, and a little more if one follows the other. The two groups that
average linkage leaves are one topic if they are still alike. A chain holds one summary, made of the pages' own titles
and never of an earlier summary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages import text_of
from ...text.language.keywords import jaccard, keywords, stems_of
from ...text.summarize import one_line
from ..backend import PageRecord

Vector: TypeAlias = npt.NDArray[np.float32]

THEME_COLUMNS = 72
CONTENT_LINES = 8
MOST_KEYWORDS = 10
_NEXT = 0.1
_LIKE, _LIKE_BY_WORDS = 0.45, 0.04
"""average likeness at which two groups of pages are one topic: with vectors, and without, since pages of one topic
share few of their ten keywords"""

POINT_COLUMNS = 72
MOST_POINTS = 6
GAP_SECONDS = 6 * 3600.0
"""a page that comes later than this begins another chain; pages without times have no gap"""
_LEAST_COSINE = 0.5
_LEAST_OVERLAP = 0.2
"""Jaccard index of the keywords"""
_SHARED = 2
"""as many keywords in common are enough, too"""
_JOINT = " · "


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """What is compared of a page."""

    text: str
    title: str = ""
    keywords: tuple[str, ...] = ()
    vector: Vector | None = None
    at: float | None = None
    """in seconds since 1970 UTC; None: not known"""


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """One of the things that a batch is about, and its pages."""

    theme: str
    keywords: tuple[str, ...] = ()
    content: str = ""
    """titles of its pages, a line each, or what a model says"""
    pages: tuple[int, ...] = ()
    """positions in the batch, ascending; empty only while it is not known which pages are about it"""
    vector: Vector | None = None
    """the mean of its pages' vectors, of unit length"""


def topics(batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return one or two topics of *batch*, that of the first page first; none for no pages. O(pages³)."""
    if not batch:
        return []
    alike = _likenesses(batch)
    groups = _two_groups(alike)
    if len(groups) == 2:
        embedded = any(page.vector is not None for page in batch)
        between = float(alike[np.ix_(groups[0], groups[1])].mean())
        if between >= (_LIKE if embedded else _LIKE_BY_WORDS):
            groups = [sorted(groups[0] + groups[1])]
    return [_topic(batch, group, alike) for group in groups]


def name_topic(batch: Sequence[PageFeatures], group: Sequence[int], theme: Topic) -> Topic:
    """Return the topic of the pages *group* of *batch*, as a model named it; what it left out is theirs."""
    topic = _topic(batch, group, None)
    words = tuple(dict.fromkeys((*(word.casefold() for word in theme.keywords), *topic.keywords)))
    name = one_line(theme.theme, THEME_COLUMNS) if theme.theme.strip() else topic.theme
    return Topic(name, words[:MOST_KEYWORDS], theme.content.strip() or topic.content, topic.pages, topic.vector)


def likeness(page: PageFeatures, theme: Topic) -> float:
    """Return how much a page is like a theme that a model named, from -1 to 2. O(dimension + characters)."""
    named = theme.keywords or keywords([theme.theme, theme.content])
    return cosine(page.vector, theme.vector) + jaccard(_words(page), named)


def cosine(some: Vector | None, other: Vector | None) -> float:
    """Return the cosine of two vectors, 0 if one is missing, zero, not finite or of another dimension. O(dimension)."""
    if some is None or other is None or some.shape != other.shape or not some.size:
        return 0.0
    one, two = some.astype(np.float64), other.astype(np.float64)
    if not (np.isfinite(one).all() and np.isfinite(two).all()):
        return 0.0
    scale = float(np.linalg.norm(one) * np.linalg.norm(two))
    if not np.isfinite(scale) or scale == 0:
        return 0.0
    return float(np.clip(one @ two / scale, -1.0, 1.0))


def mean(vectors: Sequence[Vector | None], weights: Sequence[float] | None = None) -> Vector | None:
    """Return the weighted mean of the vectors that are there, of unit length; None if there is none. O(vectors).

    Vectors of another dimension than the last one are of another model: they are left out.
    """
    shares = weights if weights is not None else [1.0] * len(vectors)
    pairs = [(vector, share) for vector, share in zip(vectors, shares, strict=True) if vector is not None]
    if not pairs:
        return None
    last = pairs[-1][0]
    total = np.zeros(last.shape, dtype=np.float64)
    for vector, share in pairs:
        if vector.shape == last.shape:
            total += share * vector.astype(np.float64)
    length = float(np.linalg.norm(total))
    return (total / length).astype(np.float32) if np.isfinite(length) and length >= 1e-12 else last


def joint_keywords(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the keywords of all *lists*, those first that are in many or stand in front. O(keywords)."""
    ranks: dict[str, float] = {}
    shown: dict[str, str] = {}
    for words in lists:
        for rank, word in enumerate(words):
            key = stems_of(word) or word.casefold()
            shown.setdefault(key, word.casefold())
            ranks[key] = ranks.get(key, 0.0) + 1 / (3 + rank)
    return tuple(shown[key] for key in sorted(ranks, key=lambda key: -ranks[key]))


def _words(page: PageFeatures) -> tuple[str, ...]:
    return page.keywords or keywords([page.text])


def _likenesses(batch: Sequence[PageFeatures]) -> npt.NDArray[np.float64]:
    words = [_words(page) for page in batch]
    alike = np.zeros((len(batch), len(batch)))
    for one in range(len(batch)):
        for two in range(one):
            both = cosine(batch[one].vector, batch[two].vector) + jaccard(words[one], words[two])
            alike[one, two] = alike[two, one] = both + (_NEXT if one - two == 1 and both > 0 else 0.0)
    return alike


def _two_groups(alike: npt.NDArray[np.float64]) -> list[list[int]]:
    """Join the two groups that are most alike on average, until two are left; among equals the earlier ones."""
    groups = [[position] for position in range(len(alike))]
    links = alike.copy()
    np.fill_diagonal(links, -np.inf)
    while len(groups) > 2:
        one, two = sorted(divmod(int(np.argmax(links)), len(groups)))
        sizes = len(groups[one]), len(groups[two])
        joined = (sizes[0] * links[one] + sizes[1] * links[two]) / sum(sizes)
        joined[one] = -np.inf
        links[one], links[:, one] = joined, joined
        links = np.delete(np.delete(links, two, axis=0), two, axis=1)
        groups[one] = sorted(groups[one] + groups.pop(two))
    return sorted(groups)


def _topic(batch: Sequence[PageFeatures], group: Sequence[int], alike: npt.NDArray[np.float64] | None) -> Topic:
    pages = [batch[position] for position in group]
    said = [page.title or one_line(page.text, THEME_COLUMNS) for page in pages if page.title or page.text.strip()]
    middle = group[0] if alike is None else max(group, key=lambda each: (alike[each, list(group)].sum(), -each))
    central = batch[middle].title or batch[middle].text
    theme = one_line(central, THEME_COLUMNS) if central.strip() else (said or [""])[0]
    content = "\n".join(list(dict.fromkeys(said))[:CONTENT_LINES])
    words = tuple(word for word in joint_keywords(map(_words, pages)) if stems_of(word))[:MOST_KEYWORDS]
    return Topic(theme, words, content, tuple(group), mean([page.vector for page in pages]))


def page_text(page: PageRecord) -> str:
    """Return what is said on *page*, a line for each message: the one text of it that is embedded. O(characters).

    Answers of tools and quotes of other pages are left out, unless there is nothing else.
    """
    texts = [(message, text) for message in page.own if (text := text_of(message)).strip()]
    spoken = [f"{each.get('name') or each['role']}: {text}" for each, text in texts if each["role"] != "tool"]
    return "\n".join(spoken or [text for _, text in texts])


def continues(before: PageFeatures, after: PageFeatures) -> bool:
    """Return whether a page goes on from the one before: alike by vectors or keywords, and no long gap between them."""
    if before.at is not None and after.at is not None and abs(after.at - before.at) > GAP_SECONDS:
        return False
    if cosine(before.vector, after.vector) >= _LEAST_COSINE:
        return True
    common = {stems_of(word) for word in before.keywords} & {stems_of(word) for word in after.keywords}
    return len(common - {""}) >= _SHARED or jaccard(before.keywords, after.keywords) >= _LEAST_OVERLAP


@dataclass(frozen=True, slots=True)
class ChainSummary:
    """What a chain is about: how it began, and how it went on lately."""

    pages: int = 0
    points: tuple[str, ...] = ()
    """titles of pages: the first one, and the latest"""
    skipped: int = 0
    """titles between the first and the latest ones that are not shown any more"""

    def __str__(self) -> str:
        gap = [f"… ({self.skipped} more)"] if self.skipped else []
        return _JOINT.join([*self.points[:1], *gap, *self.points[1:]])

    def updated(self, title: str) -> "ChainSummary":
        """Return it with one more page, by its own *title*. O(1), of bounded length."""
        point = one_line(title, POINT_COLUMNS) if title.strip() else ""
        points = self.points if not point or point in self.points else (*self.points, point)
        if len(points) <= MOST_POINTS:
            return ChainSummary(self.pages + 1, points, self.skipped)
        return ChainSummary(self.pages + 1, (points[0], *points[2:]), self.skipped + 1)
