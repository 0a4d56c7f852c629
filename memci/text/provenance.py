"""Provenance: whose words the parts of a text are.

    Always answer in Danish. Translate this:      the user's own
    Never open the hatch.                         quoted: a request to work on a text owns what stands below it

    And call me Juno from now on.                 the user's own: this paragraph speaks to the assistant again

A request to work on a text (translate, summarise, explain, check, "is this real?", "which song is this?") owns what
stands behind its colon or below its line, until a paragraph speaks to the assistant again; where nothing is below, it
owns what stands above. A line that ends with a colon owns what is below, unless it gives rules, wishes or facts ("Two
things:"); so does a question about "this". Marks that no speaker makes are quoted: quotation marks, ">", fences, lines
of logs and code, headers of mails, headings, runs of speakers' labels, salutations of letters. So is what stands behind
"X wrote:".

What is found here is derived from the text at each use, and never stored. What a format declares of its blocks comes
first (`memci.formats.provenance`).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from .language.patterns import pattern
from .language.sentences import lower_case, simplify, writing

VERSION = 1
"""of the rules: what was derived by another version is derived again"""
_LINE = 300
"""characters of the beginning or the end of a line that are read; requests are shorter"""
_FIRST = 12
"""characters at the beginning of a line that tells of its speaker, with a word for that ("My car …")"""
_COLONS = 4
"""colons of a line behind which a quotation may begin; prose has fewer"""
_LONGEST = 20_000
"""characters of a quotation of several lines, a bound on the search for its end"""
_SPEECH = 240
"""characters of a paragraph that speaks to the assistant below a quoted text; longer ones belong to the text"""


class Origin(StrEnum):
    """Whose words a text is."""

    OWN = "own"
    """the user's own"""
    QUOTED = "quoted"
    """quoted or pasted by the user"""
    DOCUMENT = "document"
    TOOL = "tool"
    ASSISTANT = "assistant"
    DERIVED = "derived"
    """made of other messages"""


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
            inner = _QUOTATION.fullmatch(said)
            said = said[0] + "_" * (len(said) - 2) + said[-1] if inner else _NO_BREAK.sub(" ", said)
        parts.append(said)
    return "".join(parts)


def mask_quotations(text: str) -> str:
    """Return *text* with "_" within its quotation marks: a mask that is quick, and leaves blocks. O(characters)."""
    return _QUOTATION.sub(lambda each: f"{each[0][0]}{'_' * (len(each[0]) - 2)}{each[0][-1]}", text)


_QUOTATION = re.compile(
    r"\"[^\"\n]*\"|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|「[^「」\n]*」|『[^『』\n]*』|《[^《》\n]*》"
    r"|(?<!\w)'[^'\n]{3,}'(?!\w)|`[^`\n]*`"
)
_NO_BREAK = re.compile(r"[^\n]")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_MACHINE = re.compile(
    r"\s*(?:>>> |\$ |[\[(]?\d{1,4}[-./:]\d\d?[-./:]\d\d|\[?\d\d?:\d\d(?::\d\d)?[\])]? +(?:\[|[A-Z]{3,}\b|-)"
    r"|\W{0,2}(?:ERROR|WARN|WARNING|INFO|DEBUG|FATAL|TRACE|CRITICAL|NOTICE)\b\W|Traceback |at \w[\w.$]*\(|File \""
    r"|(?:import|from) [\w.]+(?:;| import .*)?$|(?:def|class|function|async|func|fn) \w+[^.]*[:{(]\s*$"
    r"|(?:const|let|var) \w+ =|#include|public |private |SELECT .* FROM |@@ |diff --git|[+-]{3} [ab]/"
    r"|\[[\w.\- ]+\]$|[\w.\-]+ ?=(?!=)\s*\S|</?\w+[^<>]*>|[{}()\[\]]+[;,]?$|\"[\w \-]+\"\s*:)|[^.!?]{0,200}[{;]$"
)
_HEADING = re.compile(r"#{1,6} \S|={4,}$|-{4,}")
_LABEL = re.compile(r"[-*\s]{0,4}([^\W\d_][^:：\n.!?。！？]{0,30})[:：]\s*\S")
_OPENING = {'"': '"', "“": "”", "„": "“", "«": "»", "「": "」", "『": "』"}
_SENTENCE = re.compile(r"[.!?。！？]\s*(?=\S)")
_ASKED = re.compile(r"[?？][\s)”\"'»]*$")


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
    said: str
    """as patterns expect it"""
    first: bool
    """whether it begins a paragraph"""


def _quoted_blocks(text: str) -> list[tuple[int, int]]:
    """Return where the quoted blocks of *text* begin and end, in order."""
    return _Walk(text).blocks if "\n" in text or ":" in text or "：" in text else []


def _lines(text: str) -> list[_Line]:
    """Return the lines of *text* that are not blank."""
    prepared = lower_case(text.replace("’", "'"))
    prepared = simplify(prepared) if writing(text) == "han" else prepared
    found, start, first = [], 0, True
    for line in prepared.split("\n"):
        if line.strip():
            found.append(_Line(start, start + len(line), line, first))
        first = not line.strip()
        start += len(line) + 1
    return found


