"""Change: whether a statement says something else about what an earlier one told of.

    "I live in Tromsø."              "The move to Ghent is done."                         takes it up: both tell of home
    "The alarm code is 5190."        "We had the code of the alarm changed, it is 7264."  same thing, a sign of change
    "The meeting is on Monday."      "Actually make it Thursday."                         names nothing: a loose one
    "The meeting with Ann is on …"   "The meeting with Bob is on Tuesday now."            another thing

Only what is sure counts: no wish, request or condition takes anything up, no long sentence, no list of values, nor what
another one says of themselves. A record takes up one with the same id; other output of tools states nothing.

A statement takes up an earlier one about the same subject if both tell of the same topic, where one lives or what one
does for a living, and whose it is stands beside it; or if it has a sign of change, most words of the earlier one, and
another value of the same kind (a number, a time, a day), or an end beside them; if it is short, begins with the same
thing or counts in the same unit, and differs in one value; if it is the earlier one with the opposite sign; or if what
the earlier one told of is its subject and over ("The Saab went to the scrapyard"), new ("a new landlord"), or has
another value. What takes back what was said ("Forget what I said about the cat") takes up what it names. Words are
compared by their beginnings, since most languages inflect the end; Han and kana by their runs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, get_args

from ...workers import cached_property
from .dates import tells_time
from .patterns import HIRAGANA, LATIN, PARTICLE, Writing, pattern
from .sentences import languages, sentences, writing
from .synonyms import (
    LEAST,
    TIED,
    WORD,
    covered,
    edges_of,
    is_alike,
    kin,
    meaning,
    normal,
    plain,
    plain_runs,
    tells_nothing,
    tied_words,
)

Topic = Literal["home", "work"]
TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)
Sign = Literal[Topic, "changed", "loose"]
"""what a text shows of itself: its topics, a sign of change, and whether it corrects what it does not name"""
SIGNS: Final[tuple[Sign, ...]] = (*TOPICS, "changed", "loose")
LONGEST: Final = 400  # characters of a statement that are read: what is longer is a text about more than one thing
_MOST: Final = 0.5  # share of the words of the earlier statement that a later one about the same thing has
_TURNED: Final = 0.75  # share of the words of a statement that an earlier one with the opposite sign has
_NAMED: Final = 0.3  # the same, if it says that something with a name is over
_BESIDE: Final = 24  # characters around that name in which it says so
_SENTENCES: Final = 8  # of a text at most

_SLACK: Final = 2  # common words by which the language of a short text may be taken for another
_NOT = pattern("facts", "negation")
_QUESTION = re.compile(r"[?？][\s\"'”’)*_]*$|(?:吗|呢|か)[。.]?$")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_AMOUNT = re.compile(r"(?<!\w)(\w[\w.,]*)(?= ([^\W\d_]{2,}))")
_MEASURE = re.compile(
    r"(\d++(?:[.,:/-]\d++)*+) ?"
    r"([^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|[\u30a1-\u30ff]+|[\u3400-\u9fff\uac00-\ud7a3])"
)
"""a number, and the word or unit behind it"""
_APOSTROPHE = re.compile(r"['’]s$|^(?:[cdjlmnst]|qu|un|dell|all|dall|nell|sull|quell)['’](?=\w{3})")
"""an ending, or a word before that lost its vowel"""
_COPULA = re.compile("(?:이에요|예요|입니다|이야)$")
_VALUES: Final = 2  # values of a kind that a new one and what it replaces are; more are a list
_LABEL = re.compile(r"([^\W\d_]+) ?(?:n[or°]\.? ?|#)?(\d++(?:[.,:/-]\d++)*+)(?: ?([^\W\d_]+))?")
_ID = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{4,}\b")
_FIELD = re.compile(r'"([^"\n]{1,64})":\s?("[^"\n]*"|[\w.+-]+)')
_CODE = re.compile(r"(?=[^a-z]*[A-Z]|.*\d)[\w-]{4,}")
_NAME = re.compile(r"(?<![.!?。:]\s)(?<!^)(?<![\"“«\[(])\b[A-ZÀ-ÖØ-Þ][\w'-]+")
_START = re.compile(r"^\W*([A-ZÀ-ÖØ-Þ][\w-]+?)(?:['’]s)? ")
_TITLES = re.compile(r"[“\"'«]*(?:[^\W\d_]{1,5}\. ?)*[“\"'«]*")  # "Dr. " before a name
_FIRST: Final = 16  # characters in front of what a sentence is about, at most
_CLAUSE = re.compile(r"[,;:.!?]")
_LEAD: Final = 3  # words before what is told of a topic: its subject, an auxiliary, an adverb
_BRIEF: Final = 120  # characters of a sentence that repeats an earlier one with another value, at most
_LOOSEST: Final = 90  # characters of a loose correction at most


def signs(text: str) -> list[Sign]:
    """Return the signs of a statement. O(length)."""
    if len(text) > LONGEST or _QUESTION.search(text[-12:]):
        return []
    claim = Claim(text)
    found: list[Sign] = [topic for topic in TOPICS if claim.shows(topic)]
    if claim.changes or claim.denies or claim.retracts:
        found.append("changed")
    if len(text) <= _LOOSEST and (claim.shows("loose") or (claim.retracts and claim.names_nothing)):
        found.append("loose")
    return found


def asked_topics(question: str) -> list[Topic]:
    """Return the topics for which *question* asks. O(length)."""
    claim = Claim(question[:LONGEST])
    return [topic for topic in TOPICS if claim.shows(f"asks_{topic}")]


def knows_nothing(text: str) -> bool:
    """Return whether a short *text* says that something is not known: "I don't know who that was." O(length)."""
    return len(text) <= LONGEST // 2 and Claim(text).shows("unknown")


def claims(text: str, speaker: str = "") -> list["Claim"]:
    """Return what the sentences of *text* state, without questions; those of a text that is too long: none. O(length).

    A sentence that names nothing belongs to the one before: "The concert on 9 May? They cancelled it."
    """
    found: list[Claim] = []
    before, spoken = "", languages(text, LATIN, slack=_SLACK)
    for sentence in dict.fromkeys(sentences(text)) if len(text) <= LONGEST else ():
        claim = Claim(sentence, speaker, spoken)
        if before and claim.changes and len(claim.words) + len(claim.runs) < 2:
            claim = Claim(f"{before} {sentence}", speaker, spoken)
        before = sentence
        if not _QUESTION.search(sentence[-12:]):
            found.append(claim)
    return found[:_SENTENCES]


def takes_up(later: Sequence["Claim"], earlier: Sequence["Claim"], *, loose: bool = False) -> bool:
    """Return whether one of the *later* claims says something else about what one of the *earlier* ones told of.

    *loose*: the later ones name nothing, and correct the last statement with a time before them.
    """
    return any((new.follows if loose else new.takes_up)(old) for new in later for old in earlier)


def shares_words(some: str, other: str) -> bool:
    """Return whether *some* text has a telling word of *other* in any form, or two characters of a run. O(words²)."""
    return Claim(some[:LONGEST])._common(Claim(other[:LONGEST]))[2] >= 1


def names_ids(text: str) -> bool:
    """Return whether *text* has an identifier of letters and digits. O(length)."""
    return _ID.search(text) is not None


class Claim:
    """What a sentence states, to be compared with others. Each property is O(length), once.

    Args:
        text: The sentence.
        speaker: The name of who says it; "" if unknown.
        spoken: The languages in which it may be; default: found out.
    """

    def __init__(self, text: str, speaker: str = "", spoken: Sequence[Writing] = ()) -> None:
        self.text, self.speaker = text, speaker.casefold()
        self._said, self._spoken = normal(text), tuple(spoken or languages(text, LATIN, slack=_SLACK))
        self._shown: dict[str, bool] = {}

    def shows(self, key: str) -> bool:
        """Return whether the pattern *key* of its language is in it. O(length), once."""
        if key not in self._shown:
            self._shown[key] = self._shows(key, self._said)
        return self._shown[key]

    @cached_property
    def _told(self) -> frozenset[str]:
        return self._values("told")

    def _values(self, key: str) -> frozenset[str]:
        return frozenset(found[0] for found in self._find(key))

    def _without(self, *keys: str, said: str = "") -> str:
        """Return it, or a part of it, without what these patterns find."""
        said = said or self._said
        for key in keys:
            for each in _patterns_of(self._spoken, key):
                said = each.sub(" ", said)
        return said

    @cached_property
    def topics(self) -> set[Topic]:
        """The topics that it tells of; none if it is a wish, of former times, or of others than its subject."""
        found: set[Topic] = {topic for topic in TOPICS if any(map(self._is_own, self._find(topic)))}
        return found if found and not self.supposes else set()

    def _find(self, key: str) -> Iterator[re.Match[str]]:
        return (found for each in _patterns_of(self._spoken, key) for found in each.finditer(self._said))

    def _is_own(self, found: re.Match[str]) -> bool:
        """Return whether what is *found* is said of its subject, and not denied.

        In writing with spaces, the words before it have the subject, in English next to it, or neither another word nor
        another pronoun.
        """
        lead, next_to = _CLAUSE.split(self._said[: found.start()])[-1], "latin" in self._spoken
        words = WORD.findall(lead and self._without("days", "clock", said=lead))[-_LEAD if next_to else -2 * _LEAD :]
        known, strange = self.subject | kin(), [each for each in words if not tells_nothing(each)]
        if _NOT.search(" ".join(words)) or (next_to and strange and strange[-1] == words[-1] not in known):
            return False  # "my folks live in Rome"
        if self.runs or not known.isdisjoint(words) or any(self._shows("self", each) for each in (*words, found[0])):
            return True
        return not strange and not self._shows("others", " ".join(words))

    def _shows(self, key: str, text: str) -> bool:
        return any(each.search(text) for each in _patterns_of(self._spoken, key))

    @cached_property
    def _likely(self) -> Sequence[Writing]:
        """The languages that fit best, for words that mean something else in another one: "plus", "si"."""
        return languages(self.text, LATIN)

    @cached_property
    def supposes(self) -> bool:
        """Whether it is a wish, a request or a condition, or of former times."""
        return any(pattern("change", "wish", each).search(self._said) for each in self._likely)

    @cached_property
    def changes(self) -> bool:
        """Whether it has a sign of change."""
        return self.shows("told") or self.shows("ended")

    @cached_property
    def retracts(self) -> bool:
        """Whether it takes back what was said, and says nothing else: "Forget what I said about the cat"."""
        return len(self._said) <= _BRIEF and self.shows("retracts")

    @cached_property
    def names_nothing(self) -> bool:
        """Whether it names nothing: "That's not true any more" means what was said right before."""
        return not self.words and not self.runs

    @cached_property
    def denies(self) -> bool:
        """Whether it has a negation."""
        return any(pattern("facts", "negation", each).search(self._said) for each in self._likely)

    @cached_property
    def values(self) -> dict[str, frozenset[str]]:
        """Its values by their kind: days, times of the day, other numbers."""
        numbers = frozenset(_NUMBER.findall(self._without("clock"))) | self._values("counts")
        return {"day": self._values("days"), "clock": self._values("clock"), "number": numbers}

    @property
    def timed(self) -> bool:
        """Whether it has a time."""
        return bool(self.values["day"] or self.values["clock"]) or tells_time(self.text)

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of a record, if it is one: those of JSON that it has once."""
        found = _FIELD.findall(self.text) if self.text.lstrip().startswith(("{", "[")) else []
        keys = [key for key, _ in found]
        return {key: value for key, value in found if keys.count(key) == 1}

    @cached_property
    def ids(self) -> frozenset[str]:
        """Its identifiers, with letters and digits."""
        return frozenset(_ID.findall(self._said))

    @cached_property
    def words(self) -> list[str]:
        """Its telling words, of writing with spaces: without values, signs of change and words that tell nothing."""
        return list(dict.fromkeys(word for word in self._words if word))

    @cached_property
    def _words(self) -> list[str]:
        """Its words in order, with "" for one that tells nothing."""
        bare = _ID.sub(" ", self._without("clock", "days", "retracts", "told", "ended", "counts"))
        found = (_APOSTROPHE.sub("", each) for each in WORD.findall(bare))
        return ["" if len(each) < 2 or tells_nothing(each) else each for each in found]

    @cached_property
    def runs(self) -> list[str]:
        """Its runs of characters of writing without spaces, without the same."""
        if not TIED.search(self._said):
            return []
        bare = tied_words().sub(lambda found: meaning()[found[0]], self._without("clock", "days", "retracts"))
        if writing(bare) == "hangul":  # its words stand apart, with their particles
            told = (PARTICLE.sub("", _COPULA.sub("", each)) for each in TIED.findall(self._without("told", said=bare)))
            return [each for each in told if len(each) > 1 and not tells_nothing(each)]
        plain = plain_runs("kana" if HIRAGANA.search(self._said) else "han")
        return [run for each in TIED.findall(bare) for run in plain.split(each) if run]

    @cached_property
    def subject(self) -> frozenset[str]:
        """Of whom it tells: persons that it names, or who says it; empty if that is unknown, too."""
        found = {*kin(*self._spoken).intersection(WORD.findall(self._said))}
        found.update(each for each in kin() if each in self._said and TIED.match(each))
        start = _START.match(self.text)
        if start and (bare := start[1].casefold()) not in plain() and bare not in kin():
            opens = (found.start() == start.start(1) for key in (*TOPICS, "told") for found in self._find(key))
            if not any(opens) and len(bare) > 2 and not bare.endswith("ly"):
                found.add(bare)
        return frozenset(found or {self.speaker} - {""})

    @cached_property
    def names(self) -> frozenset[str]:
        """Names within its sentences; none in German, which writes every noun like one."""
        found = frozenset(each.casefold() for each in _NAME.findall(self.text))
        return found and found.intersection(self.words) - kin()

    def takes_up(self, earlier: "Claim") -> bool:
        """Return whether it says something else about what *earlier* told of. O(words · words)."""
        if self.retracts and not earlier.retracts and not self._is_of_other(earlier) and self._names(earlier):
            return True
        if self._said == earlier._said or (self._is_bare and not earlier.denies) or self.supposes:
            return False
        if self._is_of_other(earlier) and earlier.shows("self") and earlier.speaker not in self.subject:
            return False  # of themselves, everybody tells alone
        if self.fields or earlier.fields:
            return self._same_record(earlier)
        topics = self.topics & earlier.topics
        same = bool(topics) and (self.subject == earlier.subject or not self.subject.isdisjoint(earlier.subject))
        told = bool(self.changes or self.runs or topics - {"home"} or self.names - earlier.names)
        return (same and told) or self._same_thing(earlier)

    def _names(self, earlier: "Claim") -> bool:
        """Return whether half of its words are of *earlier*, and one of the thing ("the *hotel* in …"), or a run is."""
        _, own, common = self._common(earlier)
        thing = set(" ".join(each or "/" for each in self._words).strip("/ ").partition("/")[0].split())
        named = own > 0 and common >= _MOST * own and not thing.isdisjoint(self._shared(earlier))
        tied = "".join(self._said.split())
        pairs = ((run, other) for run in self.runs for other in self.runs if len(other) > 1)
        places = {run for run, other in pairs if any(run + mark + other in tied for mark in "的の의")}
        return named or any(set(run) <= set(earlier._said) for run in self.runs if run not in places)

    def _same_record(self, earlier: "Claim") -> bool:
        """Return whether both are records of one thing, by its id, which comes first, and a field is not the same."""
        own, before = (next(iter(each.fields.items()), ("", "")) for each in (self, earlier))
        others = (earlier.fields.get(key, value) != value for key, value in self.fields.items())
        return own == before and _CODE.fullmatch(own[1].strip('"')) is not None and any(others)

    def _is_of_other(self, earlier: "Claim") -> bool:
        """Return whether another one says it."""
        return bool(self.speaker and earlier.speaker and self.speaker != earlier.speaker)

    @cached_property
    def _is_bare(self) -> bool:
        """Whether it has nothing in which it could differ: no topic, sign of change, negation, value or identifier."""
        return not (self.topics or self.changes or self.denies or self.ids or any(self.values.values()))

    def follows(self, earlier: "Claim") -> bool:
        """Return whether it corrects *earlier*, the last statement before it, without naming it.

        A correction means the last one with a time, what takes something back the last one of any kind.
        """
        if self.retracts or not earlier.timed:
            return self.retracts and self.names_nothing and not earlier.retracts
        return self.shows("ended") or any(self.values[kind] and earlier.values[kind] for kind in ("day", "clock"))

    def _same_thing(self, earlier: "Claim") -> bool:
        both = zip(self.values.values(), earlier.values.values(), strict=True)
        kinds = sum(0 < len(own) <= _VALUES and own != before != frozenset() for own, before in both)
        same_ids, opposite = self.ids & earlier.ids, self.denies != earlier.denies
        if max(len(self._said), len(earlier._said)) > _BRIEF or not (self.changes or opposite or same_ids or kinds):
            return False
        hearsay = self._is_of_other(earlier) and not (kinds or (earlier.timed and self.shows("ended")))
        two_things = _differ(self.ids, earlier.ids) and self._told & earlier._told
        if hearsay or two_things:
            return False
        told, whole, common = self._common(earlier)
        share = common / told if told else 0
        others, another = _differ(self.names, earlier.names), _differ(self.subject & kin(), earlier.subject & kin())
        if common >= 2 and not others and not another:
            alike = self._begins_like(earlier) or (self.shows("self") and earlier.shows("self"))
            turned = opposite and alike and told == common >= _TURNED * whole
            same = share >= _MOST and not earlier.supposes and self._repeats(earlier)
            if turned or (same_ids and kinds) or (kinds == 1 and same):
                return True
        if self.about in earlier.names and self._counts_other(earlier):
            return True  # "Filou is two years old", "Filou turned three"
        if (self.shows("ended") or self.shows("swapped")) and self._goes_on_from(earlier):
            return True
        if not self.changes or another:
            return False
        if self.shows("ended"):
            return not others and self._ends(earlier, share, common, whole)
        return not earlier.supposes and self._alters(earlier, share, common, whole, others=others, differ=bool(kinds))

    def _repeats(self, earlier: "Claim") -> bool:
        """Return whether it begins with the same thing as *earlier*, or counts the same: "20 km a week", "35 km"."""
        timed = tells_time(self.text) and tells_time(earlier.text)
        again = self._begins_like(earlier) or (self._counts_other(earlier) and not timed)
        return again and self._labels == earlier._labels

    def _begins_like(self, earlier: "Claim") -> bool:
        return bool(self.about and earlier.about) and is_alike(self.about, earlier.about)

    def _ends(self, earlier: "Claim", share: float, common: float, whole: float) -> bool:
        """Return whether what *earlier* told of is over; *share* of its words are in *common*."""
        if self.values["clock"] & earlier.values["clock"]:
            return True
        most = common >= 2 and share >= _MOST and (4 if self.runs else 2) * common > whole
        named = share >= _NAMED and self.names & earlier.names
        same = most or named or (share == 1 and earlier.timed)
        return bool(same) and (bool(self.runs) or any(map(self._ends_with, self._shared(earlier))))

    def _alters(
        self, earlier: "Claim", share: float, common: float, whole: float, *, others: bool, differ: bool
    ) -> bool:
        """Return whether what *earlier* told of is otherwise now; *differ*: their values of a kind are not the same."""
        told_of = earlier.about and any(is_alike(earlier.about, each) for each in self.words or self.runs)
        same = (told_of and earlier.about not in kin()) or self.about in earlier.names
        swapped = self.shows("swapped")
        if self._renews(earlier) or (not others and (differ or swapped) and same):
            return common > 0
        if common >= 2:
            named = swapped and not self.names.isdisjoint(earlier.names)
            alike = differ or named or self._begins_like(earlier)
            return not others and alike and max(share, common / whole) >= _MOST
        return differ and common > 0 and (share > _MOST or common == whole)

    @cached_property
    def about(self) -> str:
        """The thing, or what has a name, with which it begins: "saab" of "The Saab went to the scrapyard"; else ""."""
        first = self.words[0] if self.words else ""
        if self.runs:
            begins = len(self.runs[0]) > 1 and not (first and self._said.startswith(first))
            return self.runs[0][:2] if begins else ""
        at = self._said.find(first)
        if not first or at > _FIRST:
            return ""
        opened = self._said[:at]
        definite = any(each.fullmatch(opened) for each in _patterns_of(self._spoken, "definite"))
        named = _TITLES.fullmatch(opened) and self.text[at : at + 1].isupper()
        return first if definite or named else ""

    def _goes_on_from(self, earlier: "Claim") -> bool:
        """Return whether it begins with what *earlier* told: "I drive a Saab", "The Saab went to the scrapyard"."""
        if self.runs or earlier.runs:
            return bool(self.about) and "".join(earlier.runs).find(self.about) > 0
        return (len(self.about) >= LEAST or self.about in earlier.names) and self.about in earlier.words[1:]

    def _renews(self, earlier: "Claim") -> bool:
        """Return whether it tells of another one of what *earlier* told of: "a new landlord", "changed landlords"."""
        others = [each for each in self.subject & kin() - earlier.subject if not is_alike(each, earlier.about)]
        new = [found[found.lastindex or 0] for found in self._find("renewed")]
        begins = not earlier.about or earlier._said.startswith(earlier.about)
        return not (begins or others) and any(is_alike(earlier.about, each) for each in new)

    def _counts_other(self, earlier: "Claim") -> bool:
        """Return whether both count the same, and not the same number."""
        own, before = self._counted, earlier._counted
        return any(own[each] != before[each] for each in own if each in before)

    @cached_property
    def _counted(self) -> dict[str, str]:
        """Its numbers, by the word or unit behind them."""
        found = {found[2]: found[1] for found in _AMOUNT.finditer(self._said) if found[1] in self.values["number"]}
        return found | {unit: number for number, unit in _MEASURE.findall(self._said)}

    @cached_property
    def _labels(self) -> set[str]:
        """The numbers, ids and words that tell a thing from others: "12" of "Room 12 is free", "the other room"."""
        found = _LABEL.findall(self._said)
        named = [each for each in found if each[0] in self.words or TIED.match(each[0])]
        ids = {each for each in self.ids if each.isascii() and each[0].isalpha()}
        ids |= {number for _, number, unit in named if not unit or unit in plain()}
        return ids | self._values("second")

    def _shared(self, earlier: "Claim") -> list[str]:
        """Return its words that *earlier* has in any form."""
        if self._edges.isdisjoint(earlier._edges):
            return []
        return [own for own in self.words if any(is_alike(own, each) for each in earlier.words)]

    def _ends_with(self, name: str) -> bool:
        """Return whether it says of this word that it is over: "sold the Fiat", "Mr. Alvarez has retired"."""
        at = self._said.find(name)
        before = _CLAUSE.split(self._said[:at])[-1][-_BESIDE:]
        return self._shows("ended", before + self._said[at:][: len(name) + _BESIDE])

    def _common(self, earlier: "Claim") -> tuple[float, float, float]:
        """Return how many words *earlier* has, how many this one has, and how many of *earlier* this one has, too.

        Two characters of writing without spaces count as a word.
        """
        they = self.shows("they")
        before = [each for each in earlier.words if not (they and each in kin())]
        shared = self._shared(earlier)
        near = [each for each in before if any(is_alike(each, own) for own in shared)] if shared else []
        common = min(len(near), len(shared))
        said = "\n".join(self.runs)
        tied = sum(map(len, earlier.runs))
        again = sum(covered(run, said) for run in earlier.runs)
        return len(before) + tied / 2, len(self.words) + sum(map(len, self.runs)) / 2, common + again / 2

    @cached_property
    def _edges(self) -> frozenset[str]:
        """The edges of its words: a word that shares none with them is like none."""
        return frozenset(edge for word in self.words for edge in edges_of(word))


def _differ(own: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether both name persons or things, but none of them is the same."""
    return bool(own and other and own.isdisjoint(other))


@cache
def _patterns_of(spoken: tuple[Writing, ...], key: str) -> list[re.Pattern[str]]:
    return [pattern("change", key, each) for each in spoken]
