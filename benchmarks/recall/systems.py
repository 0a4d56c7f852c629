"""Ways to find messages again, behind one door: `add` a talk, `search` a question.

Ours beside what others do: the last messages, words alone (SQLite FTS5, BM25), vectors alone, both fused by ranks or by
deviations, and in two stages through summaries. This module knows nothing of what is evidence.
"""

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from memci.memory.retrieval.layout import ROLES, Layout
from memci.memory.retrieval.ranking import Query, Weights, rank
from memci.text.language.terms import STOP_WORDS, query_terms
from memci.tokens import counter_for

from .shelf import Shelf
from .tasks import Line, Talk

Embedder = Callable[[Sequence[str]], NDArray[np.float32]]
Scores = NDArray[Any]

count = counter_for("gpt-4o")

_EPISODE = 20
"""messages of an episode at most, where no silence ends it before"""
_DEPTH = 300
"""pieces that are looked at, at most: more than any budget holds"""


class System(Protocol):
    """Something that finds messages. `search` is all that is timed."""

    def add(self, talk: Talk) -> None:
        """Take in a talk: the only one there will be."""
        ...

    def search(self, question: str, k: int) -> list[int]:
        """Return the numbers of at most *k* messages, best first."""
        ...


@runtime_checkable
class Budgeted(System, Protocol):
    """A system that shows pieces of messages; the others are cut where their messages no longer fit whole."""

    def within(self, question: str, budget: int) -> list[int]:
        """Return the numbers of the messages whose pieces cost at most *budget* tokens, best first."""
        ...

    def close(self) -> None:
        """Let go of the talk."""
        ...


class Recent:
    """The last messages, whatever is asked."""

    def add(self, talk: Talk) -> None:
        self._count = len(talk.lines)

    def search(self, question: str, k: int) -> list[int]:  # noqa: ARG002
        return list(range(self._count))[::-1][:k]


class Scored:
    """What gives each passage a score: its best passage is a message's."""

    def add(self, talk: Talk) -> None:
        self.shelf = Shelf(self._layout())
        for number, line in enumerate(talk.lines):
            self.shelf.add([(number, line.message)], page=number, at=line.at)
        self._entry = np.array([passage.entry for passage in self.shelf.passages])
        self._costs = [cost(passage.text, passage.speaker) for passage in self.shelf.passages]
        self._prepare()

    def search(self, question: str, k: int) -> list[int]:
        scores = self.scores(question)
        found = np.flatnonzero(scores > scores.min()) if len(scores) else np.zeros(0, np.int64)
        if len(found) > 4 * k:
            found = found[np.argpartition(-scores[found], 4 * k)[: 4 * k]]
        return list(dict.fromkeys(self._entry[found[np.argsort(-scores[found], kind="stable")]].tolist()))[:k]

    def within(self, question: str, budget: int) -> list[int]:
        scores = self.scores(question)
        best = np.argsort(-scores, kind="stable")[:_DEPTH].tolist() if len(scores) else []
        return fitting(((int(self._entry[place]), self._costs[place]) for place in best), budget)

    def close(self) -> None:
        pass

    def scores(self, question: str) -> Scores:
        raise NotImplementedError

    def _prepare(self) -> None:
        pass

    def _layout(self) -> Layout:
        return Layout()


class Words(Scored):
    """BM25 over stems, date in the text, nothing else: k1 1.2, b 0.75."""

    def scores(self, question: str) -> Scores:
        return _bm25(self.shelf, [*query_terms(question), *Query.of(question).dates])


class UserWords(Words):
    """BM25 over what users said, nothing of an assistant."""

    def scores(self, question: str) -> Scores:
        return super().scores(question) * (self.shelf.layout.columns.role == ROLES["user"])


class Windows:
    """BM25 over windows of *size* messages, one from each message on; a window is shown whole."""

    def __init__(self, size: int) -> None:
        self._size = size

    def add(self, talk: Talk) -> None:
        self._texts = [f"{each.message.get('name', '')} {each.message.get('content') or ''}" for each in talk.lines]
        self._words = Words()
        windows = (" ".join(self._texts[start : start + self._size]) for start in range(len(self._texts)))
        self._words.add(Talk(talk.name, tuple(Line({"role": "user", "content": each}) for each in windows)))

    def search(self, question: str, k: int) -> list[int]:
        found = self._words.search(question, k)
        messages = (number for start in found for number in range(start, min(start + self._size, len(self._texts))))
        return list(dict.fromkeys(messages))[:k]


class Ranked:
    """Several systems in one list, by the sum of 1/(60 + rank)."""

    def __init__(self, *systems: System) -> None:
        self._systems = systems

    def add(self, talk: Talk) -> None:
        for each in self._systems:
            each.add(talk)

    def search(self, question: str, k: int) -> list[int]:
        scores: Counter[int] = Counter()
        for each in self._systems:
            for rank_, number in enumerate(each.search(question, _DEPTH), start=1):
                scores[number] += 1 / (60 + rank_)
        return [number for number, _ in scores.most_common(k)]


class Grams(Scored):
    """BM25 over characters and pairs of characters, for writing without spaces: k1 1.2, b 0.75."""

    def _prepare(self) -> None:
        self._grams = Shelf()
        for number, passage in enumerate(self.shelf.passages):
            self._grams.postings.add(number, _grams(passage.text))
        self._grams.layout = self.shelf.layout

    def scores(self, question: str) -> Scores:
        return _bm25(self._grams, sorted(set(_grams(question))))


