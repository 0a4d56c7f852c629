"""Questions whose answer is in many messages: lists, counts, orders, changes, in four languages.

    "repairs: The car failed, the garage repaired [the exhaust]."     a message; what stands in brackets answers
    "? count repairs: How many repairs did I pay for?"                every message of the topic is needed

The talks of many.txt are made up, and their messages stand far apart, between small talk. A needed message counts if
the words that answer are shown within the budget. This module knows nothing of how anything is found.
"""

import random
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from memci.memory.retrieval.ranking import Weights
from memci.tools.search_memory import answer

from .systems import Words, count
from .tasks import Line, Question, Talk
from .whole import Whole

BUDGET = 2_048
"""tokens of an answer"""
_FILLERS = 260
"""messages of small talk in a talk"""
_DAY = 86_400.0
_BEGIN = 1_735_732_800.0
"""1 January 2025"""
_SLOT = re.compile(r"\{([^{}]*)\}")


class Wanted(NamedTuple):
    """A question, and the words that each needed message has."""

    language: str
    topic: str
    question: Question
    words: tuple[str, ...]


def talks() -> Iterator[tuple[Talk, list[Wanted]]]:
    """Yield each talk of many.txt with its questions."""
    for part in Path(__file__).with_name("many.txt").read_text("utf-8").split("\n= ")[1:]:
        language, *lines = part.strip().splitlines()
        yield _talk(language, lines)


def _talk(language: str, lines: Sequence[str]) -> tuple[Talk, list[Wanted]]:
    rng = random.Random(language)
    told = [line.split(": ", 1) for line in lines if line[0] not in "?~-"]
    fillers, replies = ([line[2:] for line in lines if line[0] == kind] for kind in "~-")
    places = sorted(rng.sample(range(len(told) + _FILLERS), len(told)))
    topics = [topic for topic, _ in told]
    rng.shuffle(topics)  # the messages of a topic keep their order
    queues = {topic: [text for of, text in told if of == topic] for topic in topics}
    said: list[Line] = []
    number: dict[str, list[tuple[int, str]]] = {topic: [] for topic in queues}
    for place in range(len(told) + _FILLERS):
        text = filled(rng.choice(fillers), rng)
        if place in places:
            topic = topics[places.index(place)]
            marked = queues[topic].pop(0)
            words = re.search(r"\[(.+?)\]", marked)
            assert words is not None, f"no words of {marked!r} answer"
            number[topic].append((len(said), words[1]))
            text = marked.replace("[", "").replace("]", "")
        at = _BEGIN + place * _DAY
        said.append(Line({"role": "user", "content": text}, at))
        said.append(Line({"role": "assistant", "content": filled(rng.choice(replies), rng)}, at + 60))
    wanted = []
    for line in lines:
        if line[0] == "?":
            head, text = line[2:].split(": ", 1)
            kind, topic = head.split()
            needed = number[topic]
            question = Question(text, kind, frozenset(place for place, _ in needed))
            wanted.append(Wanted(language, topic, question, tuple(words for _, words in needed)))
    return Talk(language, tuple(said), tuple(each.question for each in wanted)), wanted


def small_talk(language: str, without: Collection[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the small talk of users and the replies to it, with slots (`filled`), and what else users tell.

    The topics *without* are left out.
    """
    parts = Path(__file__).with_name("many.txt").read_text("utf-8").split("\n= ")
    (lines,) = [part.splitlines() for part in parts if part.startswith(f"{language}\n")]
    fillers, replies = ([line[2:] for line in lines if line[0] == kind] for kind in "~-")
    told = [line.split(": ", 1) for line in lines[1:] if line[0] not in "?~-"]
    return fillers, replies, [re.sub(r"[\[\]]", "", text) for topic, text in told if topic not in without]


def filled(text: str, rng: random.Random) -> str:
    """Return *text* with a choice in each slot."""
    return _SLOT.sub(lambda slot: rng.choice(slot[1].split("|")), text)


def _by_tool(whole: Whole, question: str) -> str:
    return answer(
        {"query": question},
        lambda asked, k, **_: whole.context.search_memory(asked.text, k=k, budget=BUDGET),
        context="talk",
        room=BUDGET,
        count=count,
        nonce="0",
    )


def _by_program(whole: Whole, question: str) -> str:
    pages = whole.context.search_memory(question, k=300, budget=BUDGET).pages
    return "\n".join(piece.text for page in pages for each in (page, page.later) if each for piece in each.pieces)


def many(weights: Weights | None = None, *, most: int | None = None) -> dict[str, dict[str, float]]:
    """Return the shares of the needed messages that are shown within `BUDGET`, by system, and by half and kind.

    What was chosen was chosen on the first half, every other topic. *most*: only so many talks.
    """
    found: dict[str, dict[str, list[float]]] = {"memci, the tool": {}, "memci": {}, "BM25": {}}
    for talk, wanted in islice(talks(), most):
        whole, words = Whole(weights=weights), Words()
        whole.add(talk)
        words.add(talk)
        texts = [str(line.message["content"]) for line in talk.lines]
        topics = list(dict.fromkeys(each.topic for each in wanted))
        for each in wanted:
            asked = each.question.text
            shown = (
                _by_tool(whole, asked),
                _by_program(whole, asked),
                "\n".join(texts[n] for n in words.within(asked, BUDGET)),
            )
            half = ("chosen on", "confirmed on")[topics.index(each.topic) % 2]
            for label, text in zip(found, shown, strict=True):
                share = 100 * fmean(part in text for part in each.words)
                for row in ("all", half, each.language, each.question.kind):
                    found[label].setdefault(row, []).append(share)
        whole.close()
    return {label: {row: round(fmean(each), 1) for row, each in of.items()} for label, of in found.items()}
