"""Provenance: the pages that a text may come from, if its writer had read several.

    sent      #3 "I live in Oslo."    #4 "The code is zanzibar."
    "Lives in Oslo; the code is zanzibar."  from #3, it says      ──▶  #3, and #4: only there stands "zanzibar"

When a page is erased, all is removed that may hold its words, whatever a model named as its source. Too much is better
than too little, since the other sources are analysed again. A word of many pages says nothing of any of them. This
module knows nothing of what the texts are.
"""

from collections.abc import Collection, Mapping

from ...text.language.terms import is_single, terms

COMMON = 3
"""pages in which a word may stand and still show where a text comes from"""
_SHORTEST = 3


def vocabulary(text: str) -> frozenset[str]:
    """Return the words of *text* that may show where another text comes from. O(characters)."""
    return frozenset(term for term in terms(text) if len(term) >= _SHORTEST or not (term.isascii() or is_single(term)))


def sources(text: str, claimed: Collection[int], sent: Mapping[int, frozenset[str]]) -> list[int]:
    """Return the pages, by their ids, that *text* comes from: those *claimed*, and whose words it has besides.

    O(words of it · pages).

    Args:
        text: What was written.
        claimed: The pages that its writer named as its sources.
        sent: All pages that were there to read, with the `vocabulary` of each.
    """
    found = {page for page in claimed if page in sent}
    for word in vocabulary(text).difference(*(sent[page] for page in found)):
        holding = [page for page, own in sent.items() if word in own]
        if len(holding) <= COMMON:
            found.update(holding)
    return sorted(found)