class Ours(Scored):
    """What memci ranks by."""

    def __init__(self, embed: Embedder | None = None, *, weights: Weights | None = None) -> None:
        self._embed = embed
        self.weights = weights or Weights()

    def _prepare(self) -> None:
        self._vectors = None if self._embed is None else _embedded(self._embed, self.shelf)

    def scores(self, question: str) -> Scores:
        near = None if self._vectors is None or self._embed is None else self._vectors @ self._embed([question])[0]
        query = Query.of(question)
        at = self.shelf
        return rank(query, at.postings, at.layout, vectors=near, weights=self.weights).scores


class Vectors(Scored):
    """Cosine of a passage, with who says it, and the question."""

    def __init__(self, embed: Embedder) -> None:
        self._embed = embed

    def _prepare(self) -> None:
        self._vectors = _embedded(self._embed, self.shelf)

    def scores(self, question: str) -> Scores:
        found: Scores = self._vectors @ self._embed([question])[0]
        return found


class Fused(Vectors):
    """BM25 and cosines in one list: by the sum of 1/(60 + rank), or of deviations."""

    def __init__(self, embed: Embedder, how: str) -> None:
        super().__init__(embed)
        self._how = how

    def scores(self, question: str) -> Scores:
        lists = [_bm25(self.shelf, query_terms(question)), super().scores(question)]
        if self._how == "ranks":
            lists = [1 / (61 + np.argsort(np.argsort(-each, kind="stable"))) for each in lists]
        else:
            lists = [(each - each.mean()) / (each.std() + 1e-9) for each in lists]
        return lists[0] + lists[1]


class TwoStage(Words):
    """Episodes by their summaries (their three weightiest messages), the best five; then messages of those."""

    def _prepare(self) -> None:
        self._of = np.zeros(len(self.shelf.passages), np.int64)
        summaries = Shelf()
        episode: list[int] = []
        episodes: list[list[int]] = []
        at = self.shelf.layout.columns
        for position in range(len(self.shelf.passages)):
            if episode and (at.links[0, position] < 0 or len(episode) == _EPISODE):
                episodes.append(episode)
                episode = []
            episode.append(position)
        episodes.append(episode)
        rarity = {term: np.log1p(len(self._of) / len(self.shelf.postings[term][0])) for term in self.shelf.postings}
        for number, members in enumerate(episodes):
            self._of[members] = number
            weighty = sorted(members, key=lambda each: -sum(rarity[term] for term in set(self.shelf.terms[each])))[:3]
            text = " ".join(self.shelf.passages[each].text for each in sorted(weighty))
            summaries.add([(number, {"role": "user", "content": text[:600]})], page=number)
        self._summaries = summaries
        self._best = min(5, len(episodes))

    def scores(self, question: str) -> Scores:
        stage = _bm25(self._summaries, query_terms(question))
        owners = np.array([passage.entry for passage in self._summaries.passages])[np.argsort(-stage, kind="stable")]
        return np.where(np.isin(self._of, owners[: self._best]), super().scores(question), 0.0)


class FTS5:
    """SQLite's full text search: porter stems, stop words dropped, any word may match."""

    def add(self, talk: Talk) -> None:
        self._base = sqlite3.connect(":memory:")
        self._base.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")
        texts = (f"{each.message.get('name', '')} {each.message.get('content') or ''}" for each in talk.lines)
        self._base.executemany("INSERT INTO said(rowid, text) VALUES (?, ?)", enumerate(texts))

    def search(self, question: str, k: int) -> list[int]:
        words = [word for word in re.findall(r"\w+", question.lower()) if word not in STOP_WORDS]
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in words)
        found = self._base.execute("SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?", (match, k))
        return [row[0] for row in found]


def fitting(pieces: Iterable[tuple[int, int]], budget: int) -> list[int]:
    """Return the numbers of those *pieces*, as (number, cost), that fit a budget one after the other."""
    found: dict[int, None] = {}
    for number, price in pieces:
        if price <= budget:
            budget -= price
            found[number] = None
    return list(found)


def cost(text: str, speaker: str = "") -> int:
    """Return the tokens of what is said, and who says it, which a memory does not count."""
    return count(f"{speaker}: {text}" if speaker else text)


def _grams(text: str) -> list[str]:
    letters = re.sub(r"\W", "", text)
    return [*letters, *(letters[at : at + 2] for at in range(len(letters) - 1))]


def _bm25(shelf: Shelf, asked: Sequence[str]) -> Scores:
    length = shelf.layout.columns.length
    count = len(length)
    scores = np.zeros(count)
    costs = 1.2 * (0.25 + 0.75 * length / max(float(length.mean()), 1.0))
    for term in asked:
        if term in shelf.postings:
            positions, frequencies = shelf.postings[term]
            idf = np.log1p((count - len(positions) + 0.5) / (len(positions) + 0.5))
            scores[positions] += idf * 2.2 * frequencies / (frequencies + costs[positions])
    return scores


def _embedded(embed: Embedder, shelf: Shelf) -> NDArray[np.float32]:
    return embed([f"{each.speaker}: {each.text}" if each.speaker else each.text for each in shelf.passages])
