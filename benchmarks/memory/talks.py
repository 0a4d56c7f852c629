"""Talks that are made up, the same ones each time: a subject for some pages, then another, and back again.

    page   "Kavo tulare the brimo …, Mirenta?"      user        most words are common, a few are the subject's own,
           "The brimo sente olavi in …"             assistant   and some are said once and never again

How often a word comes follows Zipf's law, so that postings are as uneven as those of real text. No data file is read.
This module knows nothing of memories.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from random import Random

from ..conversation import Message

_WORDS = 30_000
_SUBJECTS = 2_000
_OWN = 25
"""words of a subject"""
_STAYS = 6
"""pages of a subject, on average, before another one comes up"""
_BEGAN = datetime(2024, 1, 1, 8, tzinfo=UTC)
_ENGLISH = """
    the a of to and in is it you that for on with as this be at are was I my we have not but what all they can there
    when would about time if some could make like more very after just know take people into year good
""".split()  # noqa: SIM905 -- words, not fifty lines


class Talks:
    """A source of talks: pages, when each was, and what may be asked of them."""

    def __init__(self, seed: int = 6_04) -> None:
        self._random = Random(seed)
        syllables = [first + vowel for first in "bdfghjklmnprstvz" for vowel in ("a", "e", "i", "o", "u", "ai", "en")]
        made: dict[str, None] = dict.fromkeys(_ENGLISH)
        while len(made) < _WORDS:
            made["".join(self._random.choices(syllables, k=self._random.randint(2, 4)))] = None
        self._words = list(made)
        self._sums = list(accumulate(1 / (rank + 2.7) for rank in range(_WORDS)))
        self._subjects = [self._random.sample(self._words[200:], _OWN) for _ in range(_SUBJECTS)]

    def pages(self) -> Iterator[tuple[datetime, list[Message]]]:
        """Yield pages without end: when it was, what the user said and what was answered. About 80 words each."""
        random, at = self._random, _BEGAN
        subject = random.choice(self._subjects)
        while True:
            if random.random() * _STAYS < 1:
                subject = random.choice(self._subjects)
                at += timedelta(hours=random.choice((1, 2, 9, 15)))
            at += timedelta(minutes=random.randint(1, 9))
            asked = self._said(subject, random.randint(8, 40), end=random.choice("..?"))
            told = self._said(subject, random.randint(20, 90), end=".")
            yield at, [{"role": "user", "content": asked}, {"role": "assistant", "content": told}]

    def question(self, page: list[Message]) -> str:
        """Return what may be asked of *page*: two rare words of it and two others."""
        words = " ".join(str(message["content"]) for message in page).lower().replace(".", "").replace("?", "").split()
        rank = {word: at for at, word in enumerate(words)}
        chosen = self._random.sample(sorted(rank), min(4, len(rank)))
        own = [word for word in rank if word not in _ENGLISH][-2:]
        return f"When did we talk about {' '.join([*own, *chosen])}?"

    def _said(self, subject: list[str], count: int, end: str) -> str:
        random = self._random
        said = random.choices(self._words, cum_weights=self._sums, k=count)
        for place in random.sample(range(count), count // 5):
            said[place] = random.choice(subject)
        if random.random() < 0.2:
            said[random.randrange(count)] = f"no{random.randrange(10**6)}"
        for place in range(9, count, random.randint(8, 14)):
            said[place] += "."
        return " ".join(said).capitalize() + end
