"""A scripted model: it gives the gold answer if all of its evidence stands in the prompt, else it does not know.

    oracle = Oracle(dialogues)
    oracle([{"role": "system", …}, {"role": "user", "content": "…\nQuestion: …\nShort answer:"}])     "Single"

What it scores is no model's score: it reads like no model, and it never misreads. It shows that a harness works from
end to end, and how much of the answers a memory puts within reach. For the work of a memory it has rules that take the
beginning of a page for its summary and its rarest words for keywords, which is not what a model would do either.
This module knows nothing of HTTP: `memci.testing.llm` serves it.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from . import prompt
from .dialogues import Asked, Dialogue
from .memoryos import STEPS
from .metrics import wanted_of

UNKNOWN = "I don't know"
_WORD = re.compile(r"[a-z]{4,}")
_DATE = re.compile(r"^\[[^\]]*\] ", re.MULTILINE)


class Oracle:
    """Answers from what is in the prompt, by the file of the questions."""

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self._asked: defaultdict[str, list[tuple[Dialogue, Asked]]] = defaultdict(list)
        self._often: Counter[str] = Counter()
        for dialogue in dialogues:
            for asked in dialogue.asked:
                self._asked[prompt.question(dialogue, asked)].append((dialogue, asked))
            for line in dialogue.lines:
                self._often.update(set(_WORD.findall(line.text.lower())))

    def __call__(self, messages: Sequence[Mapping[str, Any]]) -> str:
        first, last = str(messages[0]["content"]), str(messages[-1]["content"])
        name, _, task = first.partition("\n")
        if STEPS.get(name) == task:
            return self._work(name, json.loads(last))
        notes, _, asked = last.rpartition("\nQuestion: ")
        text = asked.removesuffix("\nShort answer:")
        answers = (self._answer(*each, notes) for each in self._asked[text] if _about(each[0], first))
        return next((answer for answer in answers if answer != UNKNOWN), UNKNOWN)

    def _answer(self, dialogue: Dialogue, asked: Asked, notes: str) -> str:
        if asked.category == 5:
            return prompt.ABSENT
        seen = asked.evidence and all(dialogue.lines[number].text in notes for number in asked.evidence)
        return wanted_of(asked.category, asked.gold) if seen else UNKNOWN

    def _work(self, step: str, about: dict[str, str]) -> str:
        page = _DATE.sub("", about.get("page", ""))
        words = set(_WORD.findall(page.lower()))
        if step == "CONTINUITY":
            before = set(_WORD.findall(_DATE.sub("", about["before"]).lower()))
            return "true" if len(words & before) > 0.15 * len(words | before) else "false"
        if step == "CHAIN":
            return about["overview"] or page[:200]
        if step == "TOPIC":
            keywords = sorted(words, key=lambda word: (self._often[word], word))[:6]
            return json.dumps({"summary": page[:300], "keywords": keywords})
        if step == "PROFILE":
            return about["profile"]
        told = _DATE.sub("", about["pages"]).splitlines()
        return json.dumps({"first": told[:2:2], "second": told[1:2]})


def _about(dialogue: Dialogue, system: str) -> bool:
    return all(who in system for who in dialogue.speakers)
