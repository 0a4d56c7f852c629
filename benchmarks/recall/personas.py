"""What four people tell an assistant over months, with questions about it: `personas.txt` says how it is written.

    me: I'm allergic to [walnuts].        what stands in brackets answers each question for "me"
    ? who me: What do you know about me?

Two talks are to choose on, two confirm. This module knows nothing of how anything is found.
"""

import random
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from .many import filled, small_talk
from .tasks import Line, Question, Talk

_BESIDE, _OTHERS = 10, 3
"""exchanges about other things in a session, and how many of them are no small talk, so that their words are rare, too:
statements of many.txt about other topics"""
_ALIKE = {"books", "rent", "run", "lead"}
"""topics of many.txt about which these people are asked, too"""
_PAUSE = 60.0
"""seconds between two messages"""


def personas() -> Iterator[tuple[Talk, list[tuple[Question, list[str]]]]]:
    """Yield each talk with its questions, and the words that each of them needs."""
    for part in Path(__file__).with_name("personas.txt").read_text("utf-8").split("\n= ")[1:]:
        language, *lines = part.strip().splitlines()
        yield _talk(language, lines)


def _talk(language: str, lines: list[str]) -> tuple[Talk, list[tuple[Question, list[str]]]]:
    rng = random.Random(language)
    labels = {label for line in lines if line[0] not in "?@-" for label in line.split(": ")[0].split()}
    fillers, replies, others = small_talk(language, labels | _ALIKE)
    rng.shuffle(others)
    said: list[Line] = []
    needed: dict[str, list[tuple[int, str]]] = {}
    day, at, sessions = "", 0.0, [[]]  # type: list[list[list[str]]]
    for line in lines:
        if line[0] == "@":
            sessions.append([[line]])
        elif line[0] == "-":
            sessions[-1][-1].append(line[2:])
        elif line[0] != "?":
            sessions[-1].append([line])
    for session in sessions[1:]:
        day, told = session[0][0][2:], session[1:]
        at = datetime.fromisoformat(f"{day}T18:00").replace(tzinfo=UTC).timestamp()
        beside = [others.pop() for _ in range(_OTHERS) if others]
        beside += [filled(rng.choice(fillers), rng) for _ in range(_BESIDE - len(beside))]
        for text in beside:
            told.insert(rng.randint(0, len(told)), [f": {text}"])
        for line, *answers in told:
            labels, text = line.split(": ", 1)
            words = re.search(r"\[(.+?)\]", text)
            for label in (*labels.split(), f"month-{day[5:7]}") if words else ():
                needed.setdefault(label, []).append((len(said), words[1] if words else ""))
            answer = answers[0] if answers else filled(rng.choice(replies), rng)
            for role, content in (("user", re.sub(r"[\[\]]", "", text)), ("assistant", answer)):
                said.append(Line({"role": role, "content": content}, at))
                at += _PAUSE
    asked = []
    for line in lines:
        if line[0] == "?":
            head, text = line[2:].split(": ", 1)
            kind, label = head.split()
            question = Question(text, kind, frozenset(place for place, _ in needed[label]))
            asked.append((question, [words for _, words in needed[label]]))
    return Talk(language, tuple(said), tuple(each for each, _ in asked)), asked
