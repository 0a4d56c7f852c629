"""Episodes: one topic each, with all pages about it.

    topic ──▶ score = cosine(vectors) + 1.0 · Jaccard(keywords) ──▶ 0.6 or more?   yes: its pages join the best episode
                                                                                    no: it opens a new one
    Episode   "Flight to Oslo        keywords flight, oslo, seat      visits 3      2024-05-01 … 2024-05-09
               Seat on that flight   vector: mean of its pages        length 4
               A refund for it"

A merge updates summary, keywords and vector. The summary consists of titles of pages. (MemoryOS, arXiv 2506.06326, has
segments, which are joined if F_score > 0.6.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...text.language.keywords import jaccard, stems_of
from ...text.summarize import one_line
from .heat import Warmth
from .topics import PageFeatures, Topic, Vector, cosine, joint_keywords, mean

THRESHOLD = 0.6
KEYWORD_WEIGHT = 1.0  # of the paper
MOST_KEYWORDS = 20
MOST_LINES = 8
LINE_COLUMNS = 100  # bounds that keep an episode small: about 1 KB


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """A topic with its pages."""

    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}  # for the vector

    summary: str  # titles of its pages, a line each: the first, the last, and those with most keywords
    keywords: tuple[str, ...] = ()
    embedding: Vector | None = None  # the mean of its pages' vectors, of unit length
    warmth: Warmth = field(default_factory=Warmth)
    first: float | None = None  # time of its first page, in seconds since 1970 UTC; None: unknown
    last: float | None = None
    version: int = 1

    def visited(self, now: float) -> "Episode":
        """Return the episode after a visit by a search."""
        return replace(self, warmth=self.warmth.visited(now), version=self.version + 1)


def score(episode: Episode, topic: Topic) -> float:
    """Return how well *topic* fits *episode*, from -1 to 2."""
    return cosine(episode.embedding, topic.vector) + KEYWORD_WEIGHT * jaccard(episode.keywords, topic.keywords)


def best_episode(
    topic: Topic, candidates: Iterable[tuple[int, Episode]], *, threshold: float = THRESHOLD
) -> int | None:
    """Return the id of the candidate that *topic* joins, None if it needs a new episode. O(candidates)."""
    scored = [(score(episode, topic), -key) for key, episode in candidates]
    top = max(scored, default=(0.0, 0))
    return -top[1] if scored and top[0] >= threshold else None


def open_episode(topic: Topic, *, now: float, times: Sequence[float] = ()) -> Episode:
    """Return a new episode with the pages of *topic*. Times are in seconds since 1970 UTC.

    *times* are the known times of the pages.
    """
    return Episode(
        summary=_summary("", topic.content or topic.theme, topic.keywords),
        keywords=_unite(topic.keywords),
        embedding=topic.vector,
        warmth=Warmth(length=len(topic.pages), last_visit=now),
        first=min(times, default=None),
        last=max(times, default=None),
    )


def merge_topic(episode: Episode, topic: Topic, *, now: float, times: Sequence[float] = ()) -> Episode:
    """Return *episode* with the pages of *topic* added; times as in `open_episode`. O(1): values are bounded."""
    united = _unite(episode.keywords, topic.keywords)
    shares = (float(max(1, episode.warmth.length)), float(len(topic.pages)))
    known = [at for at in (episode.first, episode.last, *times) if at is not None]
    return replace(
        episode,
        summary=_summary(episode.summary, topic.content or topic.theme, united),
        keywords=united,
        # a vector of another model is replaced
        embedding=mean((episode.embedding, topic.vector), shares),
        warmth=episode.warmth.grown(len(topic.pages), now),
        first=min(known, default=None),
        last=max(known, default=None),
        version=episode.version + 1,
    )


def rebuild_episode(episode: Episode, pages: Sequence[PageFeatures]) -> Episode:
    """Return *episode* with only *pages*, since others were erased. Its visits stay. O(pages)."""
    titles = [each.title for each in pages if each.title.strip()]
    words: tuple[str, ...] = ()
    for each in pages:
        words = _unite(words, each.keywords)
    return replace(
        episode,
        summary=_summary("", "\n".join(titles), words),
        keywords=words,
        embedding=mean([each.vector for each in pages]),
        warmth=replace(episode.warmth, length=len(pages)),
        version=episode.version + 1,
    )


def _unite(*words: Sequence[str]) -> tuple[str, ...]:
    return joint_keywords(words)[:MOST_KEYWORDS]


def _summary(old: str, new: str, words: tuple[str, ...]) -> str:
    """Return the lines of both. Of too many, drop those with fewest keywords, but not the first or last."""
    told = [one_line(line, LINE_COLUMNS) for text in (old, new) for line in text.splitlines() if line.strip()]
    lines = list(dict.fromkeys(told))
    topic = {part for word in words for part in stems_of(word).split()}
    while len(lines) > MOST_LINES:
        weights = [len(topic.intersection(stems_of(line).split())) for line in lines[1:-1]]
        del lines[1 + weights.index(min(weights))]
    return "\n".join(lines)
