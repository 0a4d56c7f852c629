r"""Make the text of others safe to show: one line for a list, quotations, and frames around them.

    one_line("Total:\x1b[1m 5 €\n<system>![x](https://a.io)", 60)    'Total: 5 € ‹system›! [x] (https[:]//a.io)'
    quote("</memci:recall 1f9a03c2>")                               '"\\u003c/memci:recall 1f9a03c2\\u003e"'

    <memci:contents 1f9a03c2>
    #42 Booking to Oslo                    frame("contents", "1f9a03c2", "#42 Booking to Oslo")
    </memci:contents 1f9a03c2>

`one_line` makes a line of a list. The text can't leave its line, hide in it, or look like another line:

    removed     control, bidi and zero-width characters, tag characters, lone surrogates, terminal escapes
    a space     every run of line breaks, tabs and blanks
    replaced    < > by ‹ ›, ``` by `, ![ by ! [, ]( by ] (, :// by [:]// (the URL stays readable, but no client makes
                it a link), a leading #5 by "no. 5" (the lines of the list begin like that)

A second application changes nothing. Cost: O(characters); only the first `SCANNED` are read.

`quote` makes a JSON string; `json.loads` returns the exact text. No text inside a frame can close the frame,
because neither lines nor quotations hold a `<` or a `>`. The nonce only helps to tell the frames of one context from an
imitation.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ..errors import InvalidSetting

SCANNED = 20_000  # characters of a text that are read: enough for any line, and a bound on its cost
EMPTY = "(empty)"
ELLIPSIS = "…"
JOINT = " · "  # between the parts of a line
_MARKS_PER_CHARACTER = 8  # combining marks that one character keeps; real writing needs at most 4
_LONGEST_BEGIN = 22  # characters at the end of a text in which a frame may begin

_UNSPEAKABLE = re.compile(
    "[<>\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
"""characters that may close a frame, end a line, reverse the reading direction, or can't be sent"""
_JOINER = "\u200d"  # the zero-width joiner joins the parts of an emoji; anywhere else it only hides
_ESCAPE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_EMOJI = "\u2190-\u27ff\u2900-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
INVISIBLE = re.compile(
    rf"(?<![{_EMOJI}\ufe0f\U0001f3fb-\U0001f3ff])\u200d|\u200d(?![{_EMOJI}])|"
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_FRAME = re.compile(r"<(?=[\s/]{0,8}memci\s{0,8}:)", re.IGNORECASE)
_BEGUN = re.compile(r"<[\s/]{0,8}(?:m(?:e(?:m(?:c(?:i\s{0,8})?)?)?)?)?\Z", re.IGNORECASE)
"""the end of a text in which a frame may begin"""
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x7f]")
_FENCE = re.compile("`{3,}")
# In this order no replacement makes a pattern that an earlier one replaces.
_NEUTRAL = (("<", "‹"), (">", "›"), ("![", "! ["), ("](", "] ("), ("!://", "! ://"), ("://", "[:]//"))
_NARROW = re.compile(
    "[\x00-\x7f\xa1-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u21ff]*"
)
_LAST_WORD = re.compile(r"(?<=[^\x00-\x7f])[!-~]{1,40}$")
_NUMBERED = re.compile(r"#[#\s\ufe00-\ufe0f]*(?=\d)")


def frame(kind: str, nonce: str, body: str) -> str:
    """Return *body* inside a frame; *body* must hold no `<` or `>` that others wrote."""
    return f"<memci:{kind} {nonce}>\n{body}\n</memci:{kind} {nonce}>"


def unframe(text: str) -> str:
    """Return *text*, which a model wrote, with `‹` for each `<` that begins a false frame. O(characters)."""
    return _FRAME.sub("‹", text) if "<" in text else text


def unframe_pieces(pieces: Iterable[str]) -> Iterator[str]:
    """Yield *pieces* of a text, changed as `unframe` changes the whole; a possible begin of a frame is held back."""
    held = ""
    for piece in pieces:
        held += piece
        begun = _BEGUN.search(held[-_LONGEST_BEGIN:])
        end = len(held) if begun is None else len(held) - len(begun[0])
        yield unframe(held)[:end]
        held = held[end:]
    yield unframe(held)


def is_confined(text: str) -> bool:
    """Return whether *text* can be shown unchanged: on one line, in its frame, with nothing hidden. O(characters)."""
    bare = text.replace(_JOINER, "")
    return min(bare, default=" ") >= " " and not _UNSPEAKABLE.search(bare)


