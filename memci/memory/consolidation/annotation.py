"""Annotation: the words that a model used for pages and that stand on none of them; a search finds the page by them.

    "A getaway to the fjords"   #3 "I flew to Bergen and saw the fjords."   #4 "My dog is ill."
    ──▶  #3 is found by "getaway", too

A line belongs to the page whose words it has most of. Words that the page itself has are no part of it, so that what
stands on a page is not counted twice.
"""

from collections.abc import Iterable, Mapping

from ...text.language.terms import terms
from ..backend import PageRecord
from ..retrieval.passages import entry_text

MOST = 64
"""terms of one kind that a page gets"""


def annotation(texts: Iterable[str], pages: Mapping[int, PageRecord]) -> dict[int, list[str]]:
    """Return the terms that each of *pages* (by id) gets of the lines of *texts*. O(characters)."""
    said = {id_: {term for each in page.own for term in terms(entry_text(each))} for id_, page in pages.items()}
    gained: dict[int, dict[str, None]] = {id_: {} for id_ in pages}
    for line in (line for text in texts for line in text.splitlines()):
        used = terms(line)
        best = max(said, key=lambda id_: (len(said[id_].intersection(used)), -id_), default=None)
        if best is not None:
            gained[best].update(dict.fromkeys(term for term in used if term not in said[best]))
    return {id_: list(own)[:MOST] for id_, own in gained.items()}
