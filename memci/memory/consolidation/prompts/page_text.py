r"""Pages as a model sees them: lines of JSON in a frame, of limited length.

    <texts>
    {"page":1,"date":"2024-05-04 Sat"}
    {"entry":1,"user":"I'd like to move OI5L9G to May 27.","name":"Mel"}
    {"tool":"{\"id\": \"OI5L9G\", … [HAT1 · $157.50] … \"status\": \"ok\"}"}
    </texts>

Messages are data: a JSON string can neither end the frame nor hide anything. Long messages keep their head, their tail
and the ids between. If that is not enough, whole pages are left out, the last first, and count as unread. Answers to
recalls are never shown.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, tzinfo
from itertools import accumulate, chain, takewhile
from typing import NamedTuple

from ....formats.provenance import parts_of
from ....formats.utterance import entry_text
from ....messages import Message
from ....text.language.salience import FACT, find_salient
from ....text.moments import WEEKDAYS, moment
from ....text.sanitize import INVISIBLE, JOINT
from ....text.summarize import extract
from ...backend import PageKey, PageRecord
from ...tiers.events import day_of

MOST, MANY = 4_000, 6_000  # tokens of all texts, about; the second for facts and relations, which need whole pages
MESSAGE, TOOL = 500, 120  # tokens of a message, and of a tool's answer, about: eight long messages fit
LEAST, WHOLE = 40, 250
"""tokens that a message keeps at least; the second for facts and relations, where further pages rather wait"""
_SCANNED = 25_000  # characters of a message that are read: many more than are shown


class Framed(NamedTuple):
    """A text for a model."""

    text: str
    pages: tuple[PageRecord, ...]  # those that are shown, whole or shortened; the model calls them 1, 2, 3, …
    said: str  # the whole text, case-folded
    entries: frozenset[int] = frozenset()  # ordinals of messages that are shown with a number, if there is one page

    @property
    def sent(self) -> tuple[PageKey, ...]:
        """The keys of the pages."""
        return tuple(page.key for page in self.pages)

    def page(self, number: int) -> PageRecord | None:
        """Return the page that a model calls *number*, None if there is none."""
        return self.pages[number - 1] if 1 <= number <= len(self.pages) else None


def frame_pages(
    pages: Sequence[PageRecord],
    *,
    before: object = None,
    zone: tzinfo = UTC,
    most: int = MOST,
    least: int = LEAST,
    numbered: Collection[int] = (),
) -> Framed:
    """Return *pages* in a frame. O(characters), at most 25,000 of each message.

    Args:
        pages: The pages, in order.
        before: A value that is shown before them, as JSON.
        zone: The time zone of dates of pages without one.
        most: Tokens in total, about. One page is always shown, as far as it fits.
        least: Tokens to which messages are shortened before pages are left out.
        numbered: Ordinals of messages that the model is asked about.
    """
    texts = [[(n, entry, _parts(entry)) for n, entry in page.entries if n not in page.quotes] for page in pages]
    bound = MESSAGE
    lines = _pages(pages, texts, bound, zone, numbered)
    while bound > least and sum(map(_cost, chain.from_iterable(lines))) > most:
        bound = max(least, bound // 2)
        lines = _pages(pages, texts, bound, zone, numbered)
    body = [] if before is None else [_line(before)]
    count, left, named = 0, most, set[int]()
    for own, told in zip(texts, lines, strict=True):
        cost = sum(map(_cost, told))
        if cost > left and count:
            break
        fitting = told if cost <= left else told[:2] + _take_fitting(told[2:], left - sum(map(_cost, told[:2])), _cost)
        body += fitting
        named.update(n for n, _, _ in own[: len(fitting) - 1] if n in numbered)
        count, left = count + 1, left - cost
    return Framed(_frame(body), tuple(pages[:count]), _fold(body), frozenset(named))


def frame_values(values: Iterable[object]) -> Framed:
    """Return *values* in a frame, a line each; the caller limits their length. O(characters)."""
    body = [_line(each) for each in values]
    return Framed(_frame(body), (), _fold(body))


def message_text(message: Message) -> str:
    """Return the text of *message*: of a very long one its ends, of one without text a line that describes it."""
    text = entry_text(message)
    if not text.strip():
        text = extract((message,)).lines[0]
    return text if len(text) <= 2 * _SCANNED else f"{text[:_SCANNED]} … {text[-_SCANNED // 5 :]}"


def estimate_tokens(text: str) -> int:
    """Return about how many tokens *text* has: one for four letters, or for one character of another script."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 4) + len(text) - plain


