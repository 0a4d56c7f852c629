"""A memory in the style of MemoryOS, written from its paper and what its released code does; not that code.

    a page ──▶ short-term, 7 pages ──▶ mid-term: segments of pages of one topic ──▶ facts and a profile
                                       cos + Jaccard ≥ 0.6, heat = visits + length + recency; ≥ 5: analysed

A page is what one says and the other answers (`Dialogue.pages`, which loses nothing). For each page that leaves the
short-term queue a model is asked three times, as by the released code: whether it goes on from the page before, what
its chain of pages is about, and its topic with keywords; for each segment that got hot twice, profile and facts. For a
question: the short-term pages, the best 10 pages of the best 5 segments (each ≥ 0.1), the best 10 facts about either
person, and the profile.

From the paper (arXiv 2506.06326) are 7 pages, 200 segments, 100 facts each, α = β = γ = 1 with recency in units of 10⁷
seconds, top 5, 10 and 10; from the code the three calls, and that a segment keeps its first summary and keywords.
Differences: prompts are our own; pages hold every message, with its date; the time is that of the dialogue; a question
counts as no visit, since questions must not change each other's notes; it is not asked for keywords; what a model
answers in a form that can't be read is replaced by the beginning of the page, and counted. This module knows nothing of
the questions.
"""

import json
import math
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memci.errors import AnswerRejected
from memci.memory.retrieval.hash_embedder import HashEmbedder

from .dialogues import Dialogue, Said
from .systems import Limits, Recalled

SHORT_TERM = 7
SEGMENTS = 200
FACTS = 100
SIMILAR = 0.6
RELEVANT = 0.1
HOT = 5.0
RECENCY_SECONDS = 1e7
TOP_SEGMENTS = 5
TOP_PAGES = 10
TOP_FACTS = 10

Vector = NDArray[np.float32]


@dataclass(slots=True)
class Page:
    """What one said and the other answered."""

    text: str
    at: float
    chain: list[str]
    """what its chain of pages is about: shared by all pages of the chain"""
    vector: Vector
    keywords: frozenset[str] = frozenset()
    analysed: bool = False


@dataclass(slots=True)
class Segment:
    """Pages of one topic."""

    summary: str
    keywords: frozenset[str]
    vector: Vector
    pages: list[Page] = field(default_factory=list)
    visits: int = 0
    length: int = 0
    last: float = 0.0

    def heat(self, now: float) -> float:
        """Return the paper's H: visits, interactions, recency."""
        return self.visits + self.length + math.exp(-(now - self.last) / RECENCY_SECONDS)