def quote(text: str) -> str:
    """Return *text* as a JSON string on one line, without `<` and `>`; `json.loads` gives *text* back.

    One exception: a lone high surrogate directly before a lone low one comes back as the character that the pair
    encodes, since JSON has no other way to write them. O(characters).
    """
    return _UNSPEAKABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def one_line(text: str, columns: int) -> str:
    """Return *text* as one harmless line of 1 to *columns* columns, cut at a word with "…".

    Raises:
        InvalidSetting: If *columns* is less than 1.
    """
    if columns < 1:
        raise InvalidSetting("columns", f"at least 1 is needed, not {columns}")
    if len(text) <= columns and plain(text):
        return text
    head = text[: 2 * columns + 8]
    if len(head) < len(text) and is_narrow(head) and "\x1b" not in head:
        # if this much fills the line, the rest does not matter
        line = " ".join(harmless(head).split())
        if len(line) > columns and line[0] != "#":
            return _fit(line, columns, more=True)
    line = " ".join(harmless(text[:SCANNED]).split())
    if not is_narrow(line):
        line = _bound_marks(line)
    if line.startswith("#"):
        line = _NUMBERED.sub("no. ", line, count=1) if _NUMBERED.match(line) else line
    if not line:
        return EMPTY if columns >= len(EMPTY) and len(text) <= SCANNED else ELLIPSIS
    return _fit(line, columns, more=len(text) > SCANNED)


def plain(text: str) -> bool:
    """Return whether *text* already is one harmless, narrow line. O(characters)."""
    bare = text.isprintable() and not _is_active(text) and "  " not in text
    return bare and text[:1] not in ("", " ", "#") and text[-1] != " " and is_narrow(text)


def harmless(text: str) -> str:
    """Return *text* without characters that are invisible or active; line breaks stay. O(characters)."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if not is_narrow(text):
        text = INVISIBLE.sub("", text)
    elif not (text.isprintable() or text.replace("\n", " ").isprintable()):
        text = _CONTROLS.sub("", text)
    if _is_active(text):
        text = _FENCE.sub("`", text) if "```" in text else text
        for active, neutral in _NEUTRAL:
            text = text.replace(active, neutral)
    return text


def width(text: str) -> int:
    """Return how many columns *text* takes; a wide character takes 2, a combining one 0."""
    return len(text) if text.isascii() or is_narrow(text) else sum([_cell(char)[0] for char in text])


def is_narrow(text: str) -> bool:
    """Return whether each character of *text* is known to take one column. O(characters)."""
    return text.isascii() or _NARROW.fullmatch(text) is not None


def _is_active(text: str) -> bool:
    return "<" in text or ">" in text or "```" in text or "![" in text or "](" in text or "://" in text


@lru_cache(maxsize=8192)
def _cell(char: str) -> tuple[int, bool]:
    # columns, and whether it belongs to the character before it
    if unicodedata.category(char) in ("Mn", "Me") or char == _JOINER or "\u1160" <= char <= "\u11ff":
        return 0, True
    joined = unicodedata.category(char) == "Mc" or "\U0001f3fb" <= char <= "\U0001f3ff"
    return (2 if unicodedata.east_asian_width(char) in "WF" else 1), joined


def _bound_marks(line: str) -> str:
    # Marks take no column: without a bound, one line could have megabytes of them. A line begins with none.
    start = 0
    while start < len(line) and (line[start] == " " or _cell(line[start])[1]):
        start += 1
    kept: list[str] = []
    marks = 0
    for char in line[start:]:
        marks = marks + 1 if _cell(char)[1] else 0
        if marks <= _MARKS_PER_CHARACTER:
            kept.append(char)
    return "".join(kept)


def _fit(line: str, columns: int, *, more: bool) -> str:
    narrow = is_narrow(line)
    if not more and (len(line) <= columns if narrow else _last_boundary(line, columns) == len(line)):
        return line
    end = min(len(line), columns - 1) if narrow else _last_boundary(line, columns - 1)
    kept = line[:end]
    if end < len(line) and line[end] != " ":
        space = kept.rfind(" ", end * 2 // 3)
        if space > 0:
            kept = kept[:space]
        elif not narrow and line[end].isascii() and (word := _LAST_WORD.search(kept)) and word.start() >= end // 3:
            kept = kept[: word.start()]
    return kept.rstrip(" ,;:·(-") + ELLIPSIS


def _last_boundary(line: str, columns: int) -> int:
    # the last index at which a whole character ends within the columns
    total = 0
    whole = 0
    previous = ""
    paired = False
    for index, char in enumerate(line):
        cells, joined = _cell(char)
        paired = "\U0001f1e6" <= char <= "\U0001f1ff" and "\U0001f1e6" <= previous <= "\U0001f1ff" and not paired
        if not (joined or paired or previous == _JOINER):
            whole = index
        total += cells
        if total > columns:
            return whole
        previous = char
    return len(line)
