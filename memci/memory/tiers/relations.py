"""Relations: what a page says of concepts, without a model.

    "My wife Anna adopted a puppy in Oslo."     Mel ──wife──▶ Anna ──adopt──▶ puppy   Mel ──with──▶ Oslo

Who does what, whose what is who, what "is" what, and names of one sentence. Who says "I" is the message's
`name`, or its role.

This module knows nothing of the graph that relations make, or of how they are stored.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from ...messages import text_of
from ...text.language.keywords import folded, keywords
from ...text.language.patterns import Writing, pattern
from ...text.language.sentences import sentences, simplified, writing
from ...text.language.terms import STOP_WORDS
from ..backend import PageRecord

PER_PAGE = 40
_SCANNED = 20_000
_PAIRS = 4

Page = tuple[str, int]
"""context and index"""


@dataclass(frozen=True, slots=True)
class Relation:
    """A statement: *source* *kind* *target*, as a page states it."""

    source: str
    kind: str
    """a verb, "is", or "with" for what only stands in one sentence"""
    target: str
    page: Page
    at: float | None = None
    """in seconds since 1970 UTC; None: not known"""


def relations(page: PageRecord) -> list[Relation]:
    """Return what *page* says of concepts, in order, none twice. O(characters), bounded."""
    found: dict[Relation, None] = {}
    for ordinal, message in page.entries:
        role = str(message.get("role"))
        if ordinal in page.quotes or role not in {"user", "assistant"}:
            continue
        speaker = str(message.get("name") or role)
        for sentence in sentences(text_of(message)[:_SCANNED]):
            if sentence.endswith(("?", "？")):
                continue
            for source, kind, target in _said(sentence, speaker):
                found[Relation(source, kind, target, page.key, page.at)] = None
    return list(found)[:PER_PAGE]


def _said(sentence: str, speaker: str) -> Iterator[tuple[str, str, str]]:
    says = _SAYS.get(writing(sentence))
    if says is not None:
        yield from _tied(sentence, speaker, says)
        return
    named = _names(sentence)
    typed: set[str] = set()
    kin = [
        (speaker if each["whose"] in {"my", "My"} else each["whose"][:-2], each["kin"], each["who"])
        for each in _KIN.finditer(sentence)
    ]
    for source, kind, target in (*kin, *_deeds(sentence, speaker, named)):
        typed |= {source, target}
        yield source, kind, target
    yield from ((one, "with", two) for one, two in islice(combinations(named, 2), _PAIRS))
    yield from ((speaker, "with", name) for name in named[:_PAIRS] if name not in typed and name != speaker)


def _names(sentence: str) -> list[str]:
    found = []
    for match in _NAMES.finditer(sentence):
        before, after = sentence[max(0, match.start() - 24) : match.start()], sentence[match.end() : match.end() + 24]
        words = [word for word in match[0].split() if word.lower().replace("’", "'").partition("'")[0] not in _NO_NAMES]
        # any sentence begins with a capital; and whom it speaks to is not what it is about
        begins = not before and len(words) < 2 and not _GOES_ON.match(after)
        called = (not before or _CALLS.search(before)) and re.match(r"[,!.]|$", after)
        if words and not begins and not called and folded(" ".join(words)):
            found.append(re.sub(r"['’]s$", "", " ".join(words)))
    return list(dict.fromkeys(found))


def _deeds(sentence: str, speaker: str, named: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    words = _TOKEN.findall(sentence)
    owners = {word: name for name in named for word in name.split()}
    for place, word in enumerate(words):
        bare = word.replace("’", "'").partition("'")[0]
        source = speaker if bare in {"I", "We", "we"} else owners.get(bare if bare in owners else word, "")
        if not source:
            continue
        for step in range(place + 1, min(place + 7, len(words))):
            verb = words[step]
            if (
                not verb[0].isalnum()
                or verb in owners
                or (step > place + 1 and verb in {"I", "we", "you", "not", "never"})
            ):
                break
            if verb in {"is", "was", "am", "are"} and words[step + 1 : step + 2] in (["a"], ["an"], ["the"]):
                kind = "is"
            else:
                kind = _BASES.get(folded(verb), "") if verb.lower() not in STOP_WORDS or verb.lower() == "got" else ""
            target = _object(words[step + 1 : step + 8], owners) if kind else ""
            if target and target != source and not (kind in _MODAL and words[step + 1 : step + 2] == ["to"]):
                yield source, kind, target
                break


def _object(words: Sequence[str], owners: Mapping[str, str]) -> str:
    """Return the words that a verb is about: at most three in a row, after what only links."""
    start = 0
    while start < len(words) and start < 3 and words[start].lower() in _LINK:
        start += 1
    taken: list[str] = []
    for word in words[start:]:
        if word in owners and not taken:
            return owners[word]
        telling = word[0].isalnum() and word.lower() not in _ENDS and bool(folded(word))
        if not telling or len(taken) == 3:
            break
        taken.append(word)
    return " ".join(taken)


def _tied(text: str, speaker: str, says: re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    for match in says.finditer(simplified(text)):
        who, what = text[slice(*match.span("who"))] if match["who"] else "我", text[slice(*match.span("what"))]
        source = speaker if who in _FIRST else f"{speaker}的{who[1:].removeprefix('的')}" if who[0] == "我" else who
        yield source, match["verb"], (keywords([what], limit=1) or (what,))[0]


_VERBS = """accept adopt attend bake become believe book bring build buy call cancel care celebrate choose climb
    coach collect compose cook create dance date design discover draw drink drive eat enjoy explore fix fly found
    get give graduate grow hate help hike hire host invent invite join keep kick know lead learn leave like live
    lose love make manage marry meet move need organize own paint plan plant play practice prefer produce promise
    quit race raise read receive recommend rent repair retire ride run sell send sew sing speak start stay study
    support swim take teach train travel try use visit volunteer want watch wear work write""".split()  # noqa: SIM905 -- words
_BASES = {folded(verb): verb for verb in _VERBS if folded(verb)} | {"get": "get"}
_MODAL = frozenset("choose hate help like love need plan prefer promise start try want".split())  # noqa: SIM905 -- words
_TOKEN = re.compile(r"[^\W_]+(?>['’&.-][^\W_]+)*|[,;:!?.()]")
_LINK = frozenset("a an the some my our his her their its this that to in on at for with of from by new named".split())  # noqa: SIM905
_KIN = re.compile(
    r"\b(?P<whose>[Mm]y|[A-Z]\w+['’]s) (?P<kin>wife|husband|partner"
    r"|girlfriend|boyfriend|son|daughter|child|baby|mother|mom|father"
    r"|dad|sister|brother|grandmother|grandma|grandfather|grandpa|aunt"
    r"|uncle|cousin|niece|nephew|friend|roommate|boss|colleague"
    r"|teacher|dog|puppy|cat|kitten|horse|company"
    r"|hometown)(?:['’]s name)?,?(?: is(?: called| named)?| named| called)? (?P<who>[A-Z]\w+(?: [A-Z]\w+)?)"
)
_NAMES = re.compile(r"[A-Z][\w’'-]*\w(?> (?:of |the |de |van )?[A-Z][\w’'-]*\w)*")
_GOES_ON = re.compile(r" (?:is|was|has|and|\w+(?:ed|s))\b")
_CALLS = re.compile(
    r"(?:\b(?:hey|hi|hello|thanks|thank you|wow|yeah|yes|no|bye|congrats|sure|ok|okay|dear|oh|absolutely)[, ]+|, )$",
    re.IGNORECASE,
)
_NO_NAMES = STOP_WORDS | frozenset(
    """monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december yesterday today tomorrow last next week month year hey hello hi wow yeah yes
    thanks congrats oh""".split()  # noqa: SIM905 -- words
)
_ENDS = _NO_NAMES | _LINK
_SAYS: Mapping[Writing, re.Pattern[str]] = {
    "han": pattern("relations", "says", "han"),
    "kana": pattern("relations", "says", "kana"),
    "hangul": pattern("relations", "says", "hangul"),
}
_FIRST = frozenset("我私僕俺저나제내난전")