class MemoryOS:
    """The baseline."""

    def __init__(self, limits: Limits) -> None:
        if limits.chat is None:
            raise ValueError("memoryos does all of its work by a model: name one")
        self._chat = limits.chat
        self._embed = limits.embedder or HashEmbedder(512)
        self._short: deque[Sequence[Said]] = deque()
        self._segments: list[Segment] = []
        self._facts: dict[str, deque[tuple[str, Vector]]] = {who: deque(maxlen=FACTS) for who in ("first", "second")}
        self._profile = ""
        self._before: Page | None = None
        self._counts: Counter[str] = Counter()

    def tell(self, dialogue: Dialogue) -> None:
        for page in dialogue.pages:
            self._short.append(page)
            if len(self._short) > SHORT_TERM:
                self._hand_over(self._short.popleft())
            self._counts["pages"] += 1

    def recall(self, question: str) -> Recalled:
        asked = self._vector(question)
        segments = _best(self._segments, asked, TOP_SEGMENTS)
        pages = _best([page for segment in segments for page in segment.pages], asked, TOP_PAGES)
        notes = [f"(profile) {self._profile}"] if self._profile else []
        for known in self._facts.values():
            close = sorted(known, key=lambda fact: -float(fact[1] @ asked))[:TOP_FACTS]
            notes += [f"(known) {text}" for text, vector in close if float(vector @ asked) >= RELEVANT]
        about = ""
        for page in sorted(pages, key=lambda page: page.at):
            if page.chain[0] != about:
                notes.append(f"(about) {page.chain[0]}")
                about = page.chain[0]
            notes.append(page.text)
        return Recalled("\n".join([*notes, *(_text(page) for page in self._short)]))

    def details(self) -> dict[str, Any]:
        known = {f"facts_{who}": len(facts) for who, facts in self._facts.items()}
        return {**self._counts, **known, "segments": len(self._segments)}

    def close(self) -> None:
        self._segments.clear()

    def _hand_over(self, told: Sequence[Said]) -> None:
        text = _text(told)
        page = Page(text, told[0].at, [""], self._vector(text))
        if self._before is not None and self._goes_on(self._before, page):
            page.chain = self._before.chain
        page.chain[0] = self._ask("chain", CHAIN, {"overview": page.chain[0], "page": text}) or text[:200]
        self._before = page
        summary, page.keywords = self._topic(text)
        segment = max(self._segments, key=lambda each: _alike(each, page), default=None)
        if segment is None or _alike(segment, page) < SIMILAR:
            segment = Segment(summary, page.keywords, self._vector(summary))
            self._segments.append(segment)
        segment.pages.append(page)
        segment.length += 1
        segment.last = page.at
        if len(self._segments) > SEGMENTS:
            self._segments.remove(min(self._segments, key=lambda each: each.heat(page.at)))
            self._counts["evicted"] += 1
        if segment.heat(page.at) >= HOT:
            self._analyse(segment)

    def _goes_on(self, before: Page, page: Page) -> bool:
        said = self._ask("continuity", CONTINUITY, {"before": before.text, "page": page.text})
        return said.strip(" .'\"").lower().startswith("true")

    def _topic(self, text: str) -> tuple[str, frozenset[str]]:
        found = _read(self._ask("topic", TOPIC, {"page": text}))
        if not found.get("summary"):
            self._counts["unreadable"] += 1
        return str(found.get("summary") or text[:200]), frozenset(_strings(found.get("keywords"), fold=True))

    def _analyse(self, segment: Segment) -> None:
        fresh = "\n".join(page.text for page in segment.pages if not page.analysed)
        self._profile = self._ask("profile", PROFILE, {"profile": self._profile, "pages": fresh}) or self._profile
        found = _read(self._ask("facts", FACTS_OF, {"pages": fresh}))
        for who, known in self._facts.items():
            known.extend((fact, self._vector(fact)) for fact in _strings(found.get(who)))
        for page in segment.pages:
            page.analysed = True
        segment.visits = segment.length = 0
        self._counts["analysed"] += 1

    def _ask(self, step: str, task: str, about: dict[str, str]) -> str:
        """Return what the model says; "" if that is no answer to be kept. Where it does not answer, telling fails."""
        told = json.dumps(about, ensure_ascii=False)
        messages = [{"role": "system", "content": f"{step.upper()}\n{task}"}, {"role": "user", "content": told}]
        try:
            return self._chat(messages, step=step).text.strip()
        except AnswerRejected:
            self._counts["rejected"] += 1
            return ""

    def _vector(self, text: str) -> Vector:
        vector: Vector = np.asarray(self._embed([text]), np.float32)[0]
        return vector / max(float(np.linalg.norm(vector)), 1e-9)


CONTINUITY = """\
The JSON has a page of a conversation and the page before it. Does the page go on with what the one before was about?
Answer "true" or "false"."""

CHAIN = """\
The JSON has what a chain of pages was about so far (which may be empty), and its next page. Answer with one or two
sentences that say what the whole chain is about."""

TOPIC = """\
The JSON has a page of a conversation. Answer with JSON: {"summary": what it is about, in one or two sentences,
"keywords": [at most eight words that name it]}."""

PROFILE = """\
The JSON has a profile of the first of two people (which may be empty) and pages of their conversation. Answer with the
profile, bettered by the pages: personality, interests, circumstances; at most 150 words."""

FACTS_OF = """\
The JSON has pages of a conversation of two people. Answer with JSON: {"first": [short facts about the one who speaks
first], "second": [short facts about the other one]}, each fact one sentence with the name and, if it is known, the
date; [] if there are none."""

STEPS = {"CONTINUITY": CONTINUITY, "CHAIN": CHAIN, "TOPIC": TOPIC, "PROFILE": PROFILE, "FACTS": FACTS_OF}
"""what the first line of a request names"""


def _text(page: Sequence[Said]) -> str:
    return "\n".join(line.line for line in page)


def _best(items: Sequence[Any], asked: Vector, most: int) -> list[Any]:
    """Return the items whose vectors are closest, if they are close at all."""
    scores = sorted(((float(each.vector @ asked), -number) for number, each in enumerate(items)), reverse=True)
    return [items[-number] for score, number in scores[:most] if score >= RELEVANT]


def _alike(segment: Segment, page: Page) -> float:
    union = segment.keywords | page.keywords
    jaccard = len(segment.keywords & page.keywords) / len(union) if union else 0.0
    return float(segment.vector @ page.vector) + jaccard


def _read(answer: str) -> dict[str, Any]:
    """Return the JSON object in an answer, {} if there is none."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _strings(found: object, *, fold: bool = False) -> Collection[str]:
    texts = [each.strip() for each in found if isinstance(each, str)] if isinstance(found, list) else []
    return [text.lower() if fold else text for text in texts if text]
