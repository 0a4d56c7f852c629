"""The profile: what kind of person the user is, and how to treat them; with its earlier versions.

    pages ──▶ traits   formality: low — 14 of 20 messages are casual (#31)
                       curiosity: high — asks in 12 of 20 messages (#40)
    text  ──▶ replaced(…)   version 4 stands, versions 3, 2, 1 are kept
              merged(…)     version 3 stands and has an appendix with a date

A profile is never replaced by nothing: an empty answer, "none", or the text of an error changes nothing. Every 10
turns, the last 20 messages make a new strategy and tags. (MemoryOS, arXiv 2506.06326, has traits with three
levels; its code lets the text of a failed call replace the profile.)

This module knows nothing of where profiles are stored, or of what shows a trait.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..backend import PageRecord
from .events import ConversationSummary, day_of
from .facts import Known
from .traits import Trait, traits, united

STRATEGY_INTERVAL = 10
"""turns after which a new strategy is due"""
KEPT_VERSIONS = 10
KEPT_CONVERSATIONS = 5
LONGEST = 8_000
"""characters of a profile's text; of a longer one, the oldest lines go"""


@dataclass(frozen=True, slots=True)
class Version:
    """A profile as it was."""

    version: int
    text: str
    traits: tuple[Trait, ...] = ()
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a user as a whole."""

    text: str = ""
    traits: tuple[Trait, ...] = ()
    version: int = 0
    at: float = 0.0
    """when this version was made, in seconds since 1970 UTC"""
    previous: tuple[Version, ...] = ()
    """earlier versions, the latest first"""
    turns: int = 0
    last_turn: float = 0.0
    """when the user spoke last"""
    strategy: str = ""
    """how to treat this user"""
    tags: tuple[str, ...] = ()
    strategy_turns: int = 0
    """the turns up to the last strategy"""
    conversations: tuple[ConversationSummary, ...] = ()
    """the last ones, oldest first"""

    def counted(self, now: float) -> "Profile":
        """Return it after one more turn."""
        return replace(self, turns=self.turns + 1, last_turn=max(self.last_turn, now))

    def replaced(self, text: str, traits: Sequence[Trait] = (), *, now: float) -> "Profile":
        """Return it with a whole new text; itself if that says nothing or is what stands already."""
        if not usable(text) or (text.strip() == self.text and (not traits or tuple(traits) == self.traits)):
            return self
        old = Version(self.version, self.text, self.traits, self.at)
        previous = (old, *self.previous) if self.text else self.previous
        new = tuple(traits) if traits else self.traits
        body = _bounded(text.strip())
        return replace(self, text=body, traits=new, version=self.version + 1, at=now, previous=previous[:KEPT_VERSIONS])

    def merged(self, text: str, traits: Sequence[Trait] = (), *, now: float) -> "Profile":
        """Return it with *text* as an appendix with a date, and *traits* in place of those of the same dimensions."""
        if not usable(text) or text.strip() in self.text:
            return self
        both = f"{self.text}\n\n--- {day_of(now)} ---\n{text.strip()}" if self.text else text
        return self.replaced(both, united(self.traits, traits), now=now)

    def restored(self, version: Version, *, now: float) -> "Profile":
        """Return it with text and traits of an earlier *version*, as a new one."""
        old = Version(self.version, self.text, self.traits, self.at)
        previous = (old, *self.previous)[:KEPT_VERSIONS]
        after = replace(self, text=version.text, traits=version.traits, version=self.version + 1, at=now)
        return replace(after, previous=previous)

    @property
    def strategy_due(self) -> bool:
        """Whether enough turns went by since the last strategy."""
        return self.turns - self.strategy_turns >= STRATEGY_INTERVAL

    def treated(self, strategy: str, tags: Sequence[str]) -> "Profile":
        """Return it with a new strategy; an unusable one keeps the old one, and none is due for a while."""
        if not usable(strategy):
            return replace(self, strategy_turns=self.turns)
        return replace(self, strategy=strategy.strip(), tags=tuple(dict.fromkeys(tags)), strategy_turns=self.turns)

    def remembered(self, told: ConversationSummary) -> "Profile":
        """Return it with one more conversation; the last five stay."""
        return replace(self, conversations=(*self.conversations, told)[-KEPT_CONVERSATIONS:])


@dataclass(frozen=True, slots=True, eq=False)
class Learned:
    """What pages say of the user, and of what the assistant did."""

    text: str
    """of the whole new profile: for `Profile.replaced(text, traits, now=…)`"""
    traits: tuple[Trait, ...]
    """all that are known now, the old ones too"""
    facts: tuple[Known, ...]
    sent: tuple[tuple[str, int], ...] | None = None
    """(context, index) of the pages that a model has read: only those are analysed; None: all of them"""


def usable(text: str) -> bool:
    """Return whether *text* says something: not if it is empty, "none", or an error's text."""
    core = _CORE.search(text)
    bare = core[0].casefold() if core else ""
    return bool(bare) and not _NOTHING.match(bare) and not _FAILED.match(bare)


def profiled(profile: Profile, pages: Sequence[PageRecord]) -> tuple[str, Sequence[Trait]]:
    """Return the traits that *pages* show, with those known already, and their text. O(characters)."""
    known = united(profile.traits, traits(pages))
    return described(known), known


def described(known: Sequence[Trait]) -> str:
    """Return the text of a profile with these traits, a line for each."""
    return "\n".join(
        f"{each.dimension}: {each.level} — {each.reason}{f' (#{each.index})' if each.index else ''}" for each in known
    )


def _bounded(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    kept = text[-LONGEST:]
    return kept.partition("\n")[2] or kept


_NOTHING = re.compile(
    r"(?:none|null|nil|n/a|na|nothing|unknown|empty|undefined|no change|no changes"
    r"|no update|no updates|not available|no information|no profile"
    r"|无|無|没有|沒有|暂无|未知|空|なし|無し|ありません|特になし|不明|없음|없습니다|없다|모름|aucun|keine|ninguno)$"
)
_CORE = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)
"""a text without the marks around it"""
_FAILED = re.compile(
    r"(?:(?:\w+\s)?\w*(?:error|exception|failure)(?:\s*[:\]]|\s+(?:code\b|\d|could|from|while|in\b)|$)"
    r"|traceback|failed to|could not|couldn't|cannot|unable to|request (?:failed|timed out)"
    r"|(?:i'm |i am )?sorry\b|i (?:can't|cannot|can not|am unable)|as an ai\b|internal server error|rate limit"
    r"|timed? ?out|http \d{3}|\d{3} (?:bad|internal|service|too|gateway|unauthorized|forbidden|not)"
    r"|(?:raw_text_profile|\"?error\"?\s*:)|错误|出错|失败|無法|无法"
    r"|抱歉|对不起|エラー|失敗|申し訳|오류|에러|실패|죄송)"
)
