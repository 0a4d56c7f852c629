"""Provenance: whose words the parts of a text are.

    Always answer in Danish. Translate this:      the user's own
    Never open the hatch.                         quoted: a request to work on a text owns what stands below it

    And call me Juno from now on.                 the user's own: this paragraph speaks to the assistant again

A request to work on a text (translate, summarise, explain, check), and a short line that says how a text is or should
be or asks who wrote it ("too harsh?", "shorter, please", "what does the narrator hide?"), owns what stands behind its
colon or below its line, until a paragraph speaks to the assistant again; where nothing is below, it owns what stands
above, up to the next text. Other questions about "this" or "her" own a text that is not told in the first person, as
the story behind a question is, or that says "you" to someone. A line that ends with a colon owns what is below, unless
it gives rules, wishes or facts ("Two things:"). A short line owns a text below in which nobody speaks, a last line that
speaks owns one above, and a pasted text without a request has it in its last line, if that asks. Marks that no speaker
makes are quoted: quotation marks, ">", fences, lines of logs and code, headers of mails, headings, runs of speakers'
labels, letters. So is what stands behind "X wrote:".

What is found here is derived from the text, and never stored. What a format declares of its blocks comes
first (`memci.formats.provenance`).
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from hashlib import blake2b
from itertools import takewhile
from typing import NamedTuple

from .language.instructions import instructions
from .language.patterns import LATIN, WIDE, Writing, alternatives, finder, pattern
from .language.sentences import SMALL_TALK, greets, languages, lower_case, simplify, writing

_LINE = 300  # characters of the beginning or the end of a line that are read; requests are shorter
_COLONS = 4  # colons of a line behind which a quotation may begin; prose has fewer
_LONGEST = 20_000  # characters of a quotation of several lines, a bound on the search for its end
_MOST = 400  # lines at the beginning that are judged; what stands between them and the end of a longer text is quoted
_END = 40  # lines at the end of a longer text
_ASKED_OF = 12_000
"""characters of the user's own lines that are searched for requests: with the lines, a bound on the time"""
_FIRST = 8  # lines of a text that are asked whether someone speaks in it
_PER_LINE = 60  # characters that a line counts besides its own: what is the same for each line takes as long as they do
_REQUEST = 100  # characters of a line that may be a request in words that no table has
_TEXT = 60  # columns of lines from which they may be a text that is handed over; a wide character has three
_SPEECH = 240
"""characters of a paragraph that speaks to the assistant below a quoted text; longer ones belong to the text"""


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
    r"\s*(?:>>> |\$ |[\[(]?\d{1,4}[-./:]\d\d?[-./:]\d\d|\[?\d\d?:\d\d(?::\d\d)?[\])]? +(?:\[|[A-Z]{3,}\b|-)"
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
    found = _BLOCKS[key] = list(joined(_Walk(text).blocks)) if found is None else found
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


