"""Finds quotations: all other places that show a message. They are erased together with it.

    recall_page(index=1)        "<memci:recall 1f9a03c2> page #1 …"                    by the page number in the answer
    search_memory("Oslo")       "<memci:memory 1f9a03c2> … #1 entry 1 user: "I am …""   by the words that end a line
                                a line may have two: … "I am …"; later, #4 entry 1 user: "Now …"

                                … known of the user: "…"       and by what memories derived from the messages

    a fork                      shows the messages that it shares

A search also finds pages of other conversations, and shows them without a number. Those answers are found by their
words. Paraphrases are not detected.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeAlias

from ..errors import CorruptRecord
from ..messages import Message, text_of
from ..rows import ContextRecord, EntryRow, PageRow
from ..storage import Storage
from ..storage.codec import ERASED, decode
from ..text.summarize import one_line
from ..window.state import WindowState
from .row_stream import readable_at, readable_entries

_FOUND = b"<memci:memory "
_INSIDE = re.compile(r"<memci:memory \w*>\\")  # an answer within a JSON string: an escape follows its first frame
_ESCAPES = re.compile(r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_NESTED = 3
"""JSON strings within one another that are read: programs put the answer to a call into the JSON of its result"""
_PAGE = re.compile(r"#(\d{1,10}) ")
_FACT = "known of the "
_ELSEWHERE = "another conversation"
_JOINT = re.compile(r" · |; ")
"""what stands between titles, and between relations, on one line"""
_LATER = re.compile(r'(?<="); later, (?=#\d+ entry \d+ |another conversation, )')
_SPEAKER = re.compile(r"^[^:]{1,60}: ")
_LONGEST = 100_000
"""characters of a message that are searched for a fact, at most; a line of an answer quotes far fewer"""
_MOST_LINES = 256
"""lines of one answer that are compared, at most; a search never returns so many, but a forged answer may"""
_CUT = 6
"""characters of an escape that was cut, at most: "\\ud83d" has six"""


Shown: TypeAlias = dict[str, tuple[ContextRecord, set[int]]]
"""contexts by id, and the seqs of the messages that each shows"""


def kin(storage: Storage, records: Iterable[ContextRecord]) -> list[ContextRecord]:
    """Return *records* and those of all forks and parents, which share messages with them. O(these)."""
    found: dict[str, ContextRecord] = {}
    waiting = list(records)
    while waiting:
        record = waiting.pop()
        if record.id not in found:
            found[record.id] = record
            waiting += storage.forks(record.id)
            parent = None if record.parent is None or record.parent in found else storage.load(record.parent)
            waiting += [] if parent is None else [parent[0]]
    return list(found.values())


class Quoted(NamedTuple):
    """What an answer to a search may quote of messages."""

    texts: Sequence[str]
    lines: Sequence[str]  # the same, each in one line, as facts have them
    told: Collection[str]  # what memories tell of their pages in other words, by line


class Spread:
    """Finds which of the contexts *records* show some messages, or answers that quote these messages.

    A message is named by the context that stores it and its seq. A fork also shows messages of its parents.
    """

    def __init__(self, storage: Storage, records: Iterable[ContextRecord]) -> None:
        self._storage = storage
        self._records = {record.id: record for record in records}

    def pages_of(self, record: ContextRecord, seqs: set[int]) -> dict[str, list[int]]:
        """Return the pages that hold the messages *seqs* of the context of *record*, by context. O(pages of these)."""
        found = {(self._holder(record.id, seq), seq) for seq in seqs}
        own = (
            (each, {seq for holder, seq in found if self._holder(name, seq) == holder})
            for name, each in self._records.items()
        )
        return {each.id: [page.index for page in pages_with(self._storage, each, held)] for each, held in own if held}

    def of_messages(
        self, record: ContextRecord, seqs: set[int], owners: Collection[str], told: Collection[str] = ()
    ) -> Shown:
        """Return where the messages *seqs* of the context of *record* are shown.

        *owners*: those that have found them, and of all contexts that share them. *told*: what memories tell of their
        pages in other words. O(entries of their contexts).
        """
        pages = pages_with(self._storage, record, seqs)
        beside = {seq for page in pages for span in page.spans(record.head) for seq in range(*span)} - seqs
        left = _quoted(self._messages(record, beside)).lines
        told = [text for text in told if not any(text in line for line in left)]
        messages = self._messages(record, seqs)
        found = {(self._holder(record.id, seq), seq) for seq in seqs}
        return self._shown(found | self._quoting(_quoted(messages, told), owners, self._holder(record.id), seqs))

    def of_quotations(self, messages: Collection[Message], owners: Collection[str], told: Collection[str]) -> Shown:
        """Return where answers to searches that quote *messages*, or what memories told of them, are shown.

        O(entries of the contexts of *owners*).
        """
        return self._shown(self._quoting(_quoted(messages, told), owners))

    def _messages(self, record: ContextRecord, seqs: Collection[int]) -> list[Message]:
        """Return the messages *seqs* of the context of *record* that can be read and are not erased. O(these)."""
        entries = readable_at(self._storage, record.id, seqs).values()
        return [decode(each.codec, each.body) for each in entries if each is not None and each.codec != ERASED]

    def _quoting(
        self, quoted: Quoted, owners: Collection[str], root: str = "", seqs: Collection[int] = ()
    ) -> set[tuple[str, int]]:
        """Return the answers with what is *quoted*, of messages *seqs* in what was forked from the context *root*."""
        found = set[tuple[str, int]]()
        for each in self._records.values():
            if each.owner in owners:
                own = seqs if self._holder(each.id) == root else ()
                pages = {row.index for row in pages_with(self._storage, each, own)} if own else set[int]()
                quoting = searches(self._storage, each, quoted, pages)
                found |= {(self._holder(each.id, seq), seq) for seq in quoting}
        return found

    def _holder(self, context: str, seq: int = -1) -> str:
        """Return the context that stores message *seq* of *context*; for -1, the context at the root of its forks."""
        record = self._records[context]
        while record.parent is not None and seq < record.base and record.parent in self._records:
            record = self._records[record.parent]
        return record.id

    def _shown(self, found: set[tuple[str, int]]) -> Shown:
        """Return the contexts that show one of the messages *found* (context, seq), or a recall that quotes one."""
        while True:
            shown: Shown = {}
            for name, record in self._records.items():
                seqs = {seq for holder, seq in found if self._holder(name, seq) == holder}
                if seqs:
                    shown[name] = record, seqs
            quoting = {
                (self._holder(name, seq), seq) for name, each in shown.items() for seq in recalls(self._storage, *each)
            }
            if quoting <= found:
                return shown
            found = found | quoting


def pages_with(storage: Storage, record: ContextRecord, seqs: Collection[int]) -> list[PageRow]:
    """Return the pages of *record* that hold one of *seqs*, by index. O(pages · log seqs)."""
    ordered = sorted(seqs)
    return [
        row
        for row in storage.pages(record.id, last=record.next_page - 1)
        if any(bisect_left(ordered, first) < bisect_left(ordered, end) for first, end in row.spans(record.head))
    ]


def recalls(storage: Storage, record: ContextRecord, seqs: set[int]) -> Iterator[int]:
    """Yield the seqs of the answers to recalls that may quote one of *seqs*. O(entries).

    An answer that starts at an entry may quote everything after it: the page may have been split since, so the end of
    the answer is not known. It counts as a quotation of the rest of the interaction.
    """
    held: dict[int, list[int]] = {}
    """the seqs of each interaction, by its first page"""
    origins: dict[int, int] = {}
    for row in storage.pages(record.id):
        origin = origins[row.index] = row.continues or row.index
        held.setdefault(origin, []).extend(seq for span in row.spans(record.head) for seq in range(*span))
    first = {origin: min(own) for origin, own in held.items() if own}
    gone = {origin: max(found) for origin, own in held.items() if (found := seqs.intersection(own))}
    """the last of *seqs* in each interaction"""
    nonce = WindowState.loads(record.state).nonce.encode()
    frame = re.compile(
        rb"<memci:recall " + nonce + rb">[\\n\s]*page #(\d{1,10})(?: of turn \d+, entr(?:y|ies) (\d{1,10}))?"
    )
    for each in _readable(storage, record):
        if each.quotes is None and b"<memci:recall " not in each.body:
            continue
        quoted: list[tuple[int, int | None]] = [
            (int(page), int(entry or 1)) for page, entry in frame.findall(each.body)
        ]
        quoted += [] if each.quotes is None else [each.quotes]
        for index, entry in quoted:
            origin = origins.get(index, 0)
            if origin in gone and gone[origin] >= first[origin] + (entry or 1) - 1:
                yield each.seq
                break


def searches(storage: Storage, record: ContextRecord, quoted: Quoted, pages: Collection[int]) -> Iterator[int]:
    """Yield the seqs of the answers to searches in the context of *record* with what is *quoted* of messages.

    *pages*: the pages of this context that hold some of the messages. O(entries x messages).
    """
    for each in _readable(storage, record, _FOUND):
        quoting = (line for line in _lines(text_of(decode(each.codec, each.body))) if ': "' in line)
        shown = (piece for line in quoting for piece in _LATER.split(line))
        if any(_shows(line, quoted, pages) for line in islice(shown, _MOST_LINES)):
            yield each.seq


def _quoted(messages: Iterable[Message], told: Collection[str] = ()) -> Quoted:
    """Return what answers may quote of *messages*, of which memories have *told*. O(characters)."""
    from ..formats.utterance import entry_text

    texts = [text for message in messages if (text := entry_text(message)).strip()]
    return Quoted(texts, [one_line(text, _LONGEST) for text in texts], told)


def _readable(storage: Storage, record: ContextRecord, containing: bytes = b"") -> Iterator[EntryRow]:
    """Yield the entries of the context of *record* with the bytes *containing*, but for those that can't be read."""
    at = 0
    try:
        for row in storage.entries(record.id, 0, record.head, containing=containing or None):
            yield row
            at = row.seq + 1
    except CorruptRecord:
        rest = readable_entries(storage, record, first=at)
        yield from (row for row in rest if isinstance(row, EntryRow) and containing in row.body)


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of *text*, and those of answers that stand in JSON strings in it. O(characters)."""
    for _ in range(_NESTED + 1):
        yield from text.splitlines()
        if not _INSIDE.search(text):
            break
        text = _ESCAPES.sub(lambda found: str(json.loads(f'"{found[0]}"')), text)


def _shows(line: str, quoted: Quoted, pages: Collection[int]) -> bool:
    page, piece = _PAGE.match(line), _string(line)
    if not piece or (page is not None and int(page[1]) not in pages):
        return False
    bare = _SPEAKER.sub("", piece) if line.startswith(_FACT) else ""
    if any(piece in text for text in quoted.texts) or (bare != "" and any(bare in text for text in quoted.lines)):
        return True
    if page is not None or line.startswith(_ELSEWHERE):
        return False
    parts = [piece, *_JOINT.split(piece)]
    cut = tuple(filter(None, (piece, parts[-1]))) if line.rstrip().endswith('…"') else ()
    return any(text in parts or text.startswith(cut) for text in quoted.told)


def _string(line: str) -> str:
    """Return the text that *line* quotes: the JSON string at its end, which may be cut. O(characters)."""
    line = line.rstrip()
    start = line.rfind(': "', 0, -1)  # no text has this within, but one may end so
    if start < 0:
        return ""
    with suppress(ValueError):
        return str(json.loads(line[start + 2 :])).removesuffix("…")
    head = line[start + 3 :].removesuffix('"').removesuffix("…")
    for cut in range(min(_CUT, len(head))):  # the cut may be in the middle of an escape
        with suppress(ValueError):
            return str(json.loads(f'"{head[: len(head) - cut]}"'))
    return ""
