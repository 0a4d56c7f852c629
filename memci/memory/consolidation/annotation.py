"""Annotation: makes pages searchable by words that a model used for them and that the pages do not have.

    "A getaway to the fjords"   #3 "I flew to Bergen and saw the fjords."   #4 "My dog is ill."
    ──▶  #3 is found by "getaway", too

A line belongs to the page with which it shares most words. Words of the page itself are left out, so that they are not
counted twice.
"""

from collections.abc import Iterable, Mapping

from ...formats.utterance import entry_text
from ...text.language.terms import terms
from ..backend import PageRecord

MOST = 64  # terms of one kind that a page gets at most: more than the longest answer of a step has


def annotate(texts: Iterable[str], pages: Mapping[int, PageRecord]) -> dict[int, list[str]]:
    """Return the terms that the lines of *texts* add to each of *pages* (by id). O(characters)."""
    said = {id_: {term for each in page.own for term in terms(entry_text(each))} for id_, page in pages.items()}
    gained: dict[int, dict[str, None]] = {id_: {} for id_ in pages}
    for line in (line for text in texts for line in text.splitlines()):
        used = terms(line)
        best = max(said, key=lambda id_: (len(said[id_].intersection(used)), -id_), default=None)
        if best is not None:
            gained[best].update(dict.fromkeys(term for term in used if term not in said[best]))
    return {id_: list(own)[:MOST] for id_, own in gained.items()}
