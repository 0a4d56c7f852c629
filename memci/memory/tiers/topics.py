"""Topics and chains: a chain is a stretch of talk without a break, which is about one thing.

    #3 my dog is ill ──▶ #4 the vet's bill ──▶ #5     #6 flight to Oslo ──▶ #7
    └──────────────── chain of #3 ────────────────┘   └─── chain of #6 ───┘      "Flight to Oslo · … (1 more) · A seat"

A chain ends at a long gap, at a greeting, and where the talk turns to something else: a dozen or more telling words on
each side have no more in common than long pages have by chance. Names of speakers are no content. The overview of a
chain is revised as the chain grows: it has titles of its pages, or what a model wrote of them.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...messages import text_of
from ...text.language.keywords import jaccard, keywords, stems_of
from ...text.language.patterns import WIDE
from ...text.language.sentences import greets
from ...text.language.telling import EVERYDAY_SHARE, telling_words
from ...text.language.terms import is_single, terms
from ...text.sanitize import JOINT, one_line
from ..backend import PageRecord

Vector: TypeAlias = npt.NDArray[np.float32]

THEME_COLUMNS = 72
CONTENT_LINES = 8
MOST_KEYWORDS = 10  # bounds that keep a topic small: a title of a page has 72 columns, too
POINT_COLUMNS = 72
MOST_POINTS = 6  # of an overview: it fits on a few lines
ENOUGH = 12  # telling words that show what a stretch is about: with 8, chats of short messages fall into single pages
CHANCE = 1_000
"""pairs of words, one of each side, of which one may be equal by chance: one in 330 to 790 is between sessions of
dialogues, one in 90 to 130 within a session. With 400, chains of dialogues fall into pieces"""
AHEAD = 4  # pages that are read for these words at most: of what comes later, not more is known
MOST_WORDS = 40  # words of a chain that are compared: those of most pages
_READ = 4_000  # characters of a message whose words are read: a longer one is a pasted text


@dataclass(frozen=True, slots=True, eq=False)
class PageFeatures:
    """The features by which pages are compared."""

    text: str
    title: str = ""
    keywords: tuple[str, ...] = ()
    vector: Vector | None = None
    at: float | None = None  # in seconds since 1970 UTC; None: unknown
    words: tuple[str, ...] = ()  # the different telling words of its messages, without names of speakers
    greets: bool = False  # whether it begins with a greeting


@dataclass(frozen=True, slots=True, eq=False)
class Topic:
    """A topic of a batch, and its pages."""

    theme: str
    keywords: tuple[str, ...] = ()
    content: str = ""  # titles of its pages, a line each, or the text of a model
    pages: tuple[int, ...] = ()  # positions in the batch, ascending; empty until the pages are known
    vector: Vector | None = None  # the mean of its pages' vectors, of unit length
    importance: float | None = None  # from 0 to 1, by a model
    goes_on: bool | None = None
    """whether a model says that its first page goes on with the talk before; None: it says nothing"""


def topic_of(batch: Sequence[PageFeatures], group: Sequence[int]) -> Topic:
    """Return the topic of the pages *group* of *batch*, by their titles and keywords. O(keywords)."""
    pages = [batch[position] for position in group]
    said = [page.title or one_line(page.text, THEME_COLUMNS) for page in pages if page.title or page.text.strip()]
    content = "\n".join(list(dict.fromkeys(said))[:CONTENT_LINES])
    words = tuple(word for word in joint_keywords(map(_words, pages)) if stems_of(word))[:MOST_KEYWORDS]
    theme = one_line((said or [""])[0], THEME_COLUMNS)
    return Topic(theme, words, content, tuple(group), mean([page.vector for page in pages]))


def name_topic(batch: Sequence[PageFeatures], group: Sequence[int], theme: Topic) -> Topic:
    """Return the topic of the pages *group* with the name of a model; features of the pages fill what it lacks."""
    topic = topic_of(batch, group)
    words = tuple(dict.fromkeys((*(word.casefold() for word in theme.keywords), *topic.keywords)))
    name = one_line(theme.theme, THEME_COLUMNS) if theme.theme.strip() else topic.theme
    content = theme.content.strip() or topic.content
    return Topic(name, words[:MOST_KEYWORDS], content, topic.pages, topic.vector, theme.importance)


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


def page_text(page: PageRecord) -> str:
    """Return the text of *page* that is embedded, a line for each message. O(characters).

    Roles and names of speakers are no content. Answers of tools and quotations of other pages are left out, unless
    there is nothing else.
    """
    texts = [(message, text) for message in page.own if (text := text_of(message)).strip()]
    spoken = [text for each, text in texts if each["role"] != "tool"]
    return "\n".join(spoken or [text for _, text in texts])


def words_of(page: PageRecord, names: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the different telling words of *page*, without *names*. O(characters)."""
    spoken = (text_of(message)[:_READ] for message in page.own if message["role"] != "tool")
    found = dict.fromkeys(word for text in spoken for word in _words_of(text))
    return tuple(word for word in found if word not in names)


