"""What each person says on a page, as its title is made of it.

    user Mara    Is this real? "Your account is locked."     →  Mara: Is this real? · Mara: “Your account is locked.”
    assistant    No. ```python …```                          →  No.

The words that a user quotes in whole sentences stand apart, in quotation marks. Programs are left out of a title.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ..language.patterns import WIDE
from ..provenance import Origin, spans
from ..sanitize import SCANNED, harmless, one_line, width
from .gists import Reading, read_text
from .observations import drop_wordless, observes
from .parts import Message, split

TAIL = 5_000  # characters of the end of a long message that are read
_SPOKEN = 1_500
_ANSWERED = 300
"""characters of an answer that a title is made of: the rest has many rare words that say less (benchmarks/LOG.md)"""
_COMMAND = 2  # line ends of a fenced command; a longer block is a program
_SPEAKER_COLUMNS = 24
_QUOTATION = 4  # words of a quotation that says something by itself; shorter ones are names and terms
_MAY_QUOTE = re.compile(r"[:：\"“„«「『\n]")  # what a text has that quotes in whole sentences
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_TAG = re.compile(r"<[!?/]?[A-Za-z][^<>]{0,200}>")
_LINK = re.compile(r"(?:href|src|action)=[\"']([^\"'<>]{1,120})")


class Part(NamedTuple):
    """What one person says on a page, for its title."""

    reading: Reading
    said: str
    speaker: str = ""
    quoted: bool = False  # whether the user quotes it

    def show(self, said: str) -> str:
        """Return *said*, all of it or a gist, with the speaker and as a quotation."""
        said = f"“{said}”" if self.quoted else said
        return f"{self.speaker}: {said}" if self.speaker else said


def parts_of(messages: Sequence[Message], asked: str, columns: int, *, printed: bool) -> list[Part]:
    """Return what each user says in *messages*, own and quoted words apart; *asked* is all of it. O(characters).

    An observation that was *printed* has no quotations.
    """
    users = [each for each in messages if each.get("role") == "user"]
    names = dict.fromkeys(map(_name, users))
    found = []
    for name in names:
        theirs = [each for each in users if _name(each) == name]
        sides = [asked if len(names) == 1 else speech(theirs, "user")]
        texts = [content_of(each)[0] for each in theirs]
        wide = width(sides[0][: columns + 1]) > columns
        if not printed and (wide or any("\n" in each for each in texts)):
            own, quoted = zip(*[split_quotations(each, inline=wide) for each in texts], strict=True)
            if any(quoted):
                sides = [speech([{"role": "user", "content": each} for each in side], "user") for side in (own, quoted)]
        for at, text in enumerate(sides):
            if text.strip():
                found.append(Part(read_text(text, columns, printed=printed), text, name, quoted=at > 0))
    return found


def split_quotations(text: str, *, inline: bool = True) -> tuple[str, str]:
    """Return the user's own words of *text*, and those that are quoted in whole sentences. O(characters).

    If not *inline*, what is quoted in the middle of a line counts as the user's own: it stands behind their words.
    """
    if not _MAY_QUOTE.search(text):
        return text, ""
    text, runs = shorten(text), list[tuple[bool, int, int]]()
    for start, end, origin in spans(text):
        quoted = origin is not Origin.OWN
        joins = runs and (quoted == runs[-1][0] or text[start:end].isspace())
        runs.append((*runs.pop()[:2], end) if joins else (quoted, start, end))
    sides: tuple[list[str], list[str]] = [], []
    for quoted, start, end in runs:
        said = text[start:end]
        words = len(said.split()) if not WIDE.search(said) else len(said) // 2
        apart = inline or start == 0 or text[start - 1] == "\n"
        sides[quoted and apart and words >= _QUOTATION].append(said)
    return "".join(sides[0]), "\n".join(sides[1])


def _name(message: Message) -> str:
    name = message.get("name") or ""
    return one_line(name, _SPEAKER_COLUMNS) if name.strip() else ""


def content_of(message: Message) -> tuple[str, list[str]]:
    """Return the text of *message*, and a placeholder for each of its other parts. O(characters)."""
    content = message.get("content")
    return (content, []) if isinstance(content, str) else split(content)


def is_observation(message: Message) -> bool:
    """Return whether *message* has the user's role, and a machine printed it. O(1)."""
    return message.get("role") == "user" and observes(content_of(message)[0])


def speech(messages: Sequence[Message], role: str) -> str:
    """Return the words of *role* in *messages*, without programs: the beginning and the end.

    Of a long answer only the beginning (see `_ANSWERED`).
    """
    texts = [
        drop_wordless(clean(content_of(message)[0]))
        if is_observation(message)
        else _FENCED.sub(lambda found: found[0] if found[0].count("\n") <= _COMMAND else "\n", content_of(message)[0])
        for message in messages
        if message.get("role") == role
    ]
    if role == "assistant":
        texts = [
            text if len(text) <= _ANSWERED else text[:_ANSWERED].rpartition(" ")[0] or text[:_ANSWERED]
            for text in texts
        ]
    said = "\n".join(text for text in texts if text.strip())
    if len(said) > 2 * _SPOKEN:
        said = f"{said[:_SPOKEN]}\n{said[-_SPOKEN:]}"
    return clean(said)


def clean(text: str) -> str:
    """Return *text* without tags and active characters, and shortened. O(characters)."""
    text = shorten(text)
    if "</" in text or "<!" in text:
        text = _TAG.sub(_link, text)
    return harmless(text).replace("**", "")


def _link(tag: re.Match[str]) -> str:
    link = _LINK.search(tag.group())
    return f" {link[1]} " if link else " "


def shorten(text: str) -> str:
    """Return the first 20,000 and the last 5,000 characters of *text*."""
    return text if len(text) <= SCANNED + TAIL else f"{text[:SCANNED]}\n…\n{text[-TAIL:]}"
