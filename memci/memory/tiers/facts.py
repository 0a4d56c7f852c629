"""Facts: extracts statements about the user and actions of the assistant from pages, and keeps bounded lists of them.

    user       "I live in Oslo with my dog Rex. How are you?"     →  "I live in Oslo with my dog Rex."
    assistant  "I have cancelled it." + cancel(id=OI5L9G)         →  "called cancel(id=OI5L9G)"

    "I live in Oslo." (#1)   + "i LIVE in oslo!" (#5)     one fact in the later words; without #5, in those of #1
    "I have 2 dogs." (#2)    + "I have 3 dogs." (#6)      two facts: figures tell them apart

Facts are sentences of users that match patterns or say that a known fact is otherwise, and tool calls that change
something. Questions, moods, wishes and quotations are no facts, and neither are texts of the assistant: a draft is full
of "I". A full list drops the fact that was not retrieved for the longest time. (MemoryOS, arXiv 2506.06326, keeps 100
of each, first in first out.) Facts that contradict each other are both kept, because no rule can decide which is true.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from typing import Literal

from ...formats.provenance import own_words, parts_of
from ...messages import Message, call_name, text_of, tool_calls
from ...text.language.change import Claim, claims, takes_up
from ...text.language.keywords import stems_of
from ...text.language.marks import normalize, with_marks
from ...text.language.patterns import LATIN, Writing, alternatives, pattern
from ...text.language.sentences import languages, lower_case, sentences, simplify, writing
from ...text.language.terms import is_single, terms
from ...text.summarize import lines, one_line, reads
from ..backend import PageRecord

PER_PAGE = 12  # facts about one person that a page gives at most: a bound for pages that are lists
LONGEST = 240  # characters of a sentence that states a fact
_SHORTEST = 4
_SCANNED = 20_000  # characters of a shortest fact, and of a message that are read: longer ones are pasted texts
_ALIKE = 0.8  # share of common stems from which two facts say the same
SAYINGS = 4  # pages of which the words of a fact are stored: while one is left, it outlives the others' erasure
COMMON = 3  # pages that may have a word for which it still shows where a text comes from
_WORDS = re.compile(with_marks(r"\w"))
_SHORTEST_WORD = 3  # letters of a word that shows where a text comes from: shorter ones are in many pages

About = Literal["user", "assistant"]
Kind = Literal["fact", "relationship"]  # of the person, or of how the user and the assistant stand to each other


@dataclass(frozen=True, slots=True)
class Known:
    """A fact and its sources."""

    text: str  # the original words, in one line; "": the fact that it replaces is only removed
    about: About
    context: str
    index: int  # the latest page that says it
    turn: int = 0
    at: float | None = None
    pages: tuple[int, ...] = ()  # pages (ids) that its words come from; (): it waits until the memory has its page
    retrieved: float = 0.0  # when it was last learned, or found by a search
    authored: bool = False  # whether a program had it stored: then it is not dropped for others
    instead: str = ""  # a digest of the fact that it replaces, which is not derived again
    kind: Kind = "fact"
    after: tuple[int, ...] = ()  # ids of the facts about the same thing that a model saw it come after
    sayings: tuple["Known", ...] = ()  # how its pages say it, as facts of their own, if several do

    def found(self, now: float) -> "Known":
        """Return the fact after a search found it, or after it was learned."""
        return replace(self, retrieved=max(now, self.retrieved))

    def without(self, pages: Collection[int]) -> "Known | None":
        """Return the fact as pages other than *pages* say it; None if none does. O(these)."""
        left = [each for each in self.sayings or (self,) if not set(pages).intersection(each.pages)]
        return reduce(_join, left).found(self.retrieved) if left else None


def digest_of(fact: str) -> str:
    """Return a digest of the words of *fact*, whatever their case and punctuation."""
    return hashlib.blake2b(_comparison(fact)[0].encode("utf-8", "replace"), digest_size=16).hexdigest()


def facts(page: PageRecord, known: Iterable[Known] = ()) -> list[Known]:
    """Return the different facts on *page*, in order, and what says that those *known* are otherwise. O(characters)."""
    held = [fact for fact in known if fact.about == "user"]
    user, just = [fact.text for fact in held], any(_is_next(page, fact) for fact in held)
    told: dict[tuple[About, str], float | None] = {}
    for ordinal, message in page.entries:
        for each in _extract_facts(message, user, just) if ordinal not in page.quotes else ():
            told.setdefault(each, page.at_of(ordinal))
    found: list[Known] = []
    for (about, text), at in told.items():
        if sum(each.about == about for each in found) < PER_PAGE:
            found.append(Known(text, about, page.context, page.index, page.turn, at))
    return found


def facts_of(pages: Iterable[tuple[int, PageRecord]], known: Iterable[Known]) -> list[tuple[int, Known]]:
    """Return the facts of *pages*, oldest first, each with its key; they may change those *known*. O(characters)."""
    told, found = [*known], list[tuple[int, Known]]()
    for key, page in pages:
        found += [(key, fact) for fact in facts(page, [*told, *(each for _, each in found)])]
    return found


def _extract_facts(message: Message, known: Sequence[str], just: bool) -> Iterator[tuple[About, str]]:
    speaker = one_line(name, 40) if (name := message.get("name")) else ""
    said = text_of(message)
    brief = len(said) <= LONGEST  # it is compared with each known fact: a longer text is about more

    @cache
    def tells(sentence: str) -> bool:
        states = _SHORTEST <= len(sentence) <= LONGEST and _tells(sentence)
        return states or (brief and _changes_one(sentence, speaker, known, just))

    told = message.get("role") == "user" and any(map(tells, sentences(said[:_SCANNED])))
    # who announces a role or a story tells nothing of themselves in it
    if told and not _PLAYS.search(lower_case(said[:_SCANNED]).replace("’", "'")):
        own = ["", *_own_sentences(message), ""]
        for before, sentence, after in zip(own, own[1:], own[2:], strict=False):
            if tells(sentence) and not _TAKEN_BACK.match(after.lower().replace("’", "'")):
                if _OTHERS.search(before.rstrip("。！!")) and not _SELF.search(sentence):
                    continue  # in Japanese, a sentence without a subject goes on about the one before
                line = one_line(_without_opener(sentence), 2 * LONGEST)
                yield "user", f"{speaker}: {line}" if speaker else line
    for call in tool_calls(message):
        if not reads(call_name(call)):
            yield "assistant", f"called {lines([{'role': 'assistant', 'content': None, 'tool_calls': [call]}])[0]}"


def _own_sentences(message: Message) -> Iterator[str]:
    """Yield the sentences of a user's *message* that are the user's own."""
    text, own, place = text_of(message), own_words(message)[:_SCANNED], 0
    for sentence in sentences(own):
        place = own.index(sentence, place)
        yield text[place : place + len(sentence)]
        place += len(sentence)


def _tells(sentence: str) -> bool:
    said, spoken = _stated(sentence)
    if spoken[:1] == ("latin",) and not _TOLD.search(said):
        return False
    for each in spoken:
        found = pattern("facts", "user", each).search(said)
        if found is not None and pattern("facts", "lead", each).search(before := said[: found.start()]):
            unreal = pattern("facts", "unreal", each).search(before)
            if not unreal and not pattern("facts", "behind", each).search(said, found.start()):
                return True
    return False


def _stated(sentence: str) -> tuple[str, tuple[Writing, ...]]:
    """Return a *sentence* as patterns read it, and the languages of its words; none if it asks."""
    text = _QUOTED.sub("“”", sentence).replace("’", "'")
    if _ASKS.search(text) or text.endswith((":", "：")):
        return "", ()
    written = writing(text)
    said = text.lower() if written == "latin" else simplify(text) if written == "han" else text
    return said, (written, *languages(text, ("latin",)))  # a short sentence may have words of several languages


def _changes_one(sentence: str, speaker: str, known: Iterable[str], just: bool) -> bool:
    """Return whether the *sentence*, of its author, says that one of the facts *known* is otherwise now. O(known).

    *just*: one of them was said right before.
    """
    told = claims_of(sentence, speaker)
    if back := [each for each in told if each.retracts]:
        named = (takes_up(back, _claims(each)) for each in known)
        return (just and any(each.names_nothing for each in back)) or any(named)
    said = [each for each in told if each.topics or each.changes or each.denies]
    plain, spoken = _stated(sentence)
    unreal = any(pattern("facts", key, each).search(plain) for key in ("unreal", "behind") for each in spoken)
    if not spoken or unreal or not any(each.runs or each.shows("self") for each in said):
        return False
    own, topics = terms_of(sentence), any(each.topics for each in said)
    near = (_claims(each) for each in known if topics or not own.isdisjoint(terms_of(each)))
    return any(new.subject == old.subject and new.takes_up(old) for before in near for old in before for new in said)


def _without_opener(sentence: str) -> str:
    """Return a *sentence* that states a fact without its introduction: "I moved." of "By the way, I moved."."""
    opener = _OPENER.match(lower_case(sentence).replace("’", "'"))
    bare = sentence[opener.end() :] if opener else sentence
    return bare if _tells(bare) else sentence


def learn_fact(
    facts: Mapping[int, Known], new: Known, now: float = 0.0, most: int = 100
) -> tuple[Known, int | None, list[int]]:
    """Return the changes of *facts* for the fact *new*, learned *now*; *most* about the same person stay. O(facts).

    They are the fact, the id of the one that it replaces (None: it is new), and the evicted ones.
    """
    new = new.found(now)
    own = {key: each for key, each in facts.items() if each.about == new.about}
    for key, old in own.items():
        if same(old, new):
            return _join(old, new), key, []
    coldest = sorted(own, key=lambda key: (own[key].authored, own[key].retrieved, key))
    return new, None, coldest[: max(0, len(own) + 1 - most)]


def versions(fact: Known, facts: Mapping[int, Known]) -> list[Known]:
    """Return *fact* with those that say something else of the same thing, the oldest first. O(facts).

    "The deadline is 10 May." (5 January)   ──▶   "The deadline is 15 May." (14 February)
    """
    found, own = [fact], terms_of(fact.text)
    related = any(claim.topics or claim.retracts for claim in _claims(fact.text))
    key = next((id_ for id_, each in facts.items() if each is fact), 0)
    for id_, other in facts.items():
        if other is fact or other.about != fact.about or (before := _is_before(fact, other)) is None:
            continue
        old, new = (fact, other) if before else (other, fact)
        linked = (key if old is fact else id_) in new.after or _means(new, facts) is old
        alike = related or not own.isdisjoint(terms_of(other.text)) or any(each.retracts for each in _claims(new.text))
        if linked or (alike and takes_up(_claims(new.text), _claims(old.text))):
            found.append(other)
    return sorted(found, key=lambda each: (each.at or 0.0, each.index))


def _means(new: Known, facts: Mapping[int, Known]) -> Known | None:
    """Return the fact that *new* takes back without naming it: the last one of the page before. O(facts)."""
    if not any(each.retracts and each.names_nothing for each in _claims(new.text)):
        return None
    return next((each for each in reversed([*facts.values()]) if each.about == new.about and _is_next(new, each)), None)


def _is_next(later: Known | PageRecord, fact: Known) -> bool:
    """Return whether *later* is of the page behind that of *fact*."""
    return (later.context, later.index) == (fact.context, fact.index + 1)


def _is_before(some: Known, other: Known) -> bool | None:
    """Return whether *some* was said before the *other* fact; None if neither time nor page tells."""
    if some.at is not None and other.at is not None and some.at != other.at:
        return some.at < other.at
    return some.index < other.index if some.context == other.context else None


def outdates(new: str, old: str) -> bool:
    """Return whether the text *new*, which is later, says something else about the same thing as *old*."""
    return takes_up(_claims(new), _claims(old))


@lru_cache(maxsize=2048)
def claims_of(text: str, speaker: str = "", role: str = "") -> list[Claim]:
    """Return what a passage of a message states, as `claims`. O(characters), the first time."""
    if role != "tool":
        return claims(text, speaker)
    return [claim] if (claim := Claim(text)).fields else []


def _claims(text: str) -> list[Claim]:
    speaker, words = split_speaker(text)
    return claims_of(words, speaker)


def split_speaker(fact: str) -> tuple[str, str]:
    """Return the speaker of *fact* ("Mel: I play."), "" if there is none, and its words."""
    speaker = _SPEAKER.match(fact)
    return (speaker[1], fact[speaker.end() :]) if speaker else ("", fact)


def same(some: Known, other: Known) -> bool:
    """Return whether two facts say nearly the same; figures and negation must be equal."""
    if some.about != other.about:
        return False
    (bare, signs, stems), (other_bare, other_signs, other_stems) = _comparison(some.text), _comparison(other.text)
    if bare == other_bare or signs != other_signs:
        return bare == other_bare
    return len(stems & other_stems) / max(1, len(stems | other_stems)) >= _ALIKE


def _join(old: Known, new: Known) -> Known:
    sayings = {(each.text, each.pages): each for each in (*(old.sayings or (old,)), new)}.values()
    # the later words count, even if an old page arrives late
    later = new if old.at is None or new.at is None or new.at >= old.at else old
    words = later if old.authored is new.authored else old if old.authored else new
    said = tuple(sorted(sayings, key=lambda each: each.authored)[-SAYINGS:])
    after, retrieved = tuple(dict.fromkeys((*old.after, *new.after))), max(old.retrieved, new.retrieved)
    joined = replace(later, text=words.text, authored=words.authored, instead=new.instead or old.instead)
    return replace(joined, after=after, retrieved=retrieved, sayings=said if len(said) > 1 else ())


@lru_cache(maxsize=4096)
def _comparison(text: str) -> tuple[str, tuple[frozenset[str], bool], frozenset[str]]:
    """Return the features of a fact for comparison: its words, its figures and negation, and its stems."""
    lowered = normalize("NFC", text.casefold())
    signs = frozenset(_FIGURE.findall(lowered)), _NOT.search(lowered.replace("’", "'")) is not None
    return " ".join(_WORDS.findall(lowered)), signs, frozenset(map(stems_of, terms(text))) - {""}


@lru_cache(maxsize=4096)
def terms_of(text: str) -> frozenset[str]:
    """Return the terms of the text of a fact, or of another short text. O(characters), the first time."""
    return frozenset(terms(text))


def forget_texts() -> None:
    """Clear the caches, which have texts of facts and passages, after an erasure."""
    for cached in (_comparison, claims_of, terms_of):
        cached.cache_clear()


def vocabulary(text: str) -> frozenset[str]:
    """Return the words of *text* that can show where another text comes from. O(characters)."""
    return frozenset(
        term for term in terms(text) if len(term) >= _SHORTEST_WORD or not (term.isascii() or is_single(term))
    )


def sources(text: str, claimed: Collection[int], sent: Mapping[int, frozenset[str]]) -> list[int]:
    """Return the ids of the pages that *text* comes from: those *claimed*, and others that have words of it.

    *sent* are all pages that the model read, with their vocabularies. So an erasure removes too much rather than too
    little. O(words of *text* · pages).
    """
    found = {page for page in claimed if page in sent}
    for word in vocabulary(text).difference(*(sent[page] for page in found)):
        holding = [page for page, own in sent.items() if word in own]
        if len(holding) <= COMMON:
            found.update(holding)
    return sorted(found)


def is_of_others(text: str, messages: Iterable[Message]) -> bool:
    """Return whether *text* has words of what users quoted in *messages*, and none of the users' own. O(characters)."""
    own, others = set[str](), set[str]()
    for message in messages:
        if message.get("role") == "user":
            for who, said in parts_of(message).items():
                (own if who == "user" else others).update(vocabulary(said))
    found = vocabulary(text)
    return not found.isdisjoint(others - own) and found.isdisjoint(own)


_SPEAKER = re.compile(r"([^:.!?]{1,40}): ")
_TOLD = re.compile("|".join(f"(?:{alternatives('facts', 'user', each)})" for each in (*LATIN, "russian")))
_QUOTED = re.compile(r"\"[^\"]*\"|“[^“”]*”|「[^「」]*」|『[^『』]*』|`[^`]*`")
_ASKS = re.compile(f"(?:{alternatives('facts', 'question')})[。.!！~\\s]*$")
_OPENER, _TAKEN_BACK, _PLAYS = (pattern("facts", key) for key in ("opener", "taken_back", "plays"))
_OTHERS, _SELF = pattern("facts", "unreal", "kana"), pattern("change", "self", "kana")
_FIGURE, _NOT = (pattern("facts", key) for key in ("figure", "negation"))
