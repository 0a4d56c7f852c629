"""Episodes: one topic each, and all the pages that were about it.

    topic ──▶ score = cosine(vectors) + 1.0 · Jaccard(keywords) ──▶ 0.6 or more?   yes: its pages join the best episode
                                                                                    no: it opens a new one
    Episode   "Flight to Oslo        keywords flight, oslo, seat      visits 3      2024-05-01 … 2024-05-09
               Seat on that flight   vector: mean of its pages        length 4
               A refund for it"

A merge refreshes summary, keywords and vector. The summary is made of titles of pages, never of a summary. (MemoryOS,
arXiv 2506.06326: segments, joined by F_score > 0.6.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...text.language.keywords import jaccard, stems_of
from ...text.summarize import one_line
from .heat import Warmth
from .topics import PageFeatures, Topic, Vector, cosine, joint_keywords, mean

THRESHOLD = 0.6
KEYWORD_WEIGHT = 1.0
MOST_KEYWORDS = 20
MOST_LINES = 8
LINE_COLUMNS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Episode:
    """What is known of one topic."""

    __pydantic_config__: ClassVar = {"arbitrary_types_allowed": True}  # for the vector

    summary: str
    """titles of its pages, a line each: the first one, and those that say most"""
    keywords: tuple[str, ...] = ()
    embedding: Vector | None = None
    """the mean of its pages' vectors, of unit length"""
    warmth: Warmth = field(default_factory=Warmth)
    first: float | None = None
    """when it began, in seconds since 1970 UTC; None: not known"""
    last: float | None = None
    version: int = 1

    def visited(self, now: float) -> "Episode":
        """Return it after a search brought it back."""
        return replace(self, warmth=self.warmth.visited(now), version=self.version + 1)


def score(episode: Episode, topic: Topic) -> float:
    """Return how much *topic* belongs to *episode*, from -1 to 2."""
    return cosine(episode.embedding, topic.vector) + KEYWORD_WEIGHT * jaccard(episode.keywords, topic.keywords)


def best_episode(
    topic: Topic, candidates: Iterable[tuple[int, Episode]], *, threshold: float = THRESHOLD
) -> int | None:
    """Return the id of the candidate that *topic* joins, None if it opens an episode of its own. O(candidates)."""
    scored = [(score(episode, topic), -key) for key, episode in candidates]
    top = max(scored, default=(0.0, 0))
    return -top[1] if scored and top[0] >= threshold else None


def open_episode(topic: Topic, *, now: float, times: Sequence[float] = ()) -> Episode:
    """Return the episode that *topic* opens, with all its pages. It was not visited yet.

    Seconds since 1970 UTC; *times* are those of its pages, as far as they are known.
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
    """Return *episode* after the pages of *topic* joined it; times as in `opened`. O(1): of bounded values."""
    united = _unite(episode.keywords, topic.keywords)
    shares = (float(max(1, episode.warmth.length)), float(len(topic.pages)))
    known = [at for at in (episode.first, episode.last, *times) if at is not None]
    return replace(
        episode,
        summary=_summary(episode.summary, topic.content or topic.theme, united),
        keywords=united,
        # a vector of another model is replaced as a whole
        embedding=mean((episode.embedding, topic.vector), shares),
        warmth=episode.warmth.grown(len(topic.pages), now),
        first=min(known, default=None),
        last=max(known, default=None),
        version=episode.version + 1,
    )


def rebuild_episode(episode: Episode, pages: Sequence[PageFeatures]) -> Episode:
    """Return *episode* as only *pages* describe it: others were erased. Its warmth stays. O(pages)."""
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
    """Return the lines of both; of too many, those that share least with the keywords go, never the first or last."""
    told = [one_line(line, LINE_COLUMNS) for text in (old, new) for line in text.splitlines() if line.strip()]
    lines = list(dict.fromkeys(told))
    topic = {part for word in words for part in stems_of(word).split()}
    while len(lines) > MOST_LINES:
        weights = [len(topic.intersection(stems_of(line).split())) for line in lines[1:-1]]
        del lines[1 + weights.index(min(weights))]
    return "\n".join(lines)