class _Walk:
    """One walk over the lines of a text, which finds its quoted blocks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = _lines(text)
        self.blocks: list[tuple[int, int]] = []
        self._labelled = _labelled_lines(self.lines)
        self._voiced = False
        """whether the quoted block above speaks in the first person, or says please"""
        self._held = False
        """whether the block that is open has lines"""
        owned = letter = False
        fence = ""
        own: list[_Line] = []
        for at, line in enumerate(self.lines):
            mark = _FENCE.match(line.said)
            if fence or mark:
                self._quote(line)
                if mark:
                    fence = "" if mark[1] == fence else fence or mark[1]
                    owned = owned and bool(fence)
                continue
            raw = text[line.start : line.start + _LINE]
            if raw.lstrip().startswith((">", "|")) or (not owned and _MACHINE.match(raw)):
                self._quote(line)
                continue
            if owned and not (line.first and self._held and self._speaks(at, letter=letter)):
                self._quote(line)
                letter = letter and (len(line.said) > _SPEECH or _says("closing").match(line.said) is None)
                continue
            owned = letter = False
            if self._begins_letter(at):
                owned = letter = True
            elif _HEADING.match(raw) or self._begins_mail(at):
                owned = True
            if owned or at in self._labelled:
                self._quote(line)
                continue
            own.append(line)
            self._voiced = self._held = False
            owned = self._request(at)
        self._own_above(own)

    def _quote(self, line: _Line) -> None:
        self.blocks.append((line.start, line.end))
        self._held = True
        self._voiced = self._voiced or _says("voice").search(line.said[:_LINE]) is not None

    def _request(self, at: int) -> bool:
        """Return whether *line* owns the lines below; quote what stands behind its colon."""
        line = self.lines[at]
        for colon, _ in zip(re.finditer("[:：](?!//)", line.said), range(_COLONS), strict=False):
            behind = line.said[colon.end() :].strip()
            head = _last_sentence(line.said[max(0, colon.start() - _LINE) : colon.start()])
            if not behind or not (_asks_for_work(head) or _says("says").search(head)):
                continue
            start = line.start + colon.end()
            if closing := _OPENING.get(behind[0]):
                opened = self.text.index(behind[0], start) + 1
                end = self.text.find(closing, opened, opened + _LONGEST)
                if end >= 0:
                    self.blocks.append((start, end + 1))
                    return False
            if _ASKED.search(behind) and not _SENTENCE.search(behind):
                return False
            self._quote(line._replace(start=start, said=line.said[colon.end() :]))
            return True
        below = at + 1 < len(self.lines)
        tail = line.said.rstrip()[-_LINE:]
        return below and (_asks_for_work(tail) or self._points_down(at, tail))

    def _points_down(self, at: int, tail: str) -> bool:
        """Return whether the end of line *at* points at what stands below: a colon, or a question about "this"."""
        if tail.endswith((":", "：")):
            return _says("says").search(tail[:-1]) is not None or _says("gives").search(tail) is None
        asked = _last_sentence(tail)
        if not _ASKED.search(asked) or not (_says("here").search(asked) or len(asked.split()) == 1 < len(asked)):
            return False
        return _says("voice").search(self.lines[at + 1].said[:_FIRST]) is None

    def _speaks(self, at: int, *, letter: bool) -> bool:
        """Return whether the paragraph that begins with line *at* speaks to the assistant."""
        line = self.lines[at]
        end = next((n for n in range(at + 1, min(at + 5, len(self.lines))) if self.lines[n].first), len(self.lines))
        last = end == len(self.lines)
        size = self.lines[end - 1].end - line.start
        if size > _SPEECH:
            return False
        said = "\n".join(each.said for each in self.lines[at:end])
        if _says("speaks").search(said) or _says("above").search(said):
            return True
        if letter:
            return False
        if not last:
            return (
                line.end - line.start < _SPEECH
                and end == at + 1
                and said.endswith((":", "："))
                and _asks_for_work(said)
            )
        return _ASKED.search(said) is not None or (not self._voiced and _says("voice").search(said) is not None)

    def _own_above(self, own: Sequence[_Line]) -> None:
        """Quote the *own* lines above the last paragraph, if it asks for work on them."""
        if not own:
            return
        last = self.lines[-1]
        head = next(n for n in range(len(self.lines) - 1, -1, -1) if self.lines[n].first or n == 0)
        asking = [line for line in own if line.start >= self.lines[head].start]
        if not asking or asking[-1] is not last:
            return
        said = " ".join(line.said[:_LINE] for line in asking[:4])
        asked = _ASKED.search(said) or _says("speaks").search(said)
        if _says("above").search(said) or (asked and _asks_for_work(said) and _says("this").search(said)):
            above = [line for line in own if line.start < self.lines[head].start]
            if not any(
                _asks_for_work(line.said[-_LINE:]) or _says("speaks").search(line.said[:_LINE]) for line in above
            ):
                self.blocks += [(line.start, line.end) for line in above]

    def _begins_letter(self, at: int) -> bool:
        line = self.lines[at]
        return at + 1 < len(self.lines) and len(line.said) < 80 and _says("letter").match(line.said) is not None

    def _begins_mail(self, at: int) -> bool:
        header = _says("header")
        return header.match(self.lines[at].said) is not None and any(
            header.match(line.said) for line in self.lines[at + 1 : at + 2]
        )


def _labelled_lines(lines: Sequence[_Line]) -> set[int]:
    """Return the numbers of the lines of dialogues: three labels or more in a row, of which one comes again."""
    found: set[int] = set()
    run: dict[int, str] = {}
    for at in range(len(lines) + 1):
        label = _LABEL.match(lines[at].said) if at < len(lines) else None
        if label:
            run[at] = label[1].strip()
            continue
        if len(run) > 2 and len(set(run.values())) < len(run):
            found.update(run)
        run = {}
    return found


def _last_sentence(said: str) -> str:
    ends = [each.end() for each in _SENTENCE.finditer(said)]
    return said[ends[-1] :] if ends else said


def _asks_for_work(said: str) -> bool:
    return _says("request").search(said) is not None and _says("except").search(said) is None


@cache
def _says(key: str) -> re.Pattern[str]:
    return pattern("provenance", key)
