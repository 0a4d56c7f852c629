"""What each tier adds to an answer of the search tool, by kind of question: `python -m benchmarks.recall --ablate`.

    "What happened on 8 May 2023?"       what the people of a dialogue told of themselves that day
    "What did we say about pottery?"     the same of all days, where a statement has the word
    "What do you know about Mel?"        all that Mel told
    one fact, when, several              the questions of the data

The answer is cut to `ROOM` tokens: with messages alone, and with what a tier derived. A needed statement counts if two
thirds of the telling words that it shares with its message are on one line of the answer. Statements are those that the
makers of the dialogues wrote of each session. Every other talk is the half that nothing was chosen on.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from memci.memory import Recollection
from memci.memory.backend import StatementKind
from memci.memory.retrieval.ranking import Weights
from memci.text.language.telling import EVERYDAY_SHARE, telling_words
from memci.tools.search_memory import answer

from ..conversation import folder
from .personas import personas
from .systems import count
from .tasks import Talk
from .whole import Whole

ROOM = 1_024
"""tokens of an answer"""
_SUBJECTS = 24
"""words of a dialogue that are asked about, at most: those of 4 to 15 statements"""
_SHARE = 2 / 3
_KINDS = {
    "single-hop": "one fact",
    "temporal": "when",
    "multi-hop": "several",
    "people": "people",
    "information_extraction": "one fact",
    "temporal_reasoning": "when",
    "multi_session_reasoning": "several",
    "knowledge_update": "changes",
    "contradiction_resolution": "changes",
    "event_ordering": "order",
    "summarization": "about",
    "preference_following": "who",
    "instruction_following": "who",
    "list": "several",
    "count": "how many",
    "order": "order",
    "change": "changes",
}
"""kinds of questions, by their names in the data"""
_ALL = frozenset(["conversations", "episodes", "days", "facts", "the rest"])
TIERS: dict[str, frozenset[str]] = {
    "messages": frozenset(),
    "conversations": frozenset(["conversations"]),
    "episodes": frozenset(["episodes"]),
    "days": frozenset(["days"]),
    "facts": frozenset(["facts"]),
    "all": _ALL,
}
"""which tiers answer"""
_KEPT: dict[StatementKind, str] = {"day": "days", "episode": "episodes", "conversation": "conversations"}


class Needed(NamedTuple):
    """A question, and the words of each statement that answers it: telling words of one line, or a text."""

    kind: str
    text: str
    words: Sequence[frozenset[str] | str]


def of_personas() -> dict[str, Any]:
    """Return `tiers` of the talks of personas.txt: two to choose on, two that confirm."""
    told = [(talk, [Needed(of.kind, of.text, words) for of, words in asked]) for talk, asked in personas()]
    return tiers([talk for talk, _ in told], [asked for _, asked in told], halves=(0, 0, 1, 1))


def tiers(
    talks: Sequence[Talk], asked: Sequence[Sequence[Needed]] | None = None, *, halves: Sequence[int] = (0, 1)
) -> dict[str, Any]:
    """Return, by kind of question and half, the share that messages alone show, and what each tier adds.

    *asked* are the questions of each talk; default: those of the data. Its half is that of *halves*, in turn.
    """
    rows: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, talk in enumerate(talks):
        whole = Whole()
        whole.add(talk)
        last = datetime.fromtimestamp(talk.lines[-1].at or 0.0, UTC)
        whole.context.end_session()
        whole.memory.maintain(last.timestamp() + 86_400)
        for each in asked[number] if asked else (*_asked(talk), *_told(talk)):
            half = ("chosen on", "confirmed on")[halves[number % len(halves)]]
            for name in TIERS:
                text = _answer(whole, each.text, name, last.date())
                lines = [_words(line) for line in text.splitlines()]
                shown = (
                    need in text if isinstance(need, str) else any(len(need & of) >= _SHARE * len(need) for of in lines)
                    for need in each.words
                )
                rows[f"{each.kind}, {half}"][name].append(100 * fmean(shown))
        whole.close()
    return {kind: _added(of) for kind, of in rows.items()}


def _added(of: dict[str, list[float]]) -> dict[str, Any]:
    base, chance = np.array(of["messages"]), np.random.default_rng(0)
    found: dict[str, Any] = {"questions": len(base), "messages": round(float(base.mean()), 1)}
    for name in list(TIERS)[1:]:
        gain = np.array(of[name]) - base
        means = [chance.choice(gain, len(gain)).mean() for _ in range(1_000)]
        low, high = np.quantile(means, (0.025, 0.975))
        found[name] = f"{gain.mean():+.1f} ({low:+.1f} to {high:+.1f})"
    return found


def _answer(whole: Whole, question: str, tier: str, now: date) -> str:
    kept = TIERS[tier]
    whole.memory.session.weights = Weights(conversations="conversations" in kept)

    def search(asked: Any, k: int, **_: object) -> Recollection:
        found = whole.context.search_memory(asked.text, k=k, budget=ROOM)
        known = {} if "facts" in kept else {"user_facts": (), "assistant_facts": ()}
        told = [each for each in found.statements if _KEPT.get(each.kind) in kept or kept == _ALL]
        return replace(found, statements=tuple(told), **known)

    return answer({"query": question}, search, context="talk", room=ROOM, count=count, nonce="0", now=now)


def _asked(talk: Talk) -> Iterator[Needed]:
    """Yield the questions of the data, with the words of the messages that answer."""
    for each in talk.questions:
        if each.kind in _KINDS and all(_text(talk, place) for place in each.evidence):
            yield Needed(_KINDS[each.kind], each.text, [_words(_text(talk, place)) for place in sorted(each.evidence)])


def _told(talk: Talk) -> Iterator[Needed]:
    """Yield questions about days, months, subjects and people, with the statements that the makers wrote of them."""
    path = folder()
    samples = json.loads((path / "locomo_part.json").read_text(encoding="utf-8")) if path else []
    told = [
        (who, text, turn)
        for sample in samples
        if sample["sample_id"] == talk.name
        for session in sample["observation"].values()
        for who, some in session.items()
        for text, turns in some
        for turn in ([turns] if isinstance(turns, str) else turns)
    ]
    places = _places(talk, samples)
    of: dict[tuple[str, str], list[frozenset[str]]] = defaultdict(list)
    subjects: Counter[str] = Counter()
    known = [(who, text, places[turn]) for who, text, turn in told if turn in places]
    for who, text, place in known:
        said = _text(talk, place)
        need = (_words(text) & _words(said)) or _words(said)
        day = datetime.fromtimestamp(talk.lines[place].at or 0.0, UTC)
        of["day", f"What happened on {day.day} {day:%B %Y}?"].append(need)
        of["month", f"What happened in {day:%B %Y}?"].append(need)
        of["who", f"What do you know about {who}?"].append(need)
        for word in set(re.findall(r"[a-z]{5,}", text.lower())) & set(re.findall(r"[a-z]{5,}", said.lower())):
            if _words(word):
                subjects[word] += 1
                of[word, ""].append(need)
    chosen = [word for word, times in subjects.most_common() if 4 <= times <= 15][:_SUBJECTS]
    for (kind, question), words in of.items():
        if question:
            yield Needed(kind, question, words)
    yield from (Needed("about", f"What did we say about {word}?", of[word, ""]) for word in chosen)


def _places(talk: Talk, samples: Sequence[dict[str, Any]]) -> dict[str, int]:
    turns = (
        turn["dia_id"]
        for sample in samples
        if sample["sample_id"] == talk.name
        for number in range(1, len(sample["conversation"]))
        for turn in sample["conversation"].get(f"session_{number}", ())
    )
    return {turn: place for place, turn in enumerate(turns)}


def _text(talk: Talk, place: int) -> str:
    return str(talk.lines[place].message["content"] or "")


def _words(text: str) -> frozenset[str]:
    return frozenset(word[2] for word in telling_words(text) if word[3] < EVERYDAY_SHARE)
