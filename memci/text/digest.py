"""Digests: a large result of a tool, shown as pieces of itself that its kind suggests.

    lines 1–13 of a log                                             the head
    [… lines 14–95, 80 like the one above elided: recall_page(…); among them: conftest.py · test_io …]
    lines 96–99                                                     an error between
    [… lines 100–178 …]
    lines 179–190                                                   the tail

A digest is stored as numbers, its spans: `(0, 812, ~2040, 2051, 9020, 9700)`. Those of a piece are its start and its
end; the start of an identifier, which is named in a mark, is stored as `~start`. So the same digest is shown again
after a restart, in a fork, and by a later version that would choose other pieces.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from .language.identifiers import identifiers
from .language.salience import FACT, has_error, rank_of

Spans = tuple[int, ...]  # starts and ends of pieces in a text, in order; see above
Kind = Literal["json", "diff", "source", "log", "text"]

_LONG, _SEGMENT = 400, 200
"""characters of a line that is cut into segments, and of such a segment: about one sentence or record"""
_SHAPE, _DIFF_SHAPE = (0.3, 0.25, 200), (0.15, 0.1, 0)
"""shares of a digest that head and tail take, and characters that a piece between has at least: a line says little
without those around it, but for the headers and changes of a diff"""
_CHOSEN = 0.85  # share of a digest up to which such pieces fill it; identifiers take the rest
_ODD, _ALONE = 3.0, 0.8
"""what a line says from which on it stands alone before any has those around it, and the share up to which such lines
fill a digest: with their surroundings, two of five errors fill a small one"""
_RARE = 20  # a field of JSON tells an error if at most one unit in so many has it: others have none or "error": null
_LISTED = 24  # identifiers of one mark at most: a longer list is not read
_LOOKED_AT, _FIRST = 60, 400  # lines that tell the kind of a text: some of all, and the first ones
_FEW = 2  # lines that are counted as repeated only if there are more of them
_TRIES = 5  # how often a digest that came out too large is made smaller: each time, an estimate meets a count

_LINE = re.compile(r"[^\r\n]*(?:\r?\n|\r|$)")
_CUT = re.compile(rf"[^\r\n]{{1,{_SEGMENT}}}(?:(?<=[\s,;|}}\]。，；])|$)|[^\r\n]{{1,{_SEGMENT}}}")
_TIME = re.compile(r"[\d:.-]*:[\d:.-]*")
_SEPARATORS = re.compile(r"[/.:#@]+")
_VARYING = re.compile(r"\d+|\b[0-9a-f]{8,}\b")
_SIGNATURE = re.compile(
    r"^\s*(?:\d+\s?[:|\t→]\s*)?(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub"
    r"|inline|virtual|override|open|sealed|data)\s+){0,5}(?:(?:def|class|func|function|fn|interface|trait|struct|enum|impl"
    r"|type|module|namespace|package|object|protocol|record)\s+[\w$<(]|[\w<>\[\],.*&\s]{2,80}\s[\w$]+\([^;]{0,160}\)\s*"
    r"(?:throws [\w, .]{1,80})?\{\s*$)"
)
_NUMBERED = re.compile(r"^\s*(\d+)\s?[:|\t→]")  # a call that names a number asks for that line
_OF_DIFF = re.compile(r"diff --git |@@ |Index: |rename |new file|deleted file|\+(?!\+\+ )|-(?!-- )")
_STAMP = re.compile(
    r"\s*\[?(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\w{3} [ \d]\d \d\d:"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL)\b)"
)
_ID = re.compile(
    r"[\"'](?:[\w-]*_)?(?:id|name|number|code|key|uuid|ref|path|url|status|error|message)[\"']\s*:", re.IGNORECASE
)


def choose(
    text: str, room: int, count: Callable[[str], int], needed: Collection[str] = (), *, tokens: int | None = None
) -> Spans:
    """Return the spans of a digest of *text* that costs about *room* tokens, and at most that with short marks.

    *needed*: words that the task or the call names; lines with them come first. *tokens*: of *text*, if they were
    counted. O(characters).
    """
    units = list(_units(text))
    kind = kind_of(text)
    weights = _weigh(text, units, kind, {part for word in needed for part in _parts(word)})
    size = len(text) * room // max(1, count(text) if tokens is None else tokens)
    for _ in range(_TRIES):
        spans = _select(text, units, weights, size, _DIFF_SHAPE if kind == "diff" else _SHAPE)
        cost = count(show(text, spans, ""))
        if cost <= room:
            break
        size = min(size * room // cost, size - 16) * 15 // 16
    return spans if size > 0 and cost <= room else (0, 0)


def show(text: str, spans: Spans, call: str) -> str:
    """Return the pieces of *text* that *spans* names, with marks between them. O(characters).

    The first mark names the *call* that reads the whole text.
    """
    pairs = [*zip(spans[::2], spans[1::2], strict=False)]
    named = [(~start, end) for start, end in pairs if start < 0]
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    shown: list[str] = []
    last = 0
    for start, end in [*(pair for pair in pairs if pair[0] >= 0), (len(text), len(text))]:
        if start > last:
            among = " · ".join(text[a:b] for a, b in named if last <= a and b <= start)
            told, call = [f" elided: {call}"] * bool(call), ""
            told += [f"; among them: {among}"] * bool(among)
            new = "\n" if shown and not shown[-1].endswith("\n") else ""
            left = _count(text, starts, last, start)
            shown.append(f"{new}[… {left}{''.join(told)} …]\n")
        shown.append(text[start:end])
        last = max(last, end)
    return "".join(shown) if text.endswith("\n") else "".join(shown).removesuffix("\n")


def _count(text: str, starts: Sequence[int], first: int, end: int) -> str:
    """Return how a reader counts what lies between *first* and *end*: in lines, or in characters of one line."""
    a, b = bisect_right(starts, first), bisect_right(starts, end - 1)
    if a == b and not (first == starts[a - 1] and text[end - 1 : end + 1] in {"\n", text[end - 1 : end]}):
        return f"{end - first:,} characters"
    if first == starts[a - 1] and a > 1:
        above = _template(text[starts[a - 2] : first])
        same = sum(_template(line) == above for line in text[first:end].split("\n")) if above else 0
        if same > max(_FEW, (b - a) // 2):
            return f"lines {a:,}–{b:,}, {same:,} like the one above"
    return f"line {a:,}" if a == b else f"lines {a:,}–{b:,}"


def _template(line: str) -> str:
    return _VARYING.sub("0", line.strip())


def kind_of(text: str) -> Kind:
    """Return the kind of *text*, from some of its lines. O(characters of the first lines)."""
    bare = text.strip()
    if bare[:1] in "[{" and bare[-1:] in "]}" and '"' in bare[:200]:
        return "json"
    lines = [line for line in text.split("\n") if line.strip()]
    step = max(1, len(lines) // _LOOKED_AT)
    seen = [line[:_LONG] for line in lines[::step]]
    if any(line.startswith(("diff --git ", "@@ ")) for line in lines):
        return "diff"
    if sum(_STAMP.match(line) is not None for line in seen) > 0.3 * len(seen):
        return "log"
    if sum(_SIGNATURE.match(line) is not None for line in lines[:_FIRST]) > max(1, min(_FIRST, len(lines)) // 60):
        return "source"
    return "text"


def _units(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of *text* with their ends, long ones in segments."""
    for line in _LINE.finditer(text):
        start, end = line.span()
        if end - start > _LONG:
            cuts = [match.end() for match in _CUT.finditer(text, start, end)]
            yield from pairwise([start, *cuts[:-1], end])
        elif start < end:
            yield start, end


