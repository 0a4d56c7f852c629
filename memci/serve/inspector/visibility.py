"""Why a fact was not visible at a turn: the page that holds it, its place then, and the line that replaced it.

"R3K2"   page #3, entry 2, assistant        left the window in turn 31; since then "#3 flight to Oslo · $54"
the line does not say it           a search finds it at place 1, with .93
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Literal, NamedTuple

from ...formats.provenance import whose
from ...memory.backend import FoundPage
from ...messages import Message, text_of
from ...rows import EntryRow, PageRow
from ...storage.codec import ERASED, decode
from ...text.language.terms import query_terms, terms
from ..stored_context import readable
from .inspected import InspectedContext
from .markup import asset
from .page_story import PageEvent, PageStanding, PageStory

MOST: Final = 8  # places that are shown, at most: a screen or two
_AROUND: Final = 90  # characters shown on both sides of a match: about two lines
_SENTENCES: Final[dict[str, str]] = json.loads(asset("verdicts.json"))
"""what is said of a fact, by its verdict"""

Verdict = Literal["visible", "clipped", "digest", "line says it", "line", "folded", "unlisted", "later", "gone"]


class FactPlace(NamedTuple):
    """A message that holds a fact, and its visibility."""

    page: int
    entry: int
    role: str
    before: str
    found: str
    after: str
    verdict: Verdict
    sentence: str
    standing: PageStanding
    events: tuple[PageEvent, ...]
    missing: tuple[str, ...]  # words of the fact that its line does not have
    at: str | None  # when it was said (ISO 8601)
    whose: str  # whose words it is, if not the speaker's own: "quoted by the user", "document"
    exact: bool  # whether it holds the fact letter by letter; else a search found it


def fact_places(context: InspectedContext, fact: str, turn: int, hits: Iterable[FoundPage] = ()) -> list[FactPlace]:
    """Return the messages with the exact text *fact*, newest first, and then the *hits* of a search, best first.

    As of the close of *turn*. O(messages).
    """
    head = context.head_at(turn)
    found: dict[int, FactPlace] = {}
    for needle in dict.fromkeys([fact, fact.lower(), fact.upper(), fact[:1].upper() + fact[1:]]):
        for entry, message in _holders(context, needle):
            row = context.page_of(entry.seq)
            if row is not None and entry.seq not in found and entry.quotes is None:
                found[entry.seq] = _place(context, row, entry, message, fact, turn=turn, head=head)
        if found:  # other cases of its letters only if this one is nowhere
            break
    exact = sorted(found, reverse=True)[:MOST]
    for hit in hits:
        known = any(place.page == hit.index for place in found.values())
        row = context.row(hit.index) if hit.context == context.id and not known else None
        seq = -1 if row is None else context.reader.base(row) + hit.entry - 1
        for entry in context.storage.entries_at(context.id, [seq]) if row is not None and seq not in found else ():
            if row is not None and entry.codec != ERASED:
                message = decode(entry.codec, entry.body)
                place = _place(context, row, entry, message, hit.text, turn=turn, head=head, words=fact)
                found[seq] = place._replace(exact=False)
    return [found[seq] for seq in dict.fromkeys([*exact, *found])][:MOST]


def _holders(context: InspectedContext, needle: str) -> Iterator[tuple[EntryRow, Message]]:
    """Yield the messages that contain *needle*."""
    written = json.dumps(needle, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    for entry in islice(context.storage.entries(context.id, containing=written), 4 * MOST):
        if entry.codec != ERASED:
            message = decode(entry.codec, entry.body)
            if needle in readable(message):
                yield entry, message


def _place(
    context: InspectedContext,
    row: PageRow,
    stored: EntryRow,
    message: Message,
    fact: str,
    *,
    turn: int,
    head: int,
    words: str | None = None,
) -> FactPlace:
    """Return the place of the text *fact* in *message*; *words*: what was asked for, if that is another text."""
    story, seq = PageStory(context, row), stored.seq
    text = readable(message)
    at = text.find(fact) if fact in text else max(0, text.lower().find(fact.lower()))
    before, after = text[max(0, at - _AROUND) : at], text[at + len(fact) : at + len(fact) + _AROUND]
    standing = story.at(head)
    told = {*terms(standing.line)}
    missing = tuple(word for word in dict.fromkeys(query_terms(words or fact)) if word not in told)
    verdict = _verdict(context, row, seq, standing, fact, head=head, missing=missing)
    events = tuple(story.events())
    left = next((each for each in events if each.what == "left the window" and each.turn <= turn), None)
    entry = seq - context.reader.base(row) + 1
    sentence = _SENTENCES[verdict].format(
        page=row.index, entry=entry, turn=turn, left=left.turn if left else "?", said=row.turn, line=standing.line
    )
    return FactPlace(
        row.index, entry, message["role"], re.sub(r"\s+", " ", before), text[at : at + len(fact)],
        re.sub(r"\s+", " ", after), verdict, sentence, standing, events, missing, stored.at,
        whose(message, *_within(text_of(message), fact)), exact=True,
    )  # fmt: skip


def _within(text: str, part: str) -> tuple[int, int]:
    """Return where *part* stands in *text*; all of it if it is not there, as an argument of a call."""
    at = text.lower().find(part.lower())
    return (at, at + len(part)) if at >= 0 else (0, len(text))


def _verdict(
    context: InspectedContext,
    row: PageRow,
    seq: int,
    standing: PageStanding,
    fact: str,
    *,
    head: int,
    missing: tuple[str, ...],
) -> Verdict:
    if row.state.name in {"UNDONE", "ERASED"}:
        return "gone"
    if seq >= head:
        return "later"
    if standing.place == "whole":
        active = context.window.active.page(row.index)
        node = next((node for node in active or () if node.seq == seq), None)
        if node is None or node.whole or fact.lower() in text_of(node.view).lower():
            return "visible"
        return "clipped" if node.clip else "digest"
    if standing.place == "line":
        return "line" if missing else "line says it"
    return standing.place
