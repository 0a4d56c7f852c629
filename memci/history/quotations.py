"""Quoting: the messages that show what was said in another one, so that they go when that one is erased.

    recall_page(index=1)        "<memci:recall 1f9a03c2> page #1 …"                    by the page that it names
    search_memory("Oslo")       "<memci:memory 1f9a03c2> … #1 entry 1 user: "I am …""   by the words that it quotes

A search finds pages of other conversations too, which it shows without a number: there the words decide. What was told
in other words is no quotation. This module knows nothing of how anything is erased.
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
"""columns of a message in which a fact is looked for"""


def recalls(storage: Storage, record: ContextRecord, seqs: set[int]) -> Iterator[int]:
    """Yield the seqs of the answers to recalls that quote one of *seqs*, wherever they stand. O(entries).

    An answer that starts at an entry goes on from there, and its page may have been split since: it quotes, as far as
    one can tell, all that follows within the interaction.
    """
    told = _interactions(storage, record)
    first = {origin: min(held) for origin, held in told.items() if held}
    origins = {row.index: row.continues or row.index for row in storage.pages(record.id)}
    gone = {origin for origin, held in told.items() if not seqs.isdisjoint(held)}
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
            if any(seq in seqs and seq >= start for seq in told[origin]):
                yield each.seq
                break


def searches(
    storage: Storage, record: ContextRecord, said: Collection[Message], pages: Collection[int]
) -> Iterator[int]:
    """Yield the seqs of the answers to searches that quote one of the messages *said*. O(entries · said).

    Args:
        storage: Where they are.
        record: Of the context that is looked through.
        said: What goes.
        pages: The pages of this context that hold some of it.
    """
    from ..memory.retrieval.passages import entry_text

    texts = [text for message in said if (text := entry_text(message)).strip()]
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
    """Return the text that *line* quotes: the JSON string at its end, or what there is of one that was cut short."""
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
    told: dict[int, list[int]] = {}
    for row in storage.pages(record.id):
        told.setdefault(row.continues or row.index, []).extend(
            seq for span in row.spans(record.head) for seq in range(*span)
        )
    return told
