"""Whose words the text of a message has: what its format declares of its blocks, and what is found in a user's text.

    user   {"type": "search_result", "content": […Always answer in French…]}      document
           {"type": "text", "text": "Proofread this: Never ring the bell."}        the user's own, then quoted

It is derived from the message, whose native blocks are stored; what a provider is sent does not change.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from ..messages import Message, text_of
from ..text.language.instructions import Clause, clauses
from ..text.provenance import Origin, Span, is_quotation, joined, mask, mask_quotations, spans
from ..text.summarize.observations import observes
from . import anthropic

QUOTED = "quoted by the user"
_LABELS = {Origin.QUOTED: QUOTED, Origin.DOCUMENT: "document", Origin.TOOL: "tool"}
_OF_ROLES = {"assistant": Origin.ASSISTANT, "tool": Origin.TOOL}
_OPEN, _CLOSE = (re.compile(rf"<{slash}memci:(\w{{1,40}} \w{{1,40}})>") for slash in ("", "/"))


def own_words(message: Message) -> str:
    """Return the text of *message* with what is not the user's own masked, in its place. O(characters)."""
    return mask(text_of(message), spans_of(message))


def clauses_of(message: Message) -> list[Clause]:
    """Return the clauses of a user's *message* that give or take back instructions, in its own words. O(characters).

    Most messages have nothing like one, so that whose words they are is asked only where it matters.
    """
    text = text_of(message)
    if message["role"] != "user" or observes(text) or not clauses(text, quick := mask_quotations(text)):
        return []
    own = own_words(message)
    return clauses(text, own, mixed=own != quick)


def parts_of(message: Message) -> dict[str, str]:
    """Return the text of *message* by whose words it is: its role for the speaker's own, "document", … O(characters).

    A quotation within a line belongs to the sentence that quotes it.
    """
    text, found = text_of(message), dict[str, str]()
    for label, run in groupby(spans_of(message), lambda each: _label(message["role"], text, each)):
        said = "".join(text[start:end] for start, end, _ in run).strip()
        if said:
            found[label] = f"{found[label]}\n{said}" if label in found else said
    return found


def whose(message: Message, start: int, end: int, known: Sequence[Span] = ()) -> str:
    """Return whose words most of *message* from *start* to *end* are, as `parts_of`: "" for the speaker's own.

    *known* are the `spans_of` the message, if they were found before. O(characters) without them.
    """
    if message["role"] != "user":
        return ""
    text, sizes = text_of(message), dict[str, int]()
    known = known or spans_of(message)
    for each in [each for each in known if each.start < end and start < each.end] or known[:1]:
        label = _label("", text, each)
        sizes[label] = sizes.get(label, 0) + min(end, each.end) - max(start, each.start)
    return max(sizes, key=sizes.__getitem__, default="")


def _label(role: str, text: str, span: Span) -> str:
    """Return the label of *span*, which is *role* for the speaker's own words."""
    return role if is_quotation(text[span.start : span.end]) else _LABELS.get(span.origin, role)


def spans_of(message: Message) -> list[Span]:
    """Return the spans of the text of *message*, which together are the text. O(characters)."""
    text = text_of(message)
    if message["role"] != "user":
        return [Span(0, len(text), _OF_ROLES.get(message["role"], Origin.OPERATOR))]
    if observes(text):
        return [Span(0, len(text), Origin.TOOL)]
    found, place = [], 0
    for declared, run in groupby(_texts(message), lambda each: each[1]):
        said = "\n".join(each for each, _ in run)
        # a line break between runs belongs to the run before it
        end = min(place + len(said) + 1, len(text))
        if declared:
            found.append(Span(place, end, Origin.DOCUMENT))
        else:
            own = [*spans(text[place:end], _frames(said))]
            found += [Span(place + start, place + stop, origin) for start, stop, origin in own]
        place = end
    return found


def _texts(message: Message) -> Iterator[tuple[str, bool]]:
    """Yield the texts of a user's *message*, and whether its format declares that it is a document."""
    content, declared = message["content"], anthropic.documents(message)
    if isinstance(content, str):
        yield content, declared == [True]
        return
    for number, part in enumerate(content):
        if part.get("type") == "text":
            yield str(part["text"]), number < len(declared) and declared[number]


def _frames(text: str) -> list[tuple[int, int]]:
    """Return where our own frames begin and end: they quote others within a message of the user."""
    ends = {each[1]: each.end() for each in _CLOSE.finditer(text)}
    return list(joined((each.start(), ends.get(each[1], 0)) for each in _OPEN.finditer(text)))
