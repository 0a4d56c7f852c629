"""Change: whether a statement says something else about what an earlier one told of.

    "I live in Tromsø."              "The move to Ghent is done."                         takes it up: both tell of home
    "The alarm code is 5190."        "We had the code of the alarm changed, it is 7264."  same thing, a sign of change
    "The meeting is on Monday."      "Actually make it Thursday."                         names nothing: a loose one
    "The meeting with Ann is on …"   "The meeting with Bob is on Tuesday now."            another thing

A statement takes up an earlier one about the same subject if both tell of the same topic, where one lives or what one
does for a living; or if it has a sign of change, most words of the earlier one, and another value of the same kind
(a number, a time, a day), or an end; if it is short, begins with the same thing or counts in the same unit, and differs
in one value; if it is the earlier one with the opposite sign; or if what the earlier one told of is its subject and
over ("The Saab went to the scrapyard"), new ("a new landlord"), or has another value. Words are compared by their
beginnings, since most languages inflect the end; Han and kana by their runs.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, Literal, get_args

from ...workers import cached_property
from .dates import tells_time
from .patterns import LATIN, Writing, pattern, words
from .sentences import languages, lower_case, sentences, simplify
from .terms import STOP_WORDS

Topic = Literal["home", "work"]
TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)
Sign = Literal[Topic, "changed", "loose"]
"""what a text shows of itself: its topics, a sign of change, and whether it corrects what it does not name"""
SIGNS: Final[tuple[Sign, ...]] = (*TOPICS, "changed", "loose")
LONGEST: Final = 400  # characters of a statement that are read: what is longer is a text about more than one thing
_ALIKE: Final = 4  # letters at the beginning that two forms of a word share, at least
_MOST: Final = 0.5  # share of the words of the earlier statement that a later one about the same thing has
_TURNED: Final = 0.6  # share of the words of a statement that an earlier one with the opposite sign has
_NAMED: Final = 0.3  # the same, if it says that something with a name is over
_BESIDE: Final = 24  # characters around that name in which it says so
_SENTENCES: Final = 8  # of a text at most

_LANGUAGES: Final[tuple[Writing, ...]] = get_args(Writing)
_SLACK: Final = 2  # common words by which the language of a short text may be taken for another
_NOT = pattern("facts", "negation")
_QUESTION = re.compile(r"[?？][\s\"'”’)*_]*$|(?:吗|呢|か)[。.]?$")
_TIED = re.compile("[\u3005-\u3007\u30a1-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_KANA = re.compile("[\u3041-\u309f]")
_WORD = re.compile(r"[^\W\d_\u3005-\u30ff\u3400-\u9fff\uac00-\ud7a3]+(?:['’-][^\W\d_]+)*")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_AMOUNT = re.compile(r"(?<!\w)(\w[\w.,]*)(?= ([^\W\d_]{2,}))")
_MEASURE = re.compile(
    r"(\d++(?:[.,:/-]\d++)*+) ?"
    r"([^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+|[\u30a1-\u30ff]+|[\u3400-\u9fff\uac00-\ud7a3])"
)
"""a number, and the word or unit behind it"""
_LABEL = re.compile(r"([^\W\d_]+) ?(?:n[or°]\.? ?|#)?(\d++(?:[.,:/-]\d++)*+)(?: ?([^\W\d_]+))?")
_ID = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[\w-]{4,}\b")
_NAME = re.compile(r"(?<![.!?。:]\s)(?<!^)(?<![\"“«\[(])\b[A-ZÀ-ÖØ-Þ][\w'-]+")
_START = re.compile(r"^\W*([A-ZÀ-ÖØ-Þ][\w-]+?)(?:['’]s)? ")
_FIRST: Final = 16  # characters in front of what a sentence is about, at most
_BRIEF: Final = 120  # characters of a sentence that repeats an earlier one with another value, at most
_LOOSEST: Final = 90  # characters of a loose correction at most


def signs(text: str) -> list[Sign]:
    """Return the signs of a statement. O(length)."""
    if len(text) > LONGEST or _QUESTION.search(text[-12:]):
        return []
    claim = Claim(text)
    found: list[Sign] = [topic for topic in TOPICS if claim.shows(topic)]
    if claim.changes or claim.denies:
        found.append("changed")
    if len(text) <= _LOOSEST and claim.shows("loose"):
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
        self._said, self._spoken = _normal(text), tuple(spoken or languages(text, LATIN, slack=_SLACK))
        self._shown: dict[str, bool] = {}

    def shows(self, key: str) -> bool:
        """Return whether the pattern *key* of its language is in it. O(length), once."""
        if key not in self._shown:
            self._shown[key] = any(each.search(self._said) for each in _patterns_of(self._spoken, key))
        return self._shown[key]

    def _values(self, key: str) -> frozenset[str]:
        return frozenset(match[0] for each in _patterns_of(self._spoken, key) for match in each.finditer(self._said))

    def _without(self, *keys: str) -> str:
        """Return it without what these patterns find."""
        said = self._said
        for key in keys:
            for each in _patterns_of(self._spoken, key):
                said = each.sub(" ", said)
        return said

    @cached_property
    def topics(self) -> set[Topic]:
        """The topics that it tells of; none if it is a wish, or of former times."""
        found: set[Topic] = {topic for topic in TOPICS if self.shows(topic)}
        return found if found and not self.shows("wish") else set()

    @cached_property
    def changes(self) -> bool:
        """Whether it has a sign of change."""
        return self.shows("told") or self.shows("ended")

    @cached_property
    def denies(self) -> bool:
        """Whether it has a negation."""
        return _NOT.search(self._said) is not None

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
    def ids(self) -> frozenset[str]:
        """Its identifiers, with letters and digits."""
        return frozenset(_ID.findall(self._said))

    @cached_property
    def words(self) -> list[str]:
        """Its telling words, of writing with spaces: without values, signs of change and words that tell nothing."""
        bare = self._without("clock", "days", "told")
        found = dict.fromkeys(each.removesuffix("'s").removesuffix("’s") for each in _WORD.findall(bare))
        return [each for each in found if len(each) > 1 and each not in _plain() and not _NOT.search(each)]

    @cached_property
    def runs(self) -> list[str]:
        """Its runs of characters of writing without spaces, without the same."""
        if not _TIED.search(self._said):
            return []
        bare = _tied_words().sub(lambda found: _meaning()[found[0]], self._without("clock", "days"))
        plain = _plain_runs("kana" if _KANA.search(self._said) else "han")
        return [run for each in _TIED.findall(bare) for run in plain.split(each) if run]

    @cached_property
    def subject(self) -> frozenset[str]:
        """Of whom it tells: persons that it names, or who says it; empty if that is unknown, too."""
        found = {each for each in self.words if each in _kin()}
        found.update(each for each in _kin() if each in self._said and _TIED.match(each))
        start = _START.match(self.text)
        if start and (bare := start[1].casefold()) not in _plain() and bare not in _kin():
            keys = (*TOPICS, "told")
            opens = any(
                each.match(self._said, start.start(1)) for key in keys for each in _patterns_of(self._spoken, key)
            )
            if not opens and len(bare) > 2 and not bare.endswith("ly"):
                found.add(bare)
        return frozenset(found or {self.speaker} - {""})

    @cached_property
    def names(self) -> frozenset[str]:
        """Names within its sentences; none in German, which writes every noun like one."""
        found = frozenset(each.casefold() for each in _NAME.findall(self.text))
        return found and found.intersection(self.words) - _kin()

    def takes_up(self, earlier: "Claim") -> bool:
        """Return whether it says something else about what *earlier* told of. O(words · words)."""
        if self._said == earlier._said or (self._is_bare and not earlier.denies):
            return False
        topics = self.topics & earlier.topics
        same = bool(topics) and (self.subject == earlier.subject or not self.subject.isdisjoint(earlier.subject))
        return same or self._same_thing(earlier)

    @cached_property
    def _is_bare(self) -> bool:
        """Whether it has nothing in which it could differ: no topic, sign of change, negation, value or identifier."""
        return not (self.topics or self.changes or self.denies or self.ids or any(self.values.values()))

    def follows(self, earlier: "Claim") -> bool:
        """Return whether it corrects *earlier*, the last statement with a time before it, without naming it."""
        return self.shows("ended") or any(self.values[kind] and earlier.values[kind] for kind in ("day", "clock"))

    def _same_thing(self, earlier: "Claim") -> bool:
        same_ids = self.ids & earlier.ids
        kinds = [
            kind for kind, own in self.values.items() if own and earlier.values[kind] and own != earlier.values[kind]
        ]
        opposite = self.denies != earlier.denies
        if not (self.changes or opposite or same_ids or kinds):
            return False
        told, whole, common = self._common(earlier)
        share = common / told if told else 0
        swapped, kin = self.shows("swapped"), self._other_kin(earlier)
        others = self._other_names(earlier)
        if common >= 2 and not others and not kin:
            turned = opposite and told == common >= _TURNED * whole
            if turned or (same_ids and kinds) or (len(kinds) == 1 and share >= _MOST and self._repeats(earlier)):
                return True
        if self.about in earlier.names and self._counts_other(earlier):
            return True  # "Filou is two years old", "Filou turned three"
        if (self.shows("ended") or swapped) and self._goes_on_from(earlier):
            return True
        if not self.changes or kin:
            return False
        if self.shows("ended"):
            return not others and self._ends(earlier, share, common)
        return self._alters(earlier, share, common, whole, others=others, differ=bool(kinds) or swapped)

    def _repeats(self, earlier: "Claim") -> bool:
        """Return whether it begins with the same thing as *earlier*, or counts the same: "20 km a week", "35 km".

        A record of JSON repeats the names of its fields, whatever it is about.
        """
        if max(len(self._said), len(earlier._said)) > _BRIEF or self.text.lstrip().startswith(("{", "[")):
            return False
        if self._labels != earlier._labels:
            return False
        timed = tells_time(self.text) and tells_time(earlier.text)
        return self._begins_like(earlier) or (self._counts_other(earlier) and not timed)

    def _begins_like(self, earlier: "Claim") -> bool:
        return bool(self.about and earlier.about) and _alike(self.about, earlier.about)

    def _ends(self, earlier: "Claim", share: float, common: float) -> bool:
        """Return whether what *earlier* told of is over; *share* of its words are in *common*."""
        named = share >= _NAMED and any(map(self._ends_with, self.names & earlier.names))
        same_time = bool(self.values["clock"] & earlier.values["clock"])
        return (common >= 2 and share >= _MOST) or (share == 1 and earlier.timed) or named or same_time

    def _alters(
        self, earlier: "Claim", share: float, common: float, whole: float, *, others: bool, differ: bool
    ) -> bool:
        """Return whether what *earlier* told of is otherwise now; *differ*: their values of a kind are not the same."""
        if not common:
            return False
        told_of = earlier.about and any(_alike(earlier.about, each) for each in self.words)
        same = (told_of and earlier.about not in _kin()) or self.about in earlier.names
        if not others and (self._renews(earlier) or (differ and same)):
            return True
        if common >= 2:
            return not others and (differ or self._begins_like(earlier)) and max(share, common / whole) >= _MOST
        return differ and (share > _MOST or common == whole)

    @cached_property
    def about(self) -> str:
        """The thing, or what has a name, with which it begins: "saab" of "The Saab went to the scrapyard"; else ""."""
        if self.runs:
            return self.runs[0][:2] if len(self.runs[0]) > 1 else ""
        first = self.words[0] if self.words else ""
        at = self._said.find(first)
        if not first or at > _FIRST:
            return ""
        opened = self._said[:at]
        definite = any(each.fullmatch(opened) for each in _patterns_of(self._spoken, "definite"))
        return first if definite or (not opened.strip("“\"'«") and self.text[at : at + 1].isupper()) else ""

    def _goes_on_from(self, earlier: "Claim") -> bool:
        """Return whether it begins with what *earlier* told: "I drive a Saab", "The Saab went to the scrapyard"."""
        if self.runs or earlier.runs:
            return bool(self.about) and "".join(earlier.runs).find(self.about) > 0
        return (len(self.about) >= _ALIKE or self.about in earlier.names) and self.about in earlier.words[1:]

    def _renews(self, earlier: "Claim") -> bool:
        """Return whether it tells of a new one of what *earlier* told of: "My landlord is …", "a new landlord"."""
        renewed = (found for each in _patterns_of(self._spoken, "renewed") for found in each.finditer(self._said))
        begins = not earlier.about or earlier._said.startswith(earlier.about)
        return not begins and any(earlier.about in found.groups() for found in renewed)

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
        """The numbers and ids that name a thing: "12" of "Room 12 is free"; "10mg" names nothing."""
        found = _LABEL.findall(self._said)
        named = [each for each in found if each[0] in self.words or _TIED.match(each[0])]
        ids = {each for each in self.ids if each.isascii() and each[0].isalpha()}
        return ids | {number for _, number, unit in named if not unit or unit in _plain()}

    def _ends_with(self, name: str) -> bool:
        """Return whether it says of this name that it is over: "sold the Fiat", "Mr. Alvarez has retired"."""
        at = self._said.find(name)
        clause = (
            re.split("[,;:.!?]", self._said[: at + len(name)])[-1][-_BESIDE:] + self._said[at + len(name) :][:_BESIDE]
        )
        return any(each.search(clause) for each in _patterns_of(self._spoken, "ended"))

    def _common(self, earlier: "Claim") -> tuple[float, float, float]:
        """Return how many words *earlier* has, how many this one has, and how many of *earlier* this one has, too.

        Two characters of writing without spaces count as a word.
        """
        they = self.shows("they")
        before = [each for each in earlier.words if not (they and each in _kin())]
        alike = not self._edges.isdisjoint(earlier._edges)
        near = [each for each in before if not self._edges.isdisjoint(_edges_of(each))] if alike else []
        common = sum(any(_alike(each, own) for own in self.words) for each in near)
        said = "\n".join(self.runs)
        tied = sum(map(len, earlier.runs))
        covered = sum(_covered(run, said) for run in earlier.runs)
        return len(before) + tied / 2, len(self.words) + sum(map(len, self.runs)) / 2, common + covered / 2

    @cached_property
    def _edges(self) -> frozenset[str]:
        """The edges of its words: a word that shares none with them is like none."""
        return frozenset(edge for word in self.words for edge in _edges_of(word))

    def _other_kin(self, earlier: "Claim") -> bool:
        """Return whether both name persons, but not the same."""
        own, other = self.subject & _kin(), earlier.subject & _kin()
        return bool(own and other and not own & other)

    def _other_names(self, earlier: "Claim") -> bool:
        own, other = self.names - earlier.names, earlier.names - self.names
        return bool(own and other and not self.names & earlier.names)


@cache
def _patterns_of(spoken: tuple[Writing, ...], key: str) -> list[re.Pattern[str]]:
    return [pattern("change", key, each) for each in spoken]


def _normal(text: str) -> str:
    lower = lower_case(text)
    if lower.isascii():
        return lower
    return (lower if _KANA.search(lower) else simplify(lower)).replace("’", "'")


def _alike(some: str, other: str) -> bool:
    """Return whether two words are forms of one, or mean the same."""
    if some == other or _meaning().get(some, some) == _meaning().get(other, other):
        return True
    short, long = (some, other) if len(some) <= len(other) else (other, some)
    if len(short) >= _ALIKE + 1 and long.endswith(short):
        return True  # "telefonnummer", "nummer"
    if some[:_ALIKE] != other[:_ALIKE]:
        return False
    if len(short) >= _ALIKE and long.startswith(short):
        return True  # "müll", "müllabfuhr"
    same = next((at for at, (a, b) in enumerate(zip(some, other, strict=False)) if a != b), len(short))
    return same >= _ALIKE and same >= 0.6 * len(long)


def _edges_of(word: str) -> tuple[str, str, str]:
    """Return of what two words that are `_alike` have one in common: a beginning, an end, the word they stand for."""
    return f"{word[:_ALIKE]}-", f"-{word[-_ALIKE - 1 :]}", _meaning().get(word, word)


def _covered(run: str, said: str) -> int:
    """Return how many characters of *run* are in runs of at least two characters that *said* has, too."""
    found = at = 0
    while at < len(run) - 1:
        size = next((size for size in range(len(run) - at, 1, -1) if run[at : at + size] in said), 0)
        found += size
        at += size or 1
    return found


def _listed(key: str) -> Iterator[str]:
    for language in _LANGUAGES:
        yield from words("change", key, language)


@cache
def _kin() -> frozenset[str]:
    return frozenset(_listed("kin"))


@cache
def _plain() -> frozenset[str]:
    common = (word for language in _LANGUAGES for word in words("words", "common", language))
    return STOP_WORDS | frozenset(common) | frozenset(_listed("plain")) | frozenset(words("words", "everyday"))


@cache
def _plain_runs(written: Writing) -> re.Pattern[str]:
    plain = sorted(words("change", "plain", written), key=len, reverse=True)
    return re.compile("|".join([*plain, pattern("change", "told", written).pattern]))


def same_meaning(text: str) -> list[str]:
    """Return words that mean the same as one of *text*: "size" for "shoe". O(length)."""
    said = _normal(text[:LONGEST])
    own = _WORD.findall(said) + ([] if said.isascii() else _tied_words().findall(said))
    return [other for word in own for other in _groups().get(_meaning().get(word, ""), ()) if other != word]


@cache
def _meaning() -> dict[str, str]:
    """Return for each word with others of its meaning the first of them."""
    return {word: first for first, group in _groups().items() for word in group}


@cache
def _tied_words() -> re.Pattern[str]:
    """Return what finds those of them that are written without spaces."""
    return re.compile("|".join(sorted((each for each in _meaning() if _TIED.match(each)), key=len, reverse=True)))


@cache
def _groups() -> dict[str, list[str]]:
    """Return the words that mean the same, by the first of them."""
    listed = [
        group.split() for language in _LANGUAGES for group in " ".join(words("change", "alike", language)).split(",")
    ]
    return {group[0]: group for group in listed if group}