def _weigh(text: str, units: Sequence[tuple[int, int]], kind: Kind, needed: Collection[str]) -> list[float]:
    """Return how much each unit says."""
    lines = [text[start:end] for start, end in units]
    templates = [*map(_template, lines)]
    same = Counter(templates)
    words = [{*identifiers(line)} for line in lines]
    parts = [{part for word in each for part in _parts(word)} for each in words]
    named = [each.union(_NUMBERED.findall(line)) for line, each in zip(lines, parts, strict=True)]
    often = Counter(part for each in named for part in each if part in needed)
    known: set[str] = set()
    weights: list[float] = []
    rare = len(units) / _RARE
    for line, template, found, asked in zip(lines, templates, words, named, strict=True):
        weight = 1 / same[template] if template else 0.0
        weight += min(1.5, 0.3 * len(found - known))
        weight += sum(4 / often[part] for part in asked if part in often)
        known |= found
        if kind == "diff":
            weight += 3 - weight % 1 if _OF_DIFF.match(line) else 0
        elif kind == "source":
            weight += 3 * (_SIGNATURE.match(line) is not None)
        elif kind == "json":
            weight += (_ID.search(line) is not None) + 3 * (has_error(line) and same[template] < rare)
        elif has_error(line):
            weight += 3
        weights.append(weight)
    return weights


