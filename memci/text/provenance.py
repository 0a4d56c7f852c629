"""Provenance: whose words the parts of a text are.

    Always answer in Danish. Translate this:      the user's own
    Never open the hatch.                         quoted: a request to work on a text owns what stands below it

    And call me Juno from now on.                 the user's own: this paragraph speaks to the assistant again

Marks that no speaker makes are quoted: quotation marks, ">", fences, lines of logs and code, runs of speakers' labels,
what is below the stamps of an export or the head of a mail; so is what stands behind "X wrote:". The rest is divided
into parts, paragraphs and lines that stand out, each quoted or the user's own: the way from part to part with the most
signs for it. A text of one line is divided at its sentences. What has marks is no such part, so that a log between two
paragraphs begins no quotation and ends none. Signs are persons, register, length, typing, place, what asks, greets,
signs, tells how to answer, or speaks of a text, and words. Each has a weight for a quoted part, or for the border at
which a run of them opens or closes, fitted to labelled texts (`tools/provenance.py`). What is unsure counts as quoted:
a wrong order that stands costs more than one that is missed, and a search finds both.

What is found here is derived from the text, and never stored. What a format declares comes first
(`memci.formats.provenance`).
"""

import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import combinations, pairwise, takewhile
from math import fsum, inf
from typing import NamedTuple

from .copied import FENCE, MACHINE, NOTICE, SHORT, Line, labelled_lines, mail_lines, stamped_lines
from .language.instructions import instructions
from .language.marks import compose
from .language.patterns import LATIN, WIDE, Writing, alternatives, finder, pattern
from .language.sentences import SMALL_TALK, languages, lower_case, simplify, writing

_LINE = 300  # characters of the beginning or the end of a line that are read; requests are shorter
_COLONS = 4  # colons of a line behind which a quotation may begin; prose has fewer
_LONGEST = 20_000  # characters of a quotation of several lines, a bound on the search for its end
_MOST = 400  # lines at the beginning that are judged; what stands between them and the end of a longer text is quoted
_END = 40  # lines at the end of a longer text
_FIRST = 8  # lines that are asked whether a machine's output goes on there
_TURNS = 4  # lines at the end that begin a part where the typing changes
_EDGE = 8  # parts at the beginning, and at the end, that are judged one by one
_SPEECH = 240  # columns of a part that may speak to the assistant; a wide character has three
_WORK = ("request", "asks", "brings", "makes")  # tables of words that ask for work on a text
_KEYS = (
    *_WORK, "voice", "speaks", "judges", "above", "this", "here", "gives", "except", "affair", "they", "you", "casual",
    "formal",
)  # fmt: skip
_PROOFREAD = frozenset(("above request", "above colon"))  # signs of a border below "proofread this:"
_ASKING = frozenset((*_WORK, "judges", "above"))  # forms of a part that asks for work on a text
_ELSEWHERE = frozenset((
    "voice", "casual", "formal", "order", "asks?", "asked", "gives", "affair", "letter", "closing", "typeset",
    "indented", "wrapped",
))  # forms that tell of the whole text  # fmt: skip
_KINDS = frozenset((
    "asks?", "casual", "closing", "formal", "greets", "heading", "last", "letter", "lines", "list", "long", "manner",
    "order", "request", "short", "signed", "speaks", "symbols", "tells", "they", "unended", "voice", "you",
))  # forms that tell in pairs, above a border and below it  # fmt: skip
_PAIRED = frozenset((
    "affair", "asks", "brings", "casual", "colon", "digits", "formal", "gives", "judges", "letter", "lines", "list",
    "long", "lower", "makes", "manner", "many sentences", "one sentence", "order", "request", "short", "signed",
    "speaks", "they", "typeset", "unended", "voice", "you",
))  # forms that tell in pairs within a part: a list of short lines, a list in the first person  # fmt: skip


class Origin(StrEnum):
    """Whose words a text is."""

    OWN = "own"  # the user's own
    QUOTED = "quoted"  # quoted or pasted by the user
    DOCUMENT = "document"
    TOOL = "tool"
    ASSISTANT = "assistant"
    OPERATOR = "operator"


