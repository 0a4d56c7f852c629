"""Traits: what the way of writing shows of a user, and how to treat them; without a model.

    "hey" · "whats up?" · "lol why?" · "haha ok" · "how?"
    →  curiosity: high     verbosity: low     humour: high     formality: low
    →  "Keep answers short. Write as one talks. … A joke is welcome."     brief, casual, curious, humorous

A trait is the share of messages that show it, in three levels. A model may tell any of `DIMENSIONS`, or of your own.
This module knows nothing of profiles and their versions.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ...messages import Message, text_of
from ...text.language.patterns import pattern
from ...text.summarize import one_line
from ..backend import PageRecord

STRATEGY_MESSAGES = 20
"""the messages that a strategy is made of"""
_SCANNED = 10_000
"""characters of a message that are looked at"""

Level = Literal["high", "medium", "low"]

DIMENSIONS: Mapping[str, str] = {
    "formality": "formal address and wording, or casual",
    "verbosity": "long messages, or a few words",
    "politeness": "please and thank you",
    "curiosity": "asks, wants to understand",
    "expressiveness": "emoji, exclamation marks, feelings",
    "precision": "figures, ids, exact conditions",
    "technicality": "code, terms of a trade",
    "assertiveness": "tells what to do, sets conditions",
    "humour": "jokes, laughs",
    "positivity": "sees the bright side",
    "patience": "waits, or presses",
    "openness": "tries new things",
    "planning": "thinks ahead, or decides on the spot",
    "independence": "decides alone, or wants advice",
    "trust": "takes answers as they are, or checks them",
    "sociability": "tells of others, likes company",
    "privacy": "keeps personal matters back",
    "thrift": "watches prices",
    "comfort": "pays for ease and quality",
    "risk": "dares, or plays safe",
    "health": "food, sleep, sports matter",
    "family": "relatives matter",
    "work": "job and career matter",
    "learning": "studies, reads, practises",
    "creativity": "makes things",
    "nature": "outdoors, animals",
    "technology": "devices, software",
    "culture": "books, music, film, art",
    "travel": "likes to be elsewhere",
    "tradition": "keeps to what is usual",
}
"""dimensions of a profile; the step with a model takes others as an argument"""


@dataclass(frozen=True, slots=True)
class Trait:
    """What is known of the user in one dimension."""

    dimension: str
    level: Level
    reason: str
    context: str = ""
    index: int = 0
    """the page that shows it"""


def united(old: Sequence[Trait], new: Sequence[Trait]) -> tuple[Trait, ...]:
    """Return the traits of both; of one dimension, the new one."""
    known = {trait.dimension: trait for trait in old} | {trait.dimension: trait for trait in new}
    return tuple(known.values())


def traits(pages: Sequence[PageRecord]) -> list[Trait]:
    """Return what the way a user writes on *pages* shows; nothing if that is too little. O(characters)."""
    said = [
        (page, text)
        for page in pages
        for text in _said([message for n, message in page.entries if n not in page.quotes])
    ]
    if len(said) < 3:
        return []
    found = []
    for dimension, few, many in _MANNERS:
        shows = _pattern(dimension)
        hits = [page for page, text in said if shows.search(text)]
        share = len(hits) / len(said)
        level: Level = "high" if share >= many else "medium" if share >= few else "low"
        if level != "low" or dimension not in _ONLY_SEEN:
            page = hits[-1] if hits else said[-1][0]
            reason = f"{len(hits)} of {len(said)} messages"
            found.append(Trait(dimension, level, reason, page.context, page.index))
    words = sorted(_length(text) for _, text in said)[len(said) // 2]
    size: Level = "high" if words >= 40 else "medium" if words >= 12 else "low"
    found.append(Trait("verbosity", size, f"about {words} words in a message", said[-1][0].context, said[-1][0].index))
    return found


def strategy(messages: Sequence[Message]) -> tuple[str, tuple[str, ...]]:
    """Return how to treat the user, and tags, by the way the last 20 messages are written. O(characters)."""
    said = _said(messages[-STRATEGY_MESSAGES:])
    if not said:
        return "", ()
    record = PageRecord("", 0, 0, tuple(enumerate(({"role": "user", "content": text} for text in said), 1)))
    levels = {trait.dimension: trait.level for trait in traits([record])}
    language = _language(said)
    advice = [f"Answer in {language}."] if language else []
    advice += [told for dimension, level, told, _ in _ADVICE if levels.get(dimension) == level]
    tags = [tag for dimension, level, _, tag in _ADVICE if levels.get(dimension) == level]
    return " ".join(advice), (*([language] if language else ()), *tags)


@cache
def _pattern(dimension: str) -> re.Pattern[str]:
    return pattern("manners", dimension, flags=re.IGNORECASE)


def _said(messages: Sequence[Message]) -> list[str]:
    return [
        text for message in messages if message.get("role") == "user" and (text := text_of(message)[:_SCANNED]).strip()
    ]


def _length(text: str) -> int:
    # two characters of a writing without spaces are about a word
    return (
        len(re.findall(r"[^\W\u3040-\u30ff\u3400-\u9fff]+", text))
        + len(re.findall("[\u3040-\u30ff\u3400-\u9fff]", text)) // 2
    )


def _language(texts: Sequence[str]) -> str:
    joined = one_line("\n".join(texts), 4_000)
    counts = {name: len(re.findall(letters, joined)) for name, letters in _SCRIPTS.items()}
    if counts["Japanese"] * 8 > counts["Chinese"]:
        # kana stand in Japanese only; its Han characters are no Chinese
        counts["Japanese"] += counts.pop("Chinese") if counts["Japanese"] else 0
    best = max(counts, key=lambda name: (counts[name], name))
    if best == "Latin":
        words = re.findall(r"[a-zà-ÿß]+", joined.lower())
        shares = {name: sum(word in common for word in words) for name, common in _COMMON.items()}
        top = max(shares, key=lambda name: (shares[name], name))
        return top if shares[top] * 12 >= len(words) > 0 else ""
    return best if counts[best] else ""


_SCRIPTS = {
    "Latin": "[A-Za-zÀ-ÿ]{3}",
    "Chinese": "[\u3400-\u9fff]",
    "Japanese": "[\u3041-\u30ff]",
    "Korean": "[\uac00-\ud7a3]",
    "Russian": "[а-яё]{3}",
    "Arabic": "[\u0621-\u064a]{3}",
    "Hindi": "[\u0904-\u0939]",
    "Greek": "[α-ω]{3}",
    "Thai": "[\u0e01-\u0e2e]",
}
_COMMON = {
    name: frozenset(words.split())
    for name, words in {
        "English": "the and to of is in it you that i for my on with what can have are",
        "German": "der die das und ich ist nicht ein eine zu mit auf bitte wie mir auch",
        "French": "le la les et je est pas un une des que pour vous dans mon ce",
        "Spanish": "el la los y que es en un una por para no mi con como me",
        "Italian": "il la che di e un una per non mi con come sono è del",
        "Portuguese": "o a os que e de um uma para não meu com como em é",
        "Dutch": "de het een en ik is niet dat van op te mijn met voor je",
    }.items()
}
_MANNERS = (
    ("curiosity", 0.2, 0.5),
    ("politeness", 0.2, 0.5),
    ("expressiveness", 0.25, 0.6),
    ("formality", 0.2, 0.5),
    ("precision", 0.3, 0.6),
    ("technicality", 0.15, 0.4),
    ("assertiveness", 0.2, 0.5),
    ("humour", 0.1, 0.3),
)
"""dimensions, and the shares of messages from which on they are medium and high"""
_ONLY_SEEN = frozenset(("technicality", "humour", "precision", "assertiveness"))
"""dimensions of which silence says nothing"""
_ADVICE: Sequence[tuple[str, Level, str, str]] = (
    ("verbosity", "low", "Keep answers short.", "brief"),
    ("verbosity", "high", "Answer in detail.", "thorough"),
    ("formality", "high", "Write formally.", "formal"),
    ("formality", "low", "Write as one talks.", "casual"),
    ("politeness", "high", "Be as polite as they are.", "polite"),
    ("curiosity", "high", "Explain why, they like to know.", "curious"),
    ("expressiveness", "high", "Be warm, they show feelings.", "expressive"),
    ("expressiveness", "low", "Keep to the matter, without emoji.", "matter-of-fact"),
    ("precision", "high", "Give exact figures and names.", "precise"),
    ("technicality", "high", "Use technical terms and code.", "technical"),
    ("assertiveness", "high", "Follow their conditions closely.", "decided"),
    ("humour", "high", "A joke is welcome.", "humorous"),
)
