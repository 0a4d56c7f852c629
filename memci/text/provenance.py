"""Provenance: whose words the parts of a text are.

    Always answer in Danish. Translate this:      the user's own
    Never open the hatch.                         quoted: a request to work on a text owns what stands below it

    And call me Juno from now on.                 the user's own: this paragraph speaks to the assistant again

Marks that no speaker makes are quoted: quotation marks, ">", fences, lines of logs and code, runs of speakers' labels;
so is what stands behind "X wrote:". Of the rest, a run of paragraphs is quoted, or none: whatever fits the forms of
the text best. Forms are the persons of a paragraph and of its neighbours, its length beside theirs, its language,
whether it asks, greets, signs, tells how to answer, or speaks of a text. Each has a weight for each role (own, quoted,
above, below), fitted to labelled texts (`tools/provenance.py`). What is unsure counts as quoted: a wrong order that
stands costs more than one that is missed, and a search finds both.

What is found here is derived from the text, and never stored. What a format declares of its blocks comes
first (`memci.formats.provenance`).
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import pairwise, takewhile
from math import fsum
from typing import NamedTuple, TypeVar

from .language.instructions import instructions
from .language.patterns import LATIN, WIDE, Writing, alternatives, finder, pattern
from .language.sentences import SMALL_TALK, languages, lower_case, simplify, writing

_LINE = 300  # characters of the beginning or the end of a line that are read; requests are shorter
_COLONS = 4  # colons of a line behind which a quotation may begin; prose has fewer
_LONGEST = 20_000  # characters of a quotation of several lines, a bound on the search for its end
_MOST = 400  # lines at the beginning that are judged; what stands between them and the end of a longer text is quoted
_END = 40  # lines at the end of a longer text
_FIRST = 8  # lines of a text that are asked whether someone speaks in it
_EDGE = 4  # parts at the beginning, or the end, at which a quoted run may begin, or end
_SPEECH = 240  # columns of a part that may speak to the assistant; a wide character has three
_WORK = ("request", "asks", "brings", "makes")  # tables of words that ask for work on a text
_SPEECHES = ("voice", "speaks", *_WORK)
_PERSONS = ("voice", "they", "you")
_KEYS = (*_WORK, *_PERSONS, "judges", "affair", "this", "here", "says", "speaks", "above", "gives", "except")
_ALIKE = (*_PERSONS, "lower")  # forms that one hand keeps: who speaks, and small letters at the beginning
_Of = TypeVar("_Of")


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
    others = list(others)
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
    r"|'(?<!\w')[^'\n]{3,}'(?!\w)|`[^`\n]*`"
)
_NO_BREAK = re.compile(r"[^\n]")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_MACHINE = re.compile(
    r"\s*(?:>>> |\$ |// |[\[(]?\d{1,4}[-./:]\d\d?[-./:]\d\d|\[?\d\d?:\d\d(?::\d\d)?[\])]? +(?:\[|[A-Z]{3,}\b|-)"
    r"|\[\d\d?:\d\d(?::\d\d)?\]"
    r"|\W{0,2}(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL|NOTICE)\b\W|Traceback "
    r"|\w*(?:Error|Exception)(?: \[\w+\])?: |npm ERR|at \w[\w.$]* ?\(|File \""
    r"|(?:import|from) [\w.]+(?:;| import .*)?$|(?:def|class|function|async|func|fn) \w+[^.]*[:{(]\s*$"
    r"|(?:const|let|var) \w+ =|#include|public |private |SELECT .* FROM |@@ |diff --git|[+-]{3} [ab]/"
    r"|\[[\w.\- ]+\]$|[\w.\-]+ ?=(?!=)\s*\S|</?\w+[^<>]*>|[{}()\[\]]+[;,]?$|\"[\w \-]+\"\s*:)|[^.!?]{0,200}[{;]$"
)
_NOTICE = re.compile(r"\s*(?:【[^】\n]{1,20}】|\[[가-힣]{1,10}\]|(?:温馨提示|通知|公告|お知らせ|안내|공지)\s*[:：])")
_HEADING = re.compile(r"#{1,6} \S|={4,}$|-{4,}")
_QUESTION = pattern("instructions", "question")
_MANNER = pattern("instructions", "manner")
_POLITE = re.compile(r"\b(?:please|pls|bitte|merci|por favor|per favore|пожалуйста|s'il (?:te|vous) pla[iî]t)\b")
"""what notices and mails say, too"""
_COLON = re.compile("[:：](?!//)")
_SALUTATION = re.compile(r"[^,，:：!！.?。\n]{2,60}[,，:：!！]")
_LABEL = re.compile(r"[-*\s]{0,4}([^\W\d_][^:：\n.!?。！？]{0,30})[:：]\s*\S")
_CLOSING = {
    mark: re.compile(f"[{ends}]") for mark, ends in zip('"“„«「『', ('"', '”"', '“”"', "»", "」", "』"), strict=True)
}
_SENTENCE = re.compile(r"[.!?。！？]\s*(?=\S)")
_ENDED = re.compile(r"[.!?。！？:：…,，、][)\"'”»」』]*$")
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


class _Line(NamedTuple):
    start: int
    end: int
    said: str  # as patterns expect it
    first: bool  # whether it begins a paragraph


def _quoted_blocks(text: str) -> list[tuple[int, int]]:
    """Return where the quoted blocks of *text* begin and end, in order. O(characters), once for the last texts."""
    if "\n" not in text and ":" not in text and "：" not in text:
        return []
    key = blake2b(text.encode(errors="surrogatepass"), digest_size=16, key=_KEY).digest()
    found = _BLOCKS.pop(key, None)
    found = _BLOCKS[key] = list(joined(Paragraphs(text).blocks)) if found is None else found
    for oldest in list(_BLOCKS)[:-_KEPT]:
        _BLOCKS.pop(oldest, None)
    return found


_KEPT = 512  # texts whose blocks are kept: more messages than the results of the last searches have
_KEY = os.urandom(16)
_BLOCKS: dict[bytes, list[tuple[int, int]]] = {}
"""by the digest of their text, with a key of this process: neither a text is kept nor what tells one that is known"""


def _lines(text: str) -> list[_Line]:
    """Return the lines of *text* that are not blank."""
    prepared = lower_case(text.replace("’", "'"))
    prepared = simplify(prepared) if writing(text) == "han" else prepared
    found, start, first = [], 0, True
    for line in prepared.split("\n"):
        if said := line.strip():
            found.append(_Line(start, start + len(line), line, first))
        first = not said
        start += len(line) + 1
    return found


class Paragraphs:
    """The lines and paragraphs of a text, and its quoted blocks."""

    def __init__(self, text: str) -> None:
        self.text, lines = text, _lines(text)
        self._languages = _languages(text, lines)
        between = lines[_MOST:-_END]
        self.lines = lines[:_MOST] + lines[-_END:] if between else lines
        self.blocks = [(between[0].start, between[-1].end)] if between else []
        self._marked = self._mark()
        self.marks = list(self.blocks)  # what is quoted in any way
        ends = {0, 1, len(self.lines) - 1} & set(range(len(self.lines)))
        begins = sorted(ends | {at for at, line in enumerate(self.lines) if line.first})
        self.parts = [self.lines[at:end] for at, end in pairwise([*begins, len(self.lines)])]
        self._forms = cache(self._find_forms)
        self._weights = cache(lambda role, forms: fsum(filter(None, map(_weights().get(role, {}).get, forms))))
        self._spoken = cache(lambda at: set(languages(self._said(at))))
        first = last = 0
        if len(self.parts) > 1:
            first, last = max(self.ways(), key=lambda way: fsum(self._weights(*each) for each in self.roles(*way)))
        self.blocks += [(part[0].start, part[-1].end) for part in self.parts[first:last]]

    def _mark(self) -> set[int]:
        """Quote the lines that have marks which no speaker makes; return where these begin."""
        marked, fence, machine = _labelled_lines(self.lines), "", False
        for at, line in enumerate(self.lines):
            machine = machine and not line.first
            raw = self.text[line.start : min(line.end, line.start + _LINE)]
            if (mark := _FENCE.match(line.said)) or fence:
                marked.add(at)
                fence = fence if not mark else "" if mark[1] == fence else fence or mark[1]
                continue
            machine = _MACHINE.match(raw) is not None or (machine and self._goes_on(at))
            if machine or raw.lstrip().startswith((">", "|")) or _NOTICE.match(raw):
                marked.add(at)
            elif at not in marked:
                self._quote_behind_colon(line)
        self.blocks += [(self.lines[at].start, self.lines[at].end) for at in marked]
        return {self.lines[at].start for at in marked}

    def _goes_on(self, at: int) -> bool:
        """Return whether a machine's output goes on in line *at*: nobody speaks or asks in it, or in one below it."""
        return any(
            not (_ASKED.search(line.said[:_LINE]) or any(self._says(key, line.said[:_LINE]) for key in _SPEECHES))
            or _MACHINE.match(self.text[line.start : line.start + _LINE])
            for line in (self.lines[at], *takewhile(lambda line: not line.first, self.lines[at + 1 : at + _FIRST]))
        )

    def _quote_behind_colon(self, line: _Line) -> None:
        """Quote what stands behind a colon of *line*, if it asks for work on it, or says that someone wrote it."""
        for colon, _ in zip(_COLON.finditer(line.said), range(_COLONS), strict=False):
            behind = line.said[colon.end() :].strip()
            head = _last_sentence(line.said[max(0, colon.start() - _LINE) : colon.start()])
            if not behind or self._says("except", head) or not any(self._says(key, head) for key in (*_WORK, "says")):
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

    def ways(self) -> list[tuple[int, int]]:
        """Return the ways to quote none of the parts, or a run: from one of the first to one of the last."""
        count = len(self.parts)
        begins, ends = range(min(_EDGE, count)), range(max(1, count - _EDGE + 1), count + 1)
        runs = [(first, last) for first in begins for last in ends if first < last]
        return [(0, 0), *runs] if count > 1 else [(0, 0)]

    def roles(self, first: int, last: int) -> Iterator[tuple[str, frozenset[str]]]:
        """Yield the roles that parts have if those from *first* to *last* are quoted, each with its forms."""
        count = len(self.parts)
        within = [self._forms(at) for at in _few(range(first, last) if first < last else range(count))]
        some = frozenset[str]().union(*within)
        if first == last:
            yield "own", some | {"all", f"of {min(count, 6)}"}
            yield "own first", within[0]
            yield "own last", within[-1] | _beside(within[-1], frozenset[str]().union(*within[:-1]))
            return
        yield "quoted", some | {f"of {min(last - first, 5)}", f"from {first}", f"to {last - count}"}
        yield "quoted first", within[0]
        yield "quoted last", within[-1]
        for role, at in (("above", first - 1), ("below", last)):
            if not 0 <= at < count:
                yield role, frozenset({"none"})
                continue
            own = self._forms(at)
            yield role, own | _beside(own, some)
            if self._width(self.parts[first:last]) > 2 * self._width(self.parts[at : at + 1]):
                yield role, frozenset({"shorter"})
            if len(self._languages) > 1 and not self._spoken(at).intersection(self._spoken(first)):
                yield role, frozenset({"foreign"})
            if at == last and first == 0:
                yield "below alone", own
        if first > 1:
            yield "further above", self._forms(0)

    def _said(self, at: int) -> str:
        return "\n".join(line.said[:_LINE].strip() for line in _few(self.parts[at]))

    @staticmethod
    def _width(parts: Sequence[Sequence[_Line]]) -> int:
        return sum(part[-1].end - part[0].start for part in parts)

    def _find_forms(self, at: int) -> frozenset[str]:
        """Return the forms of a part: the persons, texts and orders of its words, how it begins, ends, and is long."""
        part, said = self.parts[at], self._said(at)
        lines = said.split("\n")
        head, last = lines[0], _last_sentence(lines[-1])
        plain = _POLITE.sub("", said)
        wide, sentences = len(said) + 2 * len(WIDE.findall(said)), _SENTENCE.split(plain)
        orders = instructions(said, said) if wide <= _SPEECH else []
        greeted = _SALUTATION.match(head)
        says = {key for key in _KEYS if self._says(key, plain if key == "voice" else said)}
        forms: dict[str, object] = {
            **dict.fromkeys(says, True),
            **{f"end {key}": self._says(key, last) for key in says if wide <= _SPEECH and last != said},
            **{key: any(self._begins(key, line) for line in lines) for key in ("closing", "header")},
            "goes": self._begins("goes", head),
            "letter": self._begins("letter", head) or (greeted and self._begins("letter", greeted[0])),
            "greets": SMALL_TALK.match(said),
            "asks?": _ASKED.search(said),
            "question": "?" in said or "？" in said,
            "asked": _QUESTION.search(said),
            "exclaims": "!" in said or "！" in said,
            "colon": said.endswith((":", "：")),
            "order": orders,
            "manner": any(_MANNER.search(each) for each in orders),
            "short": wide <= 60,
            "middle": 60 < wide <= 120,
            "long": wide > _SPEECH,
            "one sentence": len(sentences) == 1,
            "many sentences": len(sentences) > 3,
            "voices": sum(self._says("voice", each) for each in sentences[:6]) > 1,
            "lines": len(lines) > 1,
            "unended": not _ENDED.search(said),
            "title": len(lines) > 1 and len(head) < 70 and not _ENDED.search(head),
            "signed": len(lines) > 1 and len(lines[-1]) <= 30 and not _ENDED.search(lines[-1]),
            "heading": _HEADING.match(head),
            "list": _ITEM.match(lines[-1]),
            "lower": self.text[part[0].start : part[-1].end].lstrip()[:1].islower(),
            "digits": sum(map(str.isdigit, said[:200])) * 20 > len(said[:200]),
            "addressed": says >= {"voice", "you"},
            "titles": at + 1 < len(self.parts) and not self.parts[at + 1][0].first and not _ENDED.search(said),
            "last list": len(lines) > 2 and sum(len(line) for line in lines) < 50 * len(lines),
            "marked": any(line.start in self._marked for line in part),
            "all marked": all(line.start in self._marked for line in part),
            "paragraph": part[0].first,
        }
        return frozenset(form for form, holds in forms.items() if holds)

    def _says(self, key: str, said: str) -> bool:
        """Return whether *said* has words of the table *key*, in one of the languages of the text."""
        return any(each.search(said) for each in _finders(key, self._languages))

    def _begins(self, key: str, said: str) -> bool:
        return any(each.match(said) for each in _finders(key, self._languages))