@lru_cache(maxsize=64)  # texts of a batch and of the pages behind it, which are the next batches
def _words_of(text: str) -> tuple[str, ...]:
    found = [word[2] for word in telling_words(text) if word[3] < EVERYDAY_SHARE and not WIDE.match(word[2])]
    if not text.isascii():  # scripts without blanks have no words, but pairs of characters
        found += [term for term in terms(text) if WIDE.match(term) and not is_single(term)]
    return tuple(found)


def names_of(pages: Iterable[PageRecord]) -> frozenset[str]:
    """Return the names of the speakers on *pages*, as `words_of` has words. O(messages)."""
    names = {name for page in pages for each in page.own if (name := each.get("name"))}
    return frozenset(word[2] for name in names for word in telling_words(name[:THEME_COLUMNS])) | {
        name.lower() for name in names
    }


def begins_with_greeting(page: PageRecord) -> bool:
    """Return whether the first message of *page* begins with a greeting."""
    first = next((text for each in page.own if (text := text_of(each)).strip()), "")
    return greets(first)


@dataclass(frozen=True, slots=True)
class Chain:
    """Pages that continue one another: an overview of them, and the features of the chain."""

    context: str = ""
    points: tuple[str, ...] = ()  # titles of the first and the latest pages, or what a model wrote of them
    skipped: int = 0  # number of points between these that are not kept
    at: float | None = None  # time of its last page that has one, in seconds since 1970 UTC
    recent: tuple[str, ...] = ()  # telling words of its last pages: `ENOUGH` of them, if there are as many
    words: Mapping[str, int] = field(default_factory=dict)  # telling words, with the numbers of pages that have them
    episode: int = 0

    def __str__(self) -> str:
        gap = [f"… ({self.skipped} more)"] if self.skipped else []
        return JOINT.join([*self.points[:1], *gap, *self.points[1:]])

    def noted(self, point: str) -> "Chain":
        """Return the chain with one more *point* of its overview. O(1), of bounded length."""
        point = one_line(point, POINT_COLUMNS) if point.strip() else ""
        points = self.points if not point or point in self.points else (*self.points, point)
        if len(points) <= MOST_POINTS:
            return replace(self, points=points)
        return replace(self, points=(points[0], *points[2:]), skipped=self.skipped + 1)

    def updated(self, page: PageFeatures) -> "Chain":
        """Return the chain with one more *page*, without its title. O(words)."""
        recent = page.words if len(page.words) >= ENOUGH else (*page.words, *self.recent)[: 2 * ENOUGH]
        counts = Counter(self.words)
        counts.update(page.words or stems_of(" ".join(page.keywords)).split())
        return replace(
            self,
            at=self.at if page.at is None else page.at,
            recent=recent,
            words=dict(counts.most_common(MOST_WORDS)),
        )

    def goes_on(self, ahead: Sequence[PageFeatures], gap_seconds: float) -> bool:
        """Return whether the first of the pages *ahead* continues the chain; the others show what it is about."""
        if self.is_over(ahead[0], gap_seconds):
            return False
        found: dict[str, None] = {}
        for at, page in enumerate(ahead[:AHEAD]):
            if len(found) >= ENOUGH or (at and _breaks(ahead[at - 1].at, page, gap_seconds)):
                break
            found |= dict.fromkeys(page.words)
        recent = set(self.recent)
        clear = len(found) >= ENOUGH and len(recent) >= ENOUGH
        return not clear or len(recent & found.keys()) > len(found) * len(recent) / CHANCE

    def is_over(self, page: PageFeatures, gap_seconds: float) -> bool:
        """Return whether the talk had paused before *page*: a long gap, or a greeting."""
        return _breaks(self.at, page, gap_seconds)


def _breaks(before: float | None, page: PageFeatures, gap_seconds: float) -> bool:
    return page.greets or (before is not None and page.at is not None and abs(page.at - before) > gap_seconds)


def profile_of(chain: Chain) -> dict[str, float]:
    """Return the words of *chain* with weights, as a vector of unit length. O(words)."""
    weights = {word: 1 + math.log(count) for word, count in chain.words.items()}
    length = math.sqrt(sum(weight * weight for weight in weights.values()))
    return {word: weight / length for word, weight in weights.items()}
