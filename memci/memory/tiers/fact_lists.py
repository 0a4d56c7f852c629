"""Knowledge: short facts about the user, and about what the assistant did, in two bounded lists.

    "I live in Oslo." (#1)   + "i LIVE in oslo!" (#5)     one fact in the later words; #1 and #5 are its evidence
    "I have 2 dogs." (#2)    + "I have 3 dogs." (#6)      two facts: figures tell them apart

What is said again, nearly the same, is one fact with more pages as its evidence; what was not retrieved
for longest goes first. (MemoryOS, arXiv 2506.06326, keeps 100 of each, first in first out; its notes call that least
recently used.) Facts that contradict each other are both kept: nothing here can know which is true.

This module knows nothing of profiles, of what tells a fact, or of how facts are stored and found.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

from ...text.language.keywords import folded
from ...text.language.terms import terms
from .chains import cosine
from .facts import Known

LIMIT = 100
_ALIKE = 0.8
_NEAR = 0.93


@dataclass(frozen=True, slots=True, eq=False)
class FactUpdate:
    """What it takes to learn a fact."""

    fact: Known
    """to be stored"""
    id: int | None
    """of the fact that it takes the place of; None: a new one"""
    evicted: tuple[int, ...]
    """ids of facts that leave for it"""


class Knowledge:
    """A bounded list of facts by their ids."""

    __slots__ = ("_facts", "limit")

    def __init__(self, facts: Mapping[int, Known] | None = None, limit: int = LIMIT) -> None:
        self.limit = limit
        self._facts = dict(facts or {})

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def facts(self) -> Mapping[int, Known]:
        """Every fact by its id."""
        return self._facts

    def change(self, new: Known, now: float = 0.0) -> FactUpdate:
        """Return what it takes to learn *new*, *now*; nothing is changed yet. O(facts)."""
        pages = new.pages or ((new.context, new.index),)
        new = replace(new, pages=pages, retrieved=max(new.retrieved, now))
        for key, old in self._facts.items():
            if same(old, new):
                return FactUpdate(_joined(old, new), key, ())
        excess = max(0, len(self._facts) + 1 - self.limit)
        coldest = sorted(self._facts, key=lambda key: (self._facts[key].retrieved, key))
        return FactUpdate(new, None, tuple(coldest[:excess]))

    def apply(self, change: FactUpdate, key: int) -> None:
        """Make *change*, whose fact has the id *key*."""
        self.drop(change.evicted)
        self._facts[key] = change.fact

    def drop(self, keys: Iterable[int]) -> None:
        """Take facts out; ids that are not there are fine."""
        for key in keys:
            self._facts.pop(key, None)

    def retrieved(self, keys: Iterable[int], now: float) -> None:
        """Note that a search returned these facts."""
        for key in keys:
            if key in self._facts:
                fact = self._facts[key]
                self._facts[key] = replace(fact, retrieved=max(now, fact.retrieved))


def same(some: Known, other: Known) -> bool:
    """Return whether two facts say nearly the same: never if figures or a "not" differ."""
    if some.about != other.about:
        return False
    one, two = _said(some.text), _said(other.text)
    if one.bare == two.bare:
        return True
    if one.figures != two.figures or one.denied != two.denied:
        return False
    both = len(one.words | two.words)
    shared = len(one.words & two.words) / both if one.words and two.words else 0.0
    return shared >= _ALIKE or (shared >= 0.5 and cosine(some.vector, other.vector) >= _NEAR)


def _joined(old: Known, new: Known) -> Known:
    pages = tuple(dict.fromkeys((*old.pages, *new.pages)))
    # what was said later is how it is put now; a late arrival of an old page changes no words
    later = new if old.at is None or new.at is None or new.at >= old.at else old
    vector = later.vector if later.vector is not None else (old.vector if later.text == old.text else None)
    return replace(later, pages=pages, retrieved=max(old.retrieved, new.retrieved), vector=vector)


class _Said(NamedTuple):
    """What is compared of a fact."""

    bare: str
    figures: frozenset[str]
    denied: bool
    words: frozenset[str]


@lru_cache(maxsize=4096)
def _said(text: str) -> _Said:
    lowered = text.casefold()
    return _Said(
        " ".join(re.findall(r"\w+", lowered)),
        frozenset(_FIGURE.findall(lowered)),
        _NOT.search(lowered.replace("’", "'")) is not None,
        frozenset(folded(term) for term in terms(text)) - {""},
    )


_FIGURE = re.compile(
    r"\d+(?>[.,:/-]\d+)*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b|[一二两三四五六七八九十]"
)
_NOT = re.compile(
    r"\b(?:not|no|never|none|nobody|without|stopped|quit|former|used to|no longer)\b|n't\b"
    r"|[不没沒無无未别別]|ない|ません|なく|(?:^|\s)(?:안|못)\s|않|없|아니"
)