@cache
def _weights() -> Mapping[str, Mapping[str, float]]:
    """Return the weights of forms, by role, as `tools/provenance.py` fitted them to labelled texts."""
    read = files("memci").joinpath("_data", "provenance.toml").read_text(encoding="utf-8")
    return tomllib.loads(read)


def _beside(own: frozenset[str], some: frozenset[str]) -> frozenset[str]:
    """Return how the persons and the writing of a part agree with those of the parts beside it."""
    told = {form: "too" if form in some else "alone" for form in own} | dict.fromkeys(some - own, "quoted")
    return frozenset(f"{form} {told[form]}" for form in _ALIKE if form in told)


def _few(all_of: Sequence[_Of]) -> list[_Of]:
    """Return the first and the last of *all_of*: what is between has the same forms, or is too much to read."""
    return [*all_of[:4], *all_of[4:][-2:]]


def _labelled_lines(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of the lines of dialogues: three labels or more, one of them again, and what is between.

    A paragraph that begins without a label ends one.
    """
    found: set[int] = set()
    run: dict[int, str] = {}
    for at in range(len(lines) + 1) if len(lines) > 2 else ():
        label = _LABEL.match(lines[at].said) if at < len(lines) else None
        if label:
            run[at] = label[1].strip()
        elif at == len(lines) or lines[at].first:
            if len(run) > 2 and len(set(run.values())) < len(run):
                found.update(range(min(run), max(run) + 1))
            run = {}
    return found


def _last_sentence(said: str) -> str:
    return _SENTENCE.split(said)[-1]


def _languages(text: str, lines: Sequence[_Line]) -> tuple[Writing, ...]:
    """Return the languages of a text: a request before or behind it may be in another one, or in no certain one."""
    ends = (line.said[:_LINE] for line in [*lines[:1], *lines[1:][-1:]])
    return tuple(sorted({*languages(text), *(one for said in ends for one in languages(said, LATIN))}))


@cache
def _finders(key: str, languages: tuple[Writing, ...]) -> Sequence[re.Pattern[str]]:
    return [finder("provenance", key, languages=(each,)) for each in languages]
