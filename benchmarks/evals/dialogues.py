"""Long dialogues of two people, whole and in order, and what is asked about them.

    Dialogue("conv-26", ("Caroline", "Melanie"), (Said("Caroline", "Hey Mel!", at), …), (Asked(0, "When …", …), …))

The reader is the one of `benchmarks.recall`; what a picture shows stands behind the text it was sent with, as LoCoMo's
own question answering and MemoryOS's have it, and the answers, which recall does not need, are added. That no message
is lost on the way is checked here, for every dialogue. This module knows nothing of memories or models.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from ..conversation import folder
from ..recall.tasks import dialogue, quoted_turns

FILES = ("locomo10.json", "locomo_part.json")
CATEGORIES = (1, 2, 3, 4, 5)


@dataclass(frozen=True, slots=True)
class Said:
    """What one of the two said, in words and pictures, and when."""

    who: str
    text: str
    at: float

    @property
    def line(self) -> str:
        """As it stands in a prompt, with its date: "yesterday" means nothing without it."""
        return f"[{dated(self.at)}] {self.who}: {self.text}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, and what is right."""

    number: int
    text: str
    category: int
    gold: str
    """in category 5: the wrong answer that it invites"""
    evidence: frozenset[int]
    """numbers of the lines that answer it; empty if the file names none"""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Everything that two people said to each other."""

    name: str
    speakers: tuple[str, str]
    lines: tuple[Said, ...]
    asked: tuple[Asked, ...] = ()

    @property
    def pages(self) -> tuple[tuple[Said, ...], ...]:
        """All lines, in pages: what the first speaker says at a stretch, and what the second one answers.

        A session is a page's end. Several messages of one speaker in a row stay together, and one who speaks alone has
        a page alone: nothing is overwritten or left over.
        """
        pages: list[tuple[Said, ...]] = []
        for _, session in groupby(self.lines, key=lambda line: line.at):
            page: list[Said] = []
            for line in session:
                if page and line.who == self.speakers[0] != page[-1].who:
                    pages.append(tuple(page))
                    page = []
                page.append(line)
            pages.append(tuple(page))
        assert tuple(line for page in pages for line in page) == self.lines, "pages must hold every message, in order"
        return tuple(pages)


def dated(at: float) -> str:
    """Return a time as a prompt tells it: "8 May 2023, 13:56"."""
    when = datetime.fromtimestamp(at, UTC)
    return f"{when.day} {when:%B %Y, %H:%M}"


def source(given: Path | None) -> Path | None:
    """Return the file of the dialogues: *given*, in that folder, or where other benchmarks read; None: not there."""
    place = given or folder()
    if place is None or place.is_file():
        return place
    return next((place / name for name in FILES if (place / name).is_file()), None)


def read(file: Path) -> list[Dialogue]:
    """Return the dialogues of a file in LoCoMo's format.

    Raises:
        ValueError: If a message of the file is not among the lines.
    """
    return [_read(sample) for sample in json.loads(file.read_text(encoding="utf-8"))]


def _read(sample: dict[str, Any]) -> Dialogue:
    talk: dict[str, Any] = {
        key: [_told(turn) for turn in told] if _session(told) else told for key, told in sample["conversation"].items()
    }
    lines, number = dialogue(talk, "names")
    said = tuple(Said(each.message["name"], each.message["content"], each.at or 0.0) for each in lines)
    turns = sum(len(told) for told in talk.values() if _session(told))
    if not turns == len(said) == len(number):
        raise ValueError(f"{sample['sample_id']}: {turns} messages in the file, {len(said)} lines, {len(number)} names")
    asked = [
        Asked(position, each["question"], each["category"], _gold(each), quoted_turns(each["evidence"], number))
        for position, each in enumerate(sample["qa"])
    ]
    return Dialogue(sample["sample_id"], (talk["speaker_a"], talk["speaker_b"]), said, tuple(asked))


def _session(told: object) -> bool:
    return isinstance(told, Sequence) and not isinstance(told, str)


def _told(turn: dict[str, Any]) -> dict[str, Any]:
    caption = turn.get("blip_caption")
    return turn | {"text": f"{turn['text']} [shares a picture: {caption}]".strip()} if caption else turn


def _gold(each: dict[str, Any]) -> str:
    """The answer of its category: two questions of category 5 have both kinds."""
    name = "adversarial_answer" if each["category"] == 5 else "answer"
    return str(each.get(name, each.get("answer", "")))
