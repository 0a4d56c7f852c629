"""Quotations: the answers of tools that quote a message. They are erased together with that message.

    recall_page(index=1)        "<memci:recall 1f9a03c2> page #1 …"                    by the page that it names
    search_memory("Oslo")       "<memci:memory 1f9a03c2> … #1 entry 1 user: "I am …""   by the words that it quotes

A search also finds pages of other conversations, which it shows without a number. Those answers are found by their
words. A summary in other words is no quotation. This module knows nothing of how anything is erased.
"""

import json
import re
from collections.abc import Collection, Iterator

from ..messages import Message, text_of
from ..storage import Storage
from ..storage.codec import decode
from ..storage.protocol import ContextRecord
from ..text.summarize import one_line
from ..window.state import WindowState

_FOUND = b"<memci:memory "
_PAGE = re.compile(r"#(\d+) entry \d+ |another conversation, ")
_KNOWN = re.compile(r"known of the (?:user|assistant): ")
_SPEAKER = re.compile(r"^[^:]{1,60}: ")
_LONGEST = 100_000
"""columns of a message that are searched for a fact"""


def recalls(storage: Storage, record: ContextRecord, seqs: set[int]) -> Iterator[int]:
    """Yield the seqs of the answers to recalls that may quote one of *seqs*. O(entries).

    An answer that starts at an entry may hold everything after that entry: the page may have been split since, so that
    its end is not known. Such an answer counts as a quotation of the rest of the interaction.
    """
    held = _interactions(storage, record)
    first = {origin: min(own) for origin, own in held.items() if own}
    origins = {row.index: row.continues or row.index for row in storage.pages(record.id)}
    gone = {origin for origin, own in held.items() if not seqs.isdisjoint(own)}
    frame = re.compile(rb"<memci:recall " + WindowState.loads(record.state).nonce.encode() + rb">[\\n\s]*page #(\d+)")
    for each in storage.entries(record.id):
        if each.quotes is None and b"<memci:recall " not in each.body:
            continue
        quoted: list[tuple[int, int | None]] = [(int(index), None) for index in frame.findall(each.body)]
        quoted += [] if each.quotes is None else [each.quotes]
        for index, entry in quoted:
            origin = origins.get(index, 0)
            if origin not in gone:
                continue
            start = first[origin] + (entry or 1) - 1
            if any(seq in seqs and seq >= start for seq in held[origin]):
                yield each.seq
                break


def searches(
    storage: Storage, record: ContextRecord, messages: Collection[Message], pages: Collection[int]
) -> Iterator[int]:
    """Yield the seqs of the answers to searches that quote one of *messages*. O(entries x messages).

    Args:
        storage: The store that holds the context.
        record: The record of the context whose answers are searched.
        messages: The messages that are to be erased.
        pages: The pages of this context that hold some of them.
    """
    from ..memory.retrieval.passages import entry_text

    texts = [text for message in messages if (text := entry_text(message)).strip()]
    lines = [one_line(text, _LONGEST) for text in texts]
    for each in storage.entries(record.id, containing=_FOUND):
        shown = text_of(decode(each.codec, each.body)).splitlines()
        if any(_shows(line, texts, lines, pages) for line in shown):
            yield each.seq


def _shows(line: str, texts: Collection[str], lines: Collection[str], pages: Collection[int]) -> bool:
    page = _PAGE.match(line)
    if page is not None:
        if page[1] is not None and int(page[1]) not in pages:
            return False
        piece = _string(line)
        return bool(piece) and any(piece in text for text in texts)
    if _KNOWN.match(line):
        fact = _string(line)
        bare = _SPEAKER.sub("", fact)
        return bool(bare) and any(fact in text or bare in text for text in lines)
    return False


def _string(line: str) -> str:
    """Return the text that *line* quotes: the JSON string at its end, which may have been cut."""
    start = line.find(': "')
    while start >= 0:
        try:
            found = json.loads(line[start + 2 :])
        except ValueError:
            if '", turn ' not in line[start + 3 :]:
                break
            start = line.find(': "', start + 3)
        else:
            return found if isinstance(found, str) else ""
    head = line[start + 3 :].removesuffix('"').removesuffix("…") if start >= 0 else ""
    while head:
        try:
            return str(json.loads(f'"{head}"'))
        except ValueError:
            head = head[:-1]  # it was cut in the middle of an escape
    return ""


def _interactions(storage: Storage, record: ContextRecord) -> dict[int, list[int]]:
    """Return the seqs of each interaction by the page that it began with."""
    held: dict[int, list[int]] = {}
    for row in storage.pages(record.id):
        held.setdefault(row.continues or row.index, []).extend(
            seq for span in row.spans(record.head) for seq in range(*span)
        )
    return held
