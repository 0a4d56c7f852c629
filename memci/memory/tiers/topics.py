"""Topics: what a batch of pages is about, at most two things, and which page is about which.

    #1 flight to Oslo    #2 seat 12A    #3 my dog is ill    #4 the vet's bill
    └───────── topic: flight ───────┘   └────────── topic: dog ─────────────┘

Each page belongs to exactly one topic. (MemoryOS, arXiv 2506.06326, has a model name up to two themes for a batch; its
code then puts every page of the batch into the session of every theme, so that pages appear twice and grow apart.)

Pages are alike by `cosine + Jaccard`, as episodes are, and a little more if one follows the other. The two groups that
average linkage leaves are one topic if they are still alike.

This module knows nothing of episodes or of how texts are embedded.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...text.language.keywords import folded, jaccard, keywords
from ...text.summarize import one_line
from .chains import PageFeatures, Vector, cosine

THEME_COLUMNS = 72
CONTENT_LINES = 8
MOST_KEYWORDS = 10
_NEXT = 0.1
_LIKE = 0.45
"""average likeness at which two groups of pages are one topic"""
_LIKE_BY_WORDS = 0.04
"""the same where there are no vectors: pages of one topic share few of their ten keywords"""


@dataclass(frozen=True, slots=True, eq=False)
class Theme:
    """A topic as a model names it, before pages are assigned to it."""

    theme: str
    keywords: tuple[str, ...] = ()
    content: str = ""
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """One of the things that a batch is about, and its pages."""

    theme: str
    keywords: tuple[str, ...]
    content: str
    """titles of its pages, a line each"""
    pages: tuple[int, ...]
    """positions in the batch, ascending; never empty"""
    vector: Vector | None = None
    """the mean of its pages' vectors, of unit length"""


def topics(batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return one or two topics of *batch*, that of the first page first; none for no pages. O(pages³)."""
    if not batch:
        return []
    likeness = _likenesses(batch)
    groups = _two_groups(likeness)
    if len(groups) == 2:
        embedded = any(page.vector is not None for page in batch)
        between = float(likeness[np.ix_(groups[0], groups[1])].mean())
        if between >= (_LIKE if embedded else _LIKE_BY_WORDS):
            groups = [sorted(groups[0] + groups[1])]
    return [_topic(batch, group, likeness) for group in groups]


def assigned(batch: Sequence[PageFeatures], themes: Sequence[Theme]) -> list[Topic]:
    """Return the topics that a model named, each page with the one it is most like. O(pages · themes).

    A theme that no page is like is left out; without themes the pages are clustered.
    """
    if not batch or not themes:
        return topics(batch)
    groups: list[list[int]] = [[] for _ in themes]
    for position, page in enumerate(batch):
        scores = [cosine(page.vector, theme.vector) + jaccard(_words(page), _named(theme)) for theme in themes]
        groups[scores.index(max(scores))].append(position)
    found = []
    for theme, group in zip(themes, groups, strict=True):
        if group:
            own = _topic(batch, group, None)
            words = tuple(dict.fromkeys((*(word.casefold() for word in theme.keywords), *own.keywords)))[:MOST_KEYWORDS]
            name = one_line(theme.theme, THEME_COLUMNS) if theme.theme.strip() else own.theme
            found.append(Topic(name, words, theme.content.strip() or own.content, own.pages, own.vector))
    return sorted(found, key=lambda topic: topic.pages[0])


def mean(vectors: Sequence[Vector | None], weights: Sequence[float] | None = None) -> Vector | None:
    """Return the weighted mean of the vectors that are there, of unit length; None if there is none. O(vectors).

    Vectors of another dimension than the last one are of another model: they are left out.
    """
    shares = weights if weights is not None else [1.0] * len(vectors)
    pairs = [(vector, share) for vector, share in zip(vectors, shares, strict=True) if vector is not None]
    if not pairs:
        return None
    shape = pairs[-1][0].shape
    total = np.zeros(shape, dtype=np.float64)
    for vector, share in pairs:
        if vector.shape == shape:
            total += share * vector.astype(np.float64)
    length = float(np.linalg.norm(total))
    if not np.isfinite(length) or length < 1e-12:
        return pairs[-1][0]
    return (total / length).astype(np.float32)


def _words(page: PageFeatures) -> tuple[str, ...]:
    return page.keywords or keywords([page.text])


def _named(theme: Theme) -> tuple[str, ...]:
    return theme.keywords or keywords([theme.theme, theme.content])


def _likenesses(batch: Sequence[PageFeatures]) -> npt.NDArray[np.float64]:
    words = [_words(page) for page in batch]
    likeness = np.zeros((len(batch), len(batch)))
    for one in range(len(batch)):
        for two in range(one):
            alike = cosine(batch[one].vector, batch[two].vector) + jaccard(words[one], words[two])
            likeness[one, two] = likeness[two, one] = alike + (_NEXT if one - two == 1 and alike > 0 else 0.0)
    return likeness


def _two_groups(likeness: npt.NDArray[np.float64]) -> list[list[int]]:
    """Join the two groups that are most alike on average, until two are left; among equals the earlier ones."""
    groups = [[position] for position in range(len(likeness))]
    links = likeness.copy()
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


def _topic(batch: Sequence[PageFeatures], group: Sequence[int], likeness: npt.NDArray[np.float64] | None) -> Topic:
    pages = [batch[position] for position in group]
    said = [page.title or one_line(page.text, THEME_COLUMNS) for page in pages if page.title or page.text.strip()]
    middle = group[0] if likeness is None else max(group, key=lambda each: (likeness[each, list(group)].sum(), -each))
    central = batch[middle].title or batch[middle].text
    theme = one_line(central, THEME_COLUMNS) if central.strip() else (said or [""])[0]
    content = "\n".join(list(dict.fromkeys(said))[:CONTENT_LINES])
    return Topic(theme, _common(pages), content, tuple(group), mean([page.vector for page in pages]))


def _common(pages: Sequence[PageFeatures]) -> tuple[str, ...]:
    """Return the keywords of *pages*: those of most pages, and of those the ones that stand in front."""
    scores: dict[str, float] = {}
    shown: dict[str, str] = {}
    for page in pages:
        for rank, word in enumerate(_words(page)):
            key = folded(word)
            shown.setdefault(key, word.casefold())
            scores[key] = scores.get(key, 0.0) + 1 / (3 + rank)
    ranked = sorted(scores, key=lambda key: -scores[key])
    return tuple(shown[key] for key in ranked if key)[:MOST_KEYWORDS]