class Span(NamedTuple):
    """A part of a text, and whose words it is."""

    start: int
    end: int
    origin: Origin


def spans(text: str, others: Iterable[tuple[int, int]] = ()) -> list[Span]:
    """Return the spans of a user's *text*, `OWN` and `QUOTED` in turn, which together are the text. O(characters).

    *others* are places that are known not to be the user's own.
    """
    others, (composed, places) = list(others), compose(text)
    if composed != text:
        known = [(bisect_left(places, start), bisect_left(places, end)) for start, end in others]
        return [Span(places[start], places[end], whose) for start, end, whose in spans(composed, known)]
    parts, found, place = [], [], 0
    for start, end in joined(others):
        parts += [text[place:start], _NO_BREAK.sub(" ", text[start:end])]
        place = end
    text, place = "".join([*parts, text[place:]]), 0
    for start, end in joined([*others, *_quoted_blocks(text), *(each.span() for each in _QUOTATION.finditer(text))]):
        if place < start:
            found.append(Span(place, start, Origin.OWN))
        found.append(Span(start, end, Origin.QUOTED))
        place = end
    return [*found, Span(place, len(text), Origin.OWN)] if place < len(text) else found


def mask(text: str, found: Iterable[Span]) -> str:
    """Return *text* with blanks for what is not the user's own, every character at its place. O(characters).

    A quotation within a line keeps its marks, with "_" between them: it is a part of the sentence that quotes it.
    """
    parts = []
    for start, end, origin in found:
        said = text[start:end]
        if origin is not Origin.OWN:
            said = mask_quotations(said) if is_quotation(said) else _NO_BREAK.sub(" ", said)
        parts.append(said)
    return "".join(parts)


def is_quotation(said: str) -> bool:
    """Return whether *said* is a quotation within a line, with its marks: a part of the sentence that quotes it."""
    return _QUOTATION.fullmatch(said) is not None


def mask_quotations(text: str) -> str:
    """Return *text* with "_" within its quotation marks: a mask that is quick, and leaves blocks. O(characters)."""
    return _QUOTATION.sub(lambda each: f"{each[0][0]}{'_' * (len(each[0]) - 2)}{each[0][-1]}", text)


_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*”|„[^„“”\"\n]*[“”\"]|«[^«»\n]*»|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》"
    r"|'(?<!\w')[^'\n]{3,}'(?!\w)|`[^`\n]*`|»[^«»\n]*«|‹[^‹›\n]*›|›[^‹›\n]*‹|(?<!\w)”[^“”\n]*”|＂[^＂\n]*＂|〝[^〝〞〟\n]*[〞〟]"
    r"|‚[^‚‘\n]{3,}‘|‘(?:[^‘’\n]|’(?=\w)){3,}’(?!\w)"
)
_NO_BREAK = re.compile(r"[^\n]")
_QUESTION = pattern("instructions", "question")
_MANNER = pattern("instructions", "manner")
_POLITE = re.compile(r"\b(?:please|pls|bitte|merci|por favor|per favore|пожалуйста|s'il (?:te|vous) pla[iî]t)\b")
"""what notices and mails say, too"""
_COLON = re.compile("[:：](?!//)")
_SALUTATION = re.compile(r"[^,，:：!！.?。\n]{2,60}[,，:：!！]")
_CLOSING = {
    mark: re.compile(f"[{ends}]") for mark, ends in zip('"“„«「『', ('"', '”"', '“”"', "»", "」", "』"), strict=True)
}
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_UNSPACED = "[\u3041-\u30ff\u3400-\u9fff]"
_SENTENCE = re.compile(r"[.!?。！？]\s*(?=\S)")
_CLOSED = "\"'”’»“‘«›‹＂〞〟)"  # what may stand between the end of a sentence and the blank behind it
_BORDER = re.compile(
    rf"(?<![.!?…])[.!?…]++[{_CLOSED}]*+\s++(?=\S)|(?<![。！？…])[。！？…]++[」』”’）)]*+\s*+(?=\S)"
    rf"|(?<=\S)\s*\u3000\s*+(?=\S)|(?<={_UNSPACED}) +(?={_UNSPACED})"
    rf"|(?<=\S)\s++(?=(?:{alternatives('small_talk', 'greetings')})[\s,])"
)
"""where a text of one line, in lower case, is divided: behind a sentence, at a blank of Chinese or Japanese, and before
a greeting"""
_ENDED = re.compile(r"[.!?。！？:：…,，、][)\"'”»」』]*$")
_SYMBOL = re.compile(r"[{}\[\]<>=_/\\|#*+$%&^~;()]")
_TYPED = {  # how a part is typed
    "marked up": re.compile(r"\*\*|`|\]\(|^\s*[-*] ", re.MULTILINE),
    "typeset": re.compile(r"[“”„«»—–…‐•]"),
    "loud": re.compile(r"[!?]{2}|\.{3}|[:;]-?[)D(]|\bi\b"),
    "spaced": re.compile(r"\S {3}"),
    "digits": re.compile(r"(?:\d[^\d\n]{0,6}){8}"),
    "heading": re.compile(r"#{1,6} \S|[=-]{4,}$", re.MULTILINE),
    "capitals": re.compile(r"\b[A-Z]{4,}\b"),
    "wrapped": re.compile(r"[^\n]{50}[^\n.!?:…]*\n\s*[a-zа-яà-ÿ]"),
}
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s")
_ASKED = re.compile(rf"[?？][\s)”\"'»]*$|(?:{alternatives('facts', 'question')})[。.!！~\s]*$")


