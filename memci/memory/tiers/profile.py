"""The profile: traits of the user and the strategy for them, with earlier versions.

    curiosity: high — asks why each time (#31)
    travel: medium — flies twice a year (#40)

    text  ──▶  replaced(…)   version 4 is current, versions 3, 2, 1 are kept

A trait has one of three levels, and a reason (MemoryOS, arXiv 2506.06326). Only a model finds traits. An empty answer,
"none", or the text of an error replaces nothing. Every 10 turns, a model derives the strategy, how to treat the user,
and tags from the last 20 messages.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, NamedTuple

from ...text.language.patterns import alternatives, pattern
from ..backend import PageKey
from .events import ConversationSummary
from .facts import Known

KEPT_VERSIONS = 10
LONGEST = 8_000  # characters of the text of a profile; a longer one loses its oldest lines

Level = Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Trait:
    """A trait of the user in one dimension."""

    dimension: str
    level: Level
    reason: str
    context: str = ""
    index: int = 0


@dataclass(frozen=True, slots=True)
class Version:
    """An earlier version of a profile."""

    version: int
    text: str
    traits: tuple[Trait, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of a user."""

    text: str = ""
    traits: tuple[Trait, ...] = ()
    version: int = 0
    at: float = 0.0  # time of this version, in seconds since 1970 UTC
    previous: tuple[Version, ...] = ()  # earlier versions, the latest first
    turns: int = 0
    last_turn: float = 0.0
    strategy: str = ""
    tags: tuple[str, ...] = ()
    strategy_turns: int = 0  # number of turns up to the last strategy
    conversations: tuple[ConversationSummary, ...] = ()  # the last conversations, the oldest first

    def counted(self, now: float) -> "Profile":
        """Return the profile after one more turn."""
        return replace(self, turns=self.turns + 1, last_turn=max(self.last_turn, now))

    def replaced(self, text: str, traits: Sequence[Trait] = (), *, now: float) -> "Profile":
        """Return the profile with a new text and traits; itself if the text is unusable or equal."""
        if not is_usable(text) or (text.strip() == self.text and (not traits or tuple(traits) == self.traits)):
            return self
        body = text.strip()[-LONGEST:]
        if len(text.strip()) > LONGEST:
            body = body.partition("\n")[2] or body
        return self._followed(body, tuple(traits) or self.traits, now)

    def restored(self, version: Version, *, now: float) -> "Profile":
        """Return the profile with text and traits of an earlier *version*, as a new version."""
        return self._followed(version.text, version.traits, now)

    def _followed(self, text: str, traits: tuple[Trait, ...], now: float) -> "Profile":
        old = [Version(self.version, self.text, self.traits, self.at)] if self.text else []
        previous = (*old, *self.previous)[:KEPT_VERSIONS]
        return replace(self, text=text, traits=traits, version=self.version + 1, at=now, previous=previous)

    def remembered(self, told: ConversationSummary, most: int) -> "Profile":
        """Return the profile with one more conversation, or a new summary of one; the last *most* stay."""
        if told.talk and any(each.talk == told.talk for each in self.conversations):
            same = tuple(told if each.talk == told.talk else each for each in self.conversations)
            return replace(self, conversations=same)
        return replace(self, conversations=(*self.conversations, told)[-most:])


class Findings(NamedTuple):
    """The traits and facts that an analysis of pages found."""

    traits: tuple[Trait, ...]  # all traits, including earlier ones
    facts: tuple[Known, ...]
    sent: tuple[PageKey, ...]  # the pages that were read
    shown: Mapping[int, Known] = MappingProxyType({})  # known facts that the model has seen beside the pages, by id


def is_usable(text: str) -> bool:
    """Return whether *text* has content: it is not empty, "none", or the text of an error."""
    core = _CORE.search(text)
    bare = core[0].casefold() if core else ""
    return bool(bare) and not _NOTHING.match(bare) and not _FAILED.match(bare)


def describe_traits(known: Sequence[Trait]) -> str:
    """Return the text of a profile: a line for each trait."""
    return "\n".join(
        f"{each.dimension}: {each.level} — {each.reason}{f' (#{each.index})' if each.index else ''}" for each in known
    )


def unite_traits(old: Sequence[Trait], new: Sequence[Trait]) -> tuple[Trait, ...]:
    """Return the traits of both; a new trait replaces the old one of its dimension."""
    return tuple({trait.dimension: trait for trait in (*old, *new)}.values())


_NOTHING = re.compile(f"(?:{alternatives('answers', 'nothing')})$")
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)  # a text without the marks around it
_FAILED = pattern("answers", "failed")