def _parts(word: str) -> Iterator[str]:
    """Yield *word*, and if it is a path or a dotted name its parts."""
    yield word
    yield from (part for part in _SEPARATORS.split(word) if len(part) > 3 and part != word)


def _select(
    text: str,
    units: Sequence[tuple[int, int]],
    weights: Sequence[float],
    size: int,
    shape: tuple[float, float, int],
) -> Spans:
    """Return the spans of about *size* characters."""
    head, tail, least = shape
    least = min(least, size // 5)
    chosen: set[int] = set()
    used = 0

    def take(at: int) -> bool:
        nonlocal used
        cost = units[at][1] - units[at][0]
        if at in chosen:
            return True
        if used + cost > size:
            return False
        chosen.add(at)
        used += cost
        return True

    for order, share in ((range(len(units)), head), (range(len(units) - 1, -1, -1), head + tail)):
        for at in order:
            if used + units[at][1] - units[at][0] > share * size or not take(at):
                break
    ranked = sorted(range(len(units)), key=lambda at: (-weights[at], at))
    alone = {at for at in ranked if weights[at] >= _ODD and at not in chosen and used < _ALONE * size and take(at)}
    for at in ranked:
        if used > _CHOSEN * size or not weights[at]:
            break
        if (at in chosen and at not in alone) or used + least > size:
            continue
        first = last = at
        take(at)
        while sum(units[each][1] - units[each][0] for each in range(first, last + 1)) < least and used < size:
            if last + 1 < len(units) and take(last + 1):
                last += 1
            elif first and take(first - 1):
                first -= 1
            else:
                break
    pieces: list[tuple[int, int]] = []
    for at in sorted(chosen):
        start, end = units[at]
        if pieces and pieces[-1][1] == start:
            pieces[-1] = pieces[-1][0], end
        else:
            pieces.append((start, end))
    return tuple(number for pair in _with_names(text, pieces, size - used) for number in pair)


def _with_names(text: str, pieces: Sequence[tuple[int, int]], room: int) -> Iterator[tuple[int, int]]:
    """Yield *pieces*, and between them the identifiers of what is left out, up to *room* characters."""
    seen = {word for start, end in pieces for word in identifiers(text[start:end])}
    last = 0
    for start, end in [*pieces, (len(text), len(text))]:
        listed = 0
        for word in identifiers(text[last:start]):
            if room < len(word) + 3 or listed == _LISTED:
                break
            last = text.index(word, last)
            rank = None if word in seen or _TIME.fullmatch(word) else rank_of(word)
            if rank is not None and rank <= FACT:
                seen.add(word)
                listed += 1
                room -= len(word) + 3
                yield ~last, last + len(word)
        if start < end:
            yield start, end
        last = end