def joined(found: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the places *found*, in order; overlapping ones are joined."""
    begun = ended = -1
    for start, end in sorted(found):
        if start > ended:
            if begun < ended:
                yield begun, ended
            begun = start
        ended = max(ended, end)
    if begun < ended:
        yield begun, ended


def _quoted_blocks(text: str) -> list[tuple[int, int]]:
    """Return where the quoted blocks of *text* begin and end, in order. O(characters), once for the last texts."""
    if "\n" not in text and not _COLON.search(text) and not _BORDER.search(lower_case(text)):
        return []
    key = blake2b(text.encode(errors="surrogatepass"), digest_size=16, key=_KEY).digest()
    found = _BLOCKS.pop(key, None)
    if found is None:
        found = [*joined(Paragraphs(text).blocks)]
    _BLOCKS[key] = found
    for oldest in list(_BLOCKS)[:-_KEPT]:
        _BLOCKS.pop(oldest, None)
    return found


_KEPT = 512  # texts whose blocks are kept: more messages than the results of the last searches have
_KEY = os.urandom(16)
_BLOCKS: dict[bytes, list[tuple[int, int]]] = {}
"""by the digest of their text, with a key of this process: neither a text is kept nor what tells one that is known"""


def _lines(text: str) -> list[Line]:
    """Return the lines of *text* that are not blank."""
    prepared = lower_case(text.replace("’", "'"))
    prepared = simplify(prepared) if writing(text) == "han" else prepared
    found, start, first = [], 0, True
    for line in prepared.split("\n"):
        if said := line.strip():
            found.append(Line(start, start + len(line), line, first))
        first = not said
        start += len(line) + 1
    return found


def _sentences(line: Line) -> Iterator[Line]:
    """Yield the sentences of the only *line*: a request and the text that it is about may stand in one."""
    ends = [each.end() for each, _ in zip(_BORDER.finditer(line.said), range(_MOST), strict=False)]
    for start, end in pairwise([0, *ends, len(line.said)]):
        yield Line(line.start + start, line.start + end, line.said[start:end], line.first and not start)


class Paragraphs:
    """The lines and parts of a text, with the signs of each part, and its quoted blocks."""

    def __init__(self, text: str) -> None:
        self.text, lines = text, _lines(text)
        self._languages = _languages(text, lines)
        if len(lines) == 1:
            lines = [*_sentences(lines[0])]
        between = lines[_MOST:-_END]
        self.lines = lines[:_MOST] + lines[-_END:] if between else lines
        self.blocks = [(between[0].start, between[-1].end)] if between else []
        self._heads = dict[int, bool]()  # where lines begin that ask for work behind a colon, and if it ends them
        self._marked = self._mark()
        beside = [(a.start, b.start) for a, b in pairwise(self.lines)] if self._marked else []
        self._beside = {b for a, b in beside if a in self._marked}, {a for a, b in beside if b in self._marked}
        self.parts = self._divide()
        alone = len(self.parts) < 2 and not self._marked
        self.signs = [] if alone else [*self._find_signs([self._find_forms(part) for part in self.parts])]
        self.blocks += [(part[0].start, part[-1].end) for part in self._quoted_parts()]

    def _mark(self) -> set[int]:
        """Quote the lines that have marks which no speaker makes; return where these begin."""
        marked, fence, machine = labelled_lines(self.lines), "", False
        for at, line in enumerate(self.lines):
            machine = machine and not line.first
            raw = self.text[line.start : min(line.end, line.start + _LINE)]
            if (mark := FENCE.match(line.said)) or fence:
                marked.add(at)
                fence = fence if not mark else "" if mark[1] == fence else fence or mark[1]
                continue
            machine = MACHINE.match(raw) is not None or (machine and self._goes_on(at))
            if machine or raw.lstrip().startswith((">", "|")) or NOTICE.match(raw):
                marked.add(at)
            elif at not in marked:
                self._quote_behind_colon(line)
        others = stamped_lines(self.lines) | mail_lines(self.lines)  # parts, too: a quotation may go on below them
        self.blocks += [(self.lines[at].start, self.lines[at].end) for at in marked | others]
        return {self.lines[at].start for at in marked}

    def _goes_on(self, at: int) -> bool:
        """Return whether a machine's output goes on in line *at*: nobody begins one like it, or output is below it."""
        line, below = self.lines[at], takewhile(lambda line: not line.first, self.lines[at + 1 : at + _FIRST])
        return not line.said[:1].isalnum() or any(
            MACHINE.match(self.text[line.start : line.start + _LINE]) for line in below
        )

    def _quote_behind_colon(self, line: Line) -> None:
        """Quote what stands behind a colon of *line*, if it asks for work on it, or says that someone wrote it."""
        for colon, _ in zip(_COLON.finditer(line.said), range(_COLONS), strict=False):
            behind = line.said[colon.end() :].strip()
            head = _SENTENCE.split(line.said[max(0, colon.start() - _LINE) : colon.start()])[-1]
            asks = any(self._says(key, head) for key in _WORK)
            if self._says("except", head) or not (asks or self._says("says", head)):
                continue
            if asks:
                self._heads[line.start] = not behind
            if not behind:
                continue
            start, end = line.start + colon.end(), line.end
            if closing := _CLOSING.get(behind[0]):
                opened = self.text.index(behind[0], start) + 1
                closed = closing.search(self.text, opened, opened + _LONGEST)
                end = closed.end() if closed else end
            elif _ASKED.search(behind) and not _SENTENCE.search(behind):
                return
            self.blocks.append((start, end))
            return

    def _divide(self) -> list[list[Line]]:
        """Return the parts that have no marks: paragraphs, and lines that stand out; those in the middle are joined."""
        begins, ending = {0, 1, len(self.lines) - 1} & set(range(len(self.lines))), len(self.lines) - _TURNS
        for at, (above, line) in enumerate(pairwise(self.lines), 1):
            ends = _ENDED.search(above.said[-_LINE:].rstrip()) or len(above.said) * 2 < len(line.said)
            borders = (above.start in self._marked) != (line.start in self._marked)
            asked = self._heads.get(above.start) or borders
            if line.first or (above.first and ends) or asked or (at >= ending and self._turns(above, line)):
                begins.add(at)
        parts = [self.lines[at:end] for at, end in pairwise([*sorted(begins), len(self.lines)])]
        parts = [part for part in parts if part[0].start not in self._marked]
        between = [line for part in parts[_EDGE:-_EDGE] for line in part]
        return [*parts[:_EDGE], between, *parts[-_EDGE:]] if between else parts

    def _turns(self, above: Line, line: Line) -> bool:
        """Return whether *line* is typed otherwise than the one above, and does not go on with its sentence."""
        ended, ends = (_ENDED.search(each.said[-_LINE:].rstrip()) is not None for each in (above, line))
        small, smaller = (self.text[each.start : each.start + _LINE].lstrip()[:1].islower() for each in (above, line))
        whole = ended and smaller and not small
        return whole or (len(above.said) <= SHORT and (ended != ends or small != smaller))

    def _quoted_parts(self) -> Iterator[Sequence[Line]]:
        """Yield the quoted parts: those of the likeliest way from the first part to the last, own or quoted in turn."""
        own, quoted, ways, to_assistant = 0.0, -inf, list[tuple[bool, bool]](), self._count_to_assistant()
        for at, (alone, between) in enumerate(self.signs):
            opened, closed = own + _weigh("opens", between), quoted + _weigh("closes", between)
            ways.append((closed > own, quoted >= opened))
            own = -inf if between >= _PROOFREAD and "above above marks" not in between else max(own, closed)
            quoted = max(quoted, opened) + _weigh("quoted", alone) if at >= to_assistant else -inf
        is_quoted = quoted > own
        for part, way in zip(reversed(self.parts), reversed(ways), strict=False):
            if is_quoted:
                yield part
            is_quoted = way[is_quoted]

    def _count_to_assistant(self) -> int:
        """Return how many parts speak to the assistant: what asks for work on a text below, and how to answer above."""
        for at, (part, (alone, _)) in enumerate(zip(self.parts[:2], self.signs, strict=False)):
            if part[-1].start in self._heads:
                return at + self._heads[part[-1].start]
            if not alone & {"manner", "order", "voice"}:
                break
        return 0

    def _find_signs(self, forms: Sequence[frozenset[str]]) -> Iterator[tuple[set[str], set[str]]]:
        """Yield the signs of each part with *forms*: that it is quoted, and that one begins or ends at its border."""
        last, asks = len(forms) - 1, [at for at, each in enumerate(forms) if each & _ASKING and "long" not in each]
        for at, alone in enumerate(forms):
            asked = {f"asked {'above' if e < at else 'last' if e == last else 'below'}" for e in asks if e != at}
            others = frozenset[str]().union(*forms[:at], *forms[at + 1 :])
            places = {place for place, is_there in (("first", 0), ("second", 1), ("last", last)) if at == is_there}
            if "unended" in alone and at < last and not self.parts[at + 1][0].first:
                places.add("titles")
            here, above = alone | places, forms[at - 1] if at else frozenset[str]()
            yield (
                {*here, *asked, *self._find_words(self.parts[at])}
                | {f"{each} elsewhere" for each in _ELSEWHERE & others}
                | {f"{each} {where}" for where in asked | places for each in here}
                | {f"{one} & {other}" for one, other in combinations(sorted(alone & _PAIRED), 2)},
                {*(f"above {each}" for each in above), *(f"below {each}" for each in here if at)}
                | {f"{one} > {other}" for one in _KINDS & above for other in _KINDS & here},
            )

    def _find_forms(self, part: Sequence[Line]) -> frozenset[str]:
        """Return the forms of a part: the persons, texts and orders of its words, how it begins, ends, and is long."""
        few = _ends(part)
        lines = [line.said[:_LINE].strip() for line in few]
        raw = "\n".join(self.text[line.start : min(line.end, line.start + _LINE)] for line in few)
        said, head = "\n".join(lines), lines[0]
        plain = _POLITE.sub("", said)
        wide, sentences = len(said) + 2 * len(WIDE.findall(said)), _SENTENCE.split(plain)
        orders = instructions(said, said) if wide <= _SPEECH else []
        greeted = _SALUTATION.match(head)
        says = {key for key in _KEYS if self._says(key, plain if key == "voice" else said)}
        forms: dict[str, object] = {
            **dict.fromkeys(says, True),
            "closing": any(self._begins("closing", line) for line in lines),
            "letter": self._begins("letter", head) or (greeted and self._begins("letter", greeted[0])),
            "greets": SMALL_TALK.match(said),
            "asks?": _ASKED.search(said),
            "question": "?" in said or "？" in said,
            "asked": _QUESTION.search(said),
            "colon": said.endswith((":", "：")),
            "tells": said.endswith((":", "：")) and "voice" in says and not says & set(_WORK),
            "order": orders,
            "manner": any(_MANNER.search(each) for each in orders),
            "short": wide <= SHORT,
            "middle": SHORT < wide <= 2 * SHORT,
            "long": wide > _SPEECH,
            "one sentence": len(sentences) == 1,
            "many sentences": len(sentences) > 3,
            "voices": "voice" in says and sum(self._says("voice", each) for each in sentences[:4]) > 1,
            "lines": len(lines) > 1,
            "unended": not _ENDED.search(said),
            "title": len(lines) > 1 and len(head) < 70 and not _ENDED.search(head),
            "signed": len(lines) > 1 and len(lines[-1]) <= 30 and not _ENDED.search(lines[-1]),
            "list": _ITEM.match(lines[-1]),
            "lower": raw.lstrip()[:1].islower(),
            "marks": self._marked,
            "below marks": part[0].start in self._beside[0],
            "above marks": part[-1].start in self._beside[1],
            "paragraph": part[0].first,
            "indented": raw.startswith(("  ", "\t")),
            "symbols": len(_SYMBOL.findall(raw)) * 25 > len(raw),
            **{form: typed.search(raw) for form, typed in _TYPED.items()},
        }
        return frozenset(form for form, holds in forms.items() if holds)

    def _find_words(self, part: Sequence[Line]) -> Iterator[str]:
        """Yield the words of a part as signs: of Chinese and Japanese text each two characters; of Korean, endings."""
        for word in {*_WORD.findall("\n".join(line.said[:_LINE] for line in _ends(part)))}:
            if word < "\u2e80":
                yield f"word {word}"
            elif "\uac00" <= word[0] <= "\ud7a3":
                yield from (f"word {word}", f"word {word[-2:]}")
            else:
                yield from (f"word {one}{other}" for one, other in pairwise(word))

    def _says(self, key: str, said: str) -> bool:
        """Return whether *said* has words of the table *key*, in one of the languages of the text."""
        return any(each.search(said) for each in _finders(key, self._languages))

    def _begins(self, key: str, said: str) -> bool:
        return any(each.match(said) for each in _finders(key, self._languages))


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    """Return the weights of signs, by role, as `tools/provenance.py` fitted them to labelled texts."""
    lines = files("memci").joinpath("_data", "provenance.tsv").read_text(encoding="utf-8").splitlines()
    (_, *roles), *rows = (line.split("\t") for line in lines)
    return {role: {row[0]: float(row[at]) for row in rows} for at, role in enumerate(roles, 1)}


def _weigh(role: str, forms: Set[str]) -> float:
    """Return how much *forms* speak for a role. They are summed exactly: a set has no order."""
    weights = _weights()[role]
    return fsum([weights[each] for each in weights.keys() & forms])


def _ends(part: Sequence[Line]) -> Sequence[Line]:
    """Return the lines of a part that are read: what is between has the same forms, or is too much to read."""
    return [*part[:4], *part[4:][-2:]]


def _languages(text: str, lines: Sequence[Line]) -> tuple[Writing, ...]:
    """Return the languages of a text: a request before or behind it may be in another one, or in no certain one."""
    ends = (line.said[:_LINE] for line in [*lines[:1], *lines[1:][-1:]])
    return tuple(sorted({*languages(text), *(one for said in ends for one in languages(said, LATIN))}))


@cache
def _finders(key: str, languages: tuple[Writing, ...]) -> Sequence[re.Pattern[str]]:
    return [finder("provenance", key, languages=(each,)) for each in languages]
