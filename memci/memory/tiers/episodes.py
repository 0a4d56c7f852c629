"""Episodes: one topic each, with all chains about it.

    a chain is over ──▶  its likeness to every episode ──▶  one stands out?   yes: the chain joins that episode
                                                                              no: it stays an episode of its own
    Episode   "Flight to Oslo        keywords flight, oslo, seat      visits 3      2024-05-01 … 2024-05-09
               Seat on that flight   vector: mean of its pages        length 4
               A refund for it"

The likeness to an episode is that to its least similar chain, so that an episode does not grow into a lump: the cosine
of their telling words, of which rare ones count more. It stands out if it is `STANDS_OUT` times as many standard
deviations above the others as the highest of so many would be by chance. So an embedder can't make it worse. With a
`threshold` in the rules, the score is that of MemoryOS (arXiv 2506.06326): cosine(vectors) + 1.0 · Jaccard(keywords).
"""

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ...text.language.keywords import jaccard, stems_of
from ...text.summarize import one_line
from .heat import Warmth
from .rules import Rules
from .topics import Chain, PageFeatures, Topic, Vector, cosine, joint_keywords, mean, topic_of

STANDS_OUT = 2.0  # chosen on dialogues and meetings: with 1.6 they grow into lumps
_PRIOR, _DEVIATION = 4, 0.02  # likenesses to unrelated episodes that are assumed before there are any, and their spread
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
    importance: float | None = None  # from 0 to 1, by a model; None: unknown
    warmth: Warmth = field(default_factory=Warmth)
    first: float | None = None  # time of its first page, in seconds since 1970 UTC; None: unknown
    last: float | None = None

    def visited(self, now: float) -> "Episode":
        """Return the episode after a visit by a search."""
        return replace(self, warmth=self.warmth.visited(now))


def returning(key: int, chains: Mapping[int, Chain], profiles: Mapping[int, Mapping[str, float]]) -> int | None:
    """Return the episode that the chain *key* returns to, None if no other one stands out. O(chains · words).

    *chains* are those of all episodes, *profiles* their words (`profile_of`).
    """
    own = profiles[key]
    others = {other: each for other, each in chains.items() if each.episode not in (0, chains[key].episode)}
    common = {other: own.keys() & profiles[other].keys() for other in others}
    counts: dict[str, int] = {}
    for words in common.values():
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    rarity = {word: math.log(1 + (len(others) + 1) / (1 + counts.get(word, 0))) ** 2 for word in own}
    length = math.sqrt(sum((own[word] * rarity[word]) ** 2 for word in own)) or 1.0
    likeness: dict[int, float] = {}
    for other, each in others.items():
        alike = sum(own[word] * rarity[word] * profiles[other][word] for word in common[other]) / length
        likeness[each.episode] = min(alike, likeness.get(each.episode, math.inf))
    top, *rest = heapq.nlargest(len(likeness), likeness.values()) or [0.0]
    mean_ = sum(rest) / (len(rest) + _PRIOR)
    squares = sum((each - mean_) ** 2 for each in rest) + _PRIOR * (_DEVIATION**2 + mean_**2)
    chance = math.sqrt(2 * math.log(len(likeness) + 2) * squares / (len(rest) + _PRIOR))
    return max(likeness, key=lambda each: (likeness[each], -each)) if top > mean_ + STANDS_OUT * chance else None


def best_episode(key: int, episodes: Mapping[int, Episode], rules: Rules) -> int | None:
    """Return the episode that is most like the one of *key* by the score of MemoryOS, if that is at the threshold.

    It is one of those nearest by vector, as many as *rules* say. O(episodes).
    """
    own = episodes[key]
    cosines = {other: cosine(own.embedding, each.embedding) for other, each in episodes.items() if other != key}
    near = heapq.nlargest(rules.candidates, cosines, key=lambda other: (cosines[other], other))
    scores = {
        other: cosines[other] + rules.keyword_weight * jaccard(episodes[other].keywords, own.keywords) for other in near
    }
    best = max(scores, key=lambda other: (scores[other], -other), default=None)
    return best if best is not None and rules.threshold is not None and scores[best] >= rules.threshold else None


def open_episode(topic: Topic, pages: Sequence[PageFeatures], now: float) -> Episode:
    """Return a new episode of the *pages* of *topic*; *now* in seconds since 1970 UTC."""
    times = [each.at for each in pages if each.at is not None]
    return Episode(
        summary=_summary("", topic.content or topic.theme, topic.keywords),
        keywords=_unite(topic.keywords),
        embedding=topic.vector,
        importance=topic.importance,
        warmth=Warmth(last_visit=now).grown(len(pages), now, new=True),
        first=min(times, default=None),
        last=max(times, default=None),
    )


def join_episodes(episode: Episode, other: Episode, now: float) -> Episode:
    """Return *episode* with all of *other*. O(1): values are bounded."""
    one, two = episode.warmth, other.warmth
    shares = float(max(1, one.length)), float(max(1, two.length))
    united = _unite(episode.keywords, other.keywords)
    return replace(
        episode,
        summary=_summary(episode.summary, other.summary, united),
        keywords=united,
        embedding=mean((episode.embedding, other.embedding), shares),
        importance=max((each for each in (episode.importance, other.importance) if each is not None), default=None),
        warmth=one.joined(two, now),
        first=min((each for each in (episode.first, other.first) if each is not None), default=None),
        last=max((each for each in (episode.last, other.last) if each is not None), default=None),
    )


def rebuild_episode(episode: Episode, pages: Sequence[PageFeatures]) -> Episode:
    """Return *episode* with only *pages*, since others were erased. Its visits stay. O(pages)."""
    topic = replace(topic_of(pages, range(len(pages))), content="\n".join(each.title for each in pages))
    warmth = replace(episode.warmth, length=len(pages))
    return replace(open_episode(topic, pages, warmth.last_visit), warmth=warmth)


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
