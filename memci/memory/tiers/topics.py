"""Topics and chains: groups pages about the same thing, and links pages that continue one another.

    #1 flight to Oslo    #2 seat 12A    #3 my dog is ill    #4 the vet's bill       one batch, each page in one topic
    └───────── topic: flight ───────┘   └────────── topic: dog ─────────────┘

    #3 ──▶ #4 ──▶ #5     #6 ──▶ #7          #6 is about something else, or came more than six hours later
    └── chain of #3 ──┘  └─ #6 ─┘           "Flight to Oslo · … (1 more) · Seat on that flight"

The likeness of pages is `cosine + Jaccard`, as of episodes, plus a little if one follows the other. Average linkage
makes two groups, which are one topic if they are still alike. The summary of a chain consists of titles of its pages.
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
MOST_KEYWORDS = 10  # bounds that keep a topic small: a title of a page has 72 columns, too
_NEXT = 0.1  # likeness of a page and the next one, in addition
_LIKE, _LIKE_BY_WORDS = 0.45, 0.04
"""average likeness from which two groups are one topic, with vectors and without: pages of a topic share few of their
ten keywords"""

POINT_COLUMNS = 72
MOST_POINTS = 6  # titles in the summary of a chain at most: it fits on a few lines
GAP_SECONDS = 6 * 3600.0  # gap after which a page begins a new chain; pages without times have no gap
_LEAST_COSINE = 0.5
_LEAST_OVERLAP = 0.2  # cosine, or Jaccard index of the keywords, from which a page continues the one before
_SHARED = 2  # number of common keywords that is also enough
_JOINT = " · "


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """The features by which pages are compared."""

    text: str
    title: str = ""
    keywords: tuple[str, ...] = ()
    vector: Vector | None = None
    at: float | None = None  # in seconds since 1970 UTC; None: unknown


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A topic of a batch, and its pages."""

    theme: str
    keywords: tuple[str, ...] = ()
    content: str = ""  # titles of its pages, a line each, or the text of a model
    pages: tuple[int, ...] = ()  # positions in the batch, ascending; empty until the pages are known
    vector: Vector | None = None  # the mean of its pages' vectors, of unit length


def topics(batch: Sequence[PageFeatures]) -> list[Topic]:
    """Return one or two topics of *batch*, that of the first page first; none without pages. O(pages³)."""
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
    """Return the topic of the pages *group* with the name of a model; features of the pages fill what it lacks."""
    topic = _topic(batch, group, None)
    words = tuple(dict.fromkeys((*(word.casefold() for word in theme.keywords), *topic.keywords)))
    name = one_line(theme.theme, THEME_COLUMNS) if theme.theme.strip() else topic.theme
    return Topic(name, words[:MOST_KEYWORDS], theme.content.strip() or topic.content, topic.pages, topic.vector)


def likeness(page: PageFeatures, theme: Topic) -> float:
    """Return the likeness of a page and the theme of a model, from -1 to 2. O(dimension + characters)."""
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
    """Return the weighted mean of the vectors that are not None, of unit length; None if there is none. O(vectors).

    Vectors of another dimension than the last one belong to another model, and are left out.
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
    """Return the keywords of all *lists*, first those that are in many lists or early in them. O(keywords)."""
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
    """Merge the two groups that are most alike on average, the earlier among equals, until two are left."""
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
    """Return the text of *page* that is embedded, a line for each message. O(characters).

    Answers of tools and quotations of other pages are left out, unless there is nothing else.
    """
    texts = [(message, text) for message in page.own if (text := text_of(message)).strip()]
    spoken = [f"{each.get('name') or each['role']}: {text}" for each, text in texts if each["role"] != "tool"]
    return "\n".join(spoken or [text for _, text in texts])


def continues(before: PageFeatures, after: PageFeatures) -> bool:
    """Return whether a page continues the one before: similar vectors or keywords, and no long gap."""
    if before.at is not None and after.at is not None and abs(after.at - before.at) > GAP_SECONDS:
        return False
    if cosine(before.vector, after.vector) >= _LEAST_COSINE:
        return True
    common = {stems_of(word) for word in before.keywords} & {stems_of(word) for word in after.keywords}
    return len(common - {""}) >= _SHARED or jaccard(before.keywords, after.keywords) >= _LEAST_OVERLAP


@dataclass(frozen=True, slots=True)
class ChainSummary:
    """The summary of a chain: its beginning and its latest pages."""

    pages: int = 0
    points: tuple[str, ...] = ()  # titles of the first and the latest pages
    skipped: int = 0  # number of titles between these that are not kept

    def __str__(self) -> str:
        gap = [f"… ({self.skipped} more)"] if self.skipped else []
        return _JOINT.join([*self.points[:1], *gap, *self.points[1:]])

    def updated(self, title: str) -> "ChainSummary":
        """Return the summary with the *title* of one more page. O(1), of bounded length."""
        point = one_line(title, POINT_COLUMNS) if title.strip() else ""
        points = self.points if not point or point in self.points else (*self.points, point)
        if len(points) <= MOST_POINTS:
            return ChainSummary(self.pages + 1, points, self.skipped)
        return ChainSummary(self.pages + 1, (points[0], *points[2:]), self.skipped + 1)