class _Walk:
    """One walk over the lines of a text, which finds its quoted blocks."""

    def __init__(self, text: str) -> None:
        self.text, lines = text, _lines(text)
        self._languages = _languages(text, lines)
        self._says = cache(self._search)  # several rules ask it of the same line
        between = lines[_MOST:-_END]
        self.lines = lines[:_MOST] + lines[-_END:] if between else lines
        self.blocks = [(between[0].start, between[-1].end)] if between else []
        self._labelled = _labelled_lines(self.lines)
        # whether the quoted block above speaks in the first person or says please, and whether the open one has lines
        self._voiced = self._held = False
        owned = letter = closed = machine = False
        fence, left = "", _ASKED_OF
        own: list[_Line] = []
        prompt = _HEADING.match(text) is not None and self._begins("heads", self.lines[0].said)
        for at, line in enumerate(self.lines):
            machine = machine and not line.first
            owned = owned or (at == _MOST and bool(between))
            mark = _FENCE.match(line.said)
            if fence or mark:
                self._quote(line)
                if mark:
                    fence = "" if mark[1] == fence else fence or mark[1]
                    owned = owned and bool(fence)
                continue
            raw = text[line.start : min(line.end, line.start + _LINE)]
            machine = not owned and (_MACHINE.match(raw) is not None or (machine and self._goes_on(at)))
            if machine or raw.lstrip().startswith((">", "|")):
                self._quote(line)
                continue
            if owned and not (line.first and self._held and self._speaks(at, letter=letter, closed=closed)):
                letter = letter or (not self._held and self._begins_letter(at))
                self._quote(line)
                closed = closed or (letter and len(line.said) <= _SPEECH and self._begins("closing", line.said))
                continue
            owned, closed = left < 0, False
            if prompt and _HEADING.match(raw):
                owned = not self._begins("heads", line.said)
                continue
            letter = self._begins_letter(at)
            owned = owned or letter or bool(_NOTICE.match(raw) or _HEADING.match(raw)) or self._begins_mail(at)
            if owned or at in self._labelled:
                self._quote(line)
                continue
            left -= min(line.end - line.start, _LINE) + _PER_LINE
            own.append(line)
            self._voiced = self._held = False
            owned = self._request(at)
        if owned:
            self._ask_last(own)
        self._own_above(own)

    def _goes_on(self, at: int) -> bool:
        """Return whether a machine's output goes on in line *at*: nobody speaks in it, or in a line below it."""
        rest = takewhile(lambda line: not line.first, self.lines[at + 1 : at + _FIRST])
        return any(
            not self._is_speech([line]) or _MACHINE.match(self.text[line.start : line.start + _LINE])
            for line in (self.lines[at], *rest)
        )

    def _quote(self, line: _Line) -> None:
        self.blocks.append((line.start, line.end))
        self._held = True
        self._voiced = self._voiced or self._says("voice", line.said[:_LINE])

    def _request(self, at: int) -> bool:
        """Return whether *line* owns the lines below; quote what stands behind its colon."""
        line = self.lines[at]
        for colon, _ in zip(_COLON.finditer(line.said), range(_COLONS), strict=False):
            behind = line.said[colon.end() :].strip()
            head = _last_sentence(line.said[max(0, colon.start() - _LINE) : colon.start()])
            if not behind or not (self._asks_for_work(head) or self._says("says", head)):
                continue
            start = line.start + colon.end()
            if closing := _CLOSING.get(behind[0]):
                opened = self.text.index(behind[0], start) + 1
                if end := closing.search(self.text, opened, opened + _LONGEST):
                    self.blocks.append((start, end.end()))
                    return False
            if _ASKED.search(behind) and not _SENTENCE.search(behind):
                return False
            self._quote(line._replace(start=start, said=line.said[colon.end() :]))
            return True
        if at + 1 == len(self.lines):
            return False
        tail, below = line.said.rstrip()[-_LINE:], self.lines[at + 1 : self._end(at + 1)]
        tells = self._says("gives", tail) and not self._says("says", tail[:-1])
        points = tail.endswith((":", "：")) and not tells
        return points or self._owns(tail, below, below=True) or self._stands_above(at, below)

    def _owns(self, said: str, lines: Sequence[_Line], *, below: bool) -> bool:
        """Return whether *said* asks about the text of *lines*, which are *below* it or above.

        A request to work on a text does, and words for how a text is or who wrote it. Other questions about "this" do
        if the text is not told in the first person, as the story behind a question is, or speaks to someone; "she" does
        if such a text has no other "she".
        """
        says = self._says
        said = _last_sentence(said) if len(said) > _REQUEST or says("except", said) else said
        if says("except", said):
            return False
        makes, judges = says("makes", said), self._judges(said)
        if says("request", said) or says("brings", said) or (makes and said.endswith((":", "："))):
            return True
        asks = _ASKED.search(said) is not None or _QUESTION.search(said) is not None
        here, she, named = says("here", said), asks and says("they", said), makes or says("asks", said)
        if not (judges or named or she or (asks and here)):
            return False
        told = "\n".join(line.said[:_LINE] for line in lines)
        thanks = SMALL_TALK.match(told) and not greets(told)
        speaks = says("you", told) and not (thanks or says("speaks", told))
        affair, person, points = says("affair", said), says("voice", _POLITE.sub("", said)), says("this", said)
        if judges and not (affair and person):
            shifts = not person and (speaks or says("voice", told))
            return asks or points or here or (shifts and not instructions(said, said))
        if she and speaks and not says("they", told):
            return True
        here = here and asks and (below or speaks)
        if not (here or (named and (below or (asks and points)))) or self._begins("goes", told):
            return False
        return speaks or (here and not affair) or not says("voice", told)

    def _judges(self, said: str) -> bool:
        """Return whether *said* is short and has words for how a text is or should be, or for who wrote it."""
        return len(said) <= _REQUEST and self._says("judges", said)

    def _stands_above(self, at: int, lines: Sequence[_Line]) -> bool:
        """Return whether line *at* is short and nobody speaks in the *lines* below: a request in other words."""
        said = self.lines[at].said.strip()
        return (
            len(said) <= _REQUEST
            and not (SMALL_TALK.match(said) or _LABEL.match(said) or self._says("gives", said))
            and (_ASKED.search(said) is not None or not self._says("voice", said))
            and self._is_text(lines)
        )

    def _end(self, at: int) -> int:
        """Return the line behind the paragraph of line *at*, or behind some lines of it."""
        return next((n for n in range(at + 1, min(at + 5, len(self.lines))) if self.lines[n].first), len(self.lines))

    def _speaks(self, at: int, *, letter: bool, closed: bool) -> bool:
        """Return whether the paragraph that begins with line *at* speaks to the assistant; *closed*: below a letter."""
        line, end = self.lines[at], self._end(at)
        last = end == len(self.lines)
        size = self.lines[end - 1].end - line.start
        closes = (
            letter and not closed and any(self._begins("closing", each.said) for each in self.lines[at : at + _END])
        )
        if size > _SPEECH or closes:
            return False
        said = "\n".join(each.said for each in self.lines[at:end])
        if self._says("speaks", said) or self._says("above", said):
            return True
        if closed:
            return self._is_speech(self.lines[at:end]) or self._judges(said)
        if letter:
            return last and self._judges(said)
        return last and (
            _ASKED.search(said) is not None
            or (not self._voiced and self._says("voice", said))
            or (self._judges(said) and self._says("this", said))
        )

    def _is_speech(self, lines: Sequence[_Line]) -> bool:
        """Return whether someone speaks, asks or asks for work in *lines*."""
        return any(
            _ASKED.search(line.said)
            or any(self._says(key, line.said[:_LINE]) for key in ("voice", "speaks"))
            or self._asks_for_work(line.said[:_LINE])
            for line in lines
        )

    def _is_text(self, lines: Sequence[_Line]) -> bool:
        """Return whether *lines* begin a text in which nobody speaks, and which tells the assistant nothing."""
        lines = [line._replace(said=_POLITE.sub("", line.said[:_LINE])) for line in lines[:_FIRST]]
        said = " ".join(line.said[:_LINE] for line in lines)
        return (
            bool(lines)
            and len(said) + 2 * len(WIDE.findall(said)) >= _TEXT
            and not self._is_speech(lines)
            and not self._begins("goes", lines[0].said)
            and not instructions(begins := _first_sentence(lines[0].said), begins)
        )

    def _ask_last(self, own: Sequence[_Line]) -> None:
        """Take the last line for the user's own, if it asks, and nothing else does: what is pasted has a request."""
        last = self.lines[-1]
        asks = len(self.lines) > 1 and last.end - last.start <= _SPEECH and _ASKED.search(last.said)
        if asks and not any(_ASKED.search(line.said) or self._says("request", line.said[-_LINE:]) for line in own):
            self.blocks = [each for each in self.blocks if each != (last.start, last.end)]

    def _own_above(self, own: Sequence[_Line]) -> None:
        """Quote the *own* lines above the last paragraph, or the last line, if it speaks of them."""
        if len(own) < 2 or own[-1] is not self.lines[-1]:
            return
        if len(own) > 2 and own[1].first and self._orders(own[0]):
            own = own[1:]
        head = next((n for n in range(len(self.lines) - 1, 0, -1) if self.lines[n].first), 0)
        asking = [line for line in own if line.start >= self.lines[head].start]
        alone = len(asking) == len(own)
        asking = list(own[-1:]) if alone else asking
        above = own[: len(own) - len(asking)]
        said = " ".join(line.said[:_LINE] for line in asking[:4])
        between = above and any(above[-1].start < start < asking[0].start for start, _ in self.blocks)
        if not above or between or any(len(line.said) <= _REQUEST and self._asks_for_work(line.said) for line in above):
            return
        spoken = _ASKED.search(said) or _QUESTION.search(said) or self._asks_for_work(said)
        if (
            self._says("above", said)
            or (len(said) <= _REQUEST and self._owns(said, above[:_FIRST], below=False))
            or (not above[0].said.endswith((":", "：")) and spoken and self._is_text(above))
        ):
            self.blocks += [(line.start, line.end) for line in above]

    def _orders(self, line: _Line) -> bool:
        """Return whether *line* tells the assistant how to answer from now on."""
        said = line.said.strip()
        return len(said) <= _REQUEST and (
            self._says("speaks", said) or any(_MANNER.search(each.lower()) for each in instructions(said, said))
        )

    def _begins_letter(self, at: int) -> bool:
        line = self.lines[at]
        if len(self.lines) == 1:
            return False
        head = _SALUTATION.match(line.said)
        if head and self._begins("letter", head[0]):
            return True
        if at + 1 == len(self.lines) or len(line.said) >= 80:
            return False
        if self._begins("letter", line.said):
            return True
        # a greeting begins a letter only if that has an end, and is not all that the user says
        if not SMALL_TALK.match(line.said.strip()):
            return False
        end = next((n for n in range(at + 1, len(self.lines)) if self._begins("closing", self.lines[n].said)), None)
        return end is not None and (at > 0 or any(each.first for each in self.lines[end + 1 :]))

    def _begins_mail(self, at: int) -> bool:
        below = self.lines[at + 1 : at + 3]
        return self._begins("header", self.lines[at].said) and any(self._begins("header", line.said) for line in below)

    def _asks_for_work(self, said: str) -> bool:
        keys = ("request", "asks", "brings", "makes")
        return any(self._says(key, said) for key in keys) and not self._says("except", said)

    def _search(self, key: str, said: str) -> bool:
        """Return whether *said* has words of the table *key*, in one of the languages of the text."""
        for each in _finders(key, self._languages):  # noqa: SIM110 -- on the hot path
            if each.search(said):
                return True
        return False

    def _begins(self, key: str, said: str) -> bool:
        return any(each.match(said) for each in _finders(key, self._languages))


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


def _first_sentence(said: str) -> str:
    end = _SENTENCE.search(said, 0, _SPEECH)
    return said[: end.end() if end else _SPEECH]


def _last_sentence(said: str) -> str:
    ends = [each.end() for each in _SENTENCE.finditer(said)]
    return said[ends[-1] :] if ends else said


def _languages(text: str, lines: Sequence[_Line]) -> tuple[Writing, ...]:
    """Return the languages of a text: a request before or behind it may be in another one, or in no certain one."""
    ends = (line.said[:_LINE] for line in [*lines[:1], *lines[1:][-1:]])
    return tuple(sorted({*languages(text), *(one for said in ends for one in languages(said, LATIN))}))


@cache
def _finders(key: str, languages: tuple[Writing, ...]) -> Sequence[re.Pattern[str]]:
    return [finder("provenance", key, languages=(each,)) for each in languages]