def shorten(text: str, most: int) -> str:
    """Shorten *text* to about *most* tokens: its head, the ids, dates and paths between, its tail. O(characters)."""
    whole = estimate_tokens(text)
    room = len(text) * most // max(1, whole)
    for _ in range(4):
        if whole <= most or room >= len(text):
            return text
        head, tail = room * 6 // 10, room * 2 // 10
        middle = text[head : len(text) - tail]
        ids = [piece for rank, piece in find_salient(middle) if rank <= FACT]
        found = JOINT.join(_take_fitting(ids, room - head - tail, lambda piece: len(piece) + len(JOINT)))
        head = room - tail - len(found)
        short = f"{text[:head]} … {f'[{found}] … ' if found else ''}{text[len(text) - tail :]}"
        taken = estimate_tokens(short)
        if taken <= most + 8:
            return short
        room = room * most // taken - 1
    return text[:most] + " …"


def _pages(
    pages: Sequence[PageRecord],
    texts: Sequence[Sequence[tuple[int, Message, dict[str, str]]]],
    bound: int,
    zone: tzinfo,
    numbered: Collection[int],
) -> list[list[str]]:
    """Return the lines of each page: a head, then one for each message."""
    found = []
    for number, (page, own) in enumerate(zip(pages, texts, strict=True), 1):
        head: dict[str, object] = {"page": number}
        if page.at is not None:
            date = moment(day_of(page.at, page.zone(zone)))
            head["date"] = f"{date:%Y-%m-%d} {WEEKDAYS[date.weekday()]}"
        lines = [_line(head)]
        for ordinal, message, parts in own:
            most = min(bound, max(LEAST, bound * TOOL // MESSAGE)) if message.get("role") == "tool" else bound
            body: dict[str, object] = {}
            if ordinal in numbered:
                body["entry"] = ordinal
            body |= {who: shorten(text, max(LEAST, most // len(parts))) for who, text in parts.items()}
            if (name := message.get("name") or "").strip():
                body["name"] = name[:64]
            lines.append(_line(body))
        found.append(lines)
    return found


def _parts(message: Message) -> dict[str, str]:
    """Return the text of *message* by whose words it is: of most messages all of it, by their role."""
    parts = parts_of(message) if message["role"] == "user" else {}
    if parts.keys() - {"user"}:
        return {who: text[: 2 * _SCANNED] for who, text in parts.items()}
    return {message["role"]: message_text(message)}


def _cost(line: str) -> int:
    return estimate_tokens(line) + 1


def _take_fitting(texts: list[str], room: int, cost: Callable[[str], int]) -> list[str]:
    """Return the first of *texts* that fit into *room* together."""
    totals = accumulate(map(cost, texts))
    return texts[: sum(1 for _ in takewhile(lambda total: total <= room, totals))]


def _frame(lines: Iterable[str]) -> str:
    return "\n".join(["<texts>", *lines, "</texts>"])


def _line(value: object) -> str:
    # in JSON, "<\/" is the same string, and it does not end the frame
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    return INVISIBLE.sub("", _BREAKS.sub(" ", text))


def _fold(lines: Sequence[str]) -> str:
    return "\n".join(lines).replace("<\\/", "</").replace("\\\\", "\\").casefold()


_BREAKS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
