"""What the tiers of a memory would add to an answer, if what they know of a page counted in its score.

    score of a message  +  weight × (how well its episode, chain, facts, events or concepts fit)

In the library the weight is 0: messages are found by their words and vectors alone, and the tiers order what is kept,
shown and forgotten. This measures on what that rests: `python -m benchmarks.recall --ablate`. Weight 0 is the row to
compare with. This module knows nothing of talks.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memci.memory.owner import Owner
from memci.memory.retrieval.knowledge import find_concepts
from memci.memory.retrieval.ranking import Query, rank
from memci.text.language.terms import query_terms, terms

from .measure import FIRST, share
from .tasks import Talk
from .whole import Whole

WEIGHTS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4)
"""of a tier, where the best message has 1"""

Scores = NDArray[np.float64]
_Texts = Mapping[Any, str]


def tiers(talks: Sequence[Talk]) -> dict[str, Any]:
    """Return, by tier, the share of evidence among the first ten for each weight, and what the tier held."""
    found: dict[str, dict[float, list[float]]] = {}
    held: Counter[str] = Counter()
    for talk in talks:
        whole = Whole()
        whole.add(talk)
        whole.memory.maintain(float(talk.lines[-1].at or 0) + 86_400)
        of_tiers = _TierScores(whole.memory.session.owner)
        held.update(of_tiers.sizes)
        for question in talk.questions:
            base = of_tiers.base(question.text)
            for name, scores in of_tiers.all(question.text):
                for weight in WEIGHTS:
                    order = np.argsort(-(base + weight * base.max(initial=0) * scores), kind="stable")
                    first = list(dict.fromkeys(whole.number(*of_tiers.places[at]) for at in order[: 4 * FIRST[-1]]))
                    found.setdefault(name, {}).setdefault(weight, []).append(share(first[:10], question))
        whole.close()
    return {
        name: {"held": held[name], "at 10": {str(of): round(100 * float(np.mean(each)), 1) for of, each in by.items()}}
        for name, by in found.items()
    }


class _TierScores:
    """How well what each tier knows of a passage fits a question, from 0 to 1."""

    def __init__(self, owner: Owner) -> None:
        owner.refresh(index=True)
        self._owner, self._at = owner, owner.index.layout.columns
        known = {row.id: row for id_ in set(self._at.page.tolist()) if (row := owner.pages.row(id_)) is not None}
        rows = [known[id_] for id_ in self._at.page.tolist()]
        self.places = [(row.index, entry) for row, entry in zip(rows, self._at.entry.tolist(), strict=True)]
        tiers = owner.tiers
        self._episode = [row.episode for row in rows]
        self._pages: dict[int, list[int]] = {}
        for position, (index, _) in enumerate(self.places):
            self._pages.setdefault(index, []).append(position)
        facts = [*tiers.user.facts.values(), *tiers.assistant.facts.values()]
        self._facts = {number: fact.text for number, fact in enumerate(facts)}
        self._told = {number: fact.index for number, fact in enumerate(facts)}
        self._episodes = {key: f"{each.summary} {' '.join(each.keywords)}" for key, each in tiers.episodes.items()}
        self._events = {key: each.what for key, each in tiers.events.items()}
        self._happened = {key: each.index for key, each in tiers.events.items()}
        self._chains = {row.chain: str(tiers.chains[row.chain]) for row in rows if row.chain in tiers.chains}
        self._chain = [row.chain for row in rows]
        self.sizes = {
            "episodes": len(self._episodes),
            "chains": len(self._chains),
            "facts": len(self._facts),
            "events": len(self._events),
            "graph": len(tiers.graph),
        }

    def base(self, question: str) -> Scores:
        query, index = Query.of(question), self._owner.index
        index.prepare(standing=False, whole=True)
        return rank(query, index.postings((*query.terms, *query.dates)), index.layout).scores.astype(float)

    def all(self, question: str) -> Iterable[tuple[str, Scores]]:
        episodes, chains = _fitting(self._episodes, question), _fitting(self._chains, question)
        yield "episodes", np.array([episodes.get(each, 0.0) for each in self._episode])
        yield "chains", np.array([chains.get(each, 0.0) for each in self._chain])
        yield "facts", self._of_pages((self._told[key], each) for key, each in _fitting(self._facts, question).items())
        happened = _fitting(self._events, question).items()
        yield "events", self._of_pages((self._happened[key], each) for key, each in happened)
        active = list(find_concepts(self._owner, question))
        most = max((each.activation for each in active), default=1.0)
        told = ((index, each.activation / most) for each in active for _, index in each.pages)
        yield "graph", self._of_pages(told)

    def _of_pages(self, scored: Iterable[tuple[int, float]]) -> Scores:
        found = np.zeros(len(self.places))
        for index, score in scored:
            for position in self._pages.get(index, ()):
                found[position] = max(found[position], score)
        return found


def _fitting(texts: _Texts, question: str) -> dict[Any, float]:
    """Return the share of the words of *question* that each text has, rare ones weighing more."""
    own = {key: frozenset(terms(text)) for key, text in texts.items()}
    common = Counter(term for each in own.values() for term in each)
    asked = {term: math.log(1 + len(own) / max(1, common[term])) for term in query_terms(question)}
    total = sum(asked.values()) or 1.0
    return {key: sum(asked[term] for term in asked.keys() & each) / total for key, each in own.items()}
