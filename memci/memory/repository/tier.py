"""The tiers of a page as they are stored, and the marks of what was derived from it.

    tier = SHORT    analyzed = FACTS | GRAPH

This module knows nothing of what moves a page.
"""

OBSERVED, SHORT, MID, EVICTED = range(4)
"""found by words only, in the short-term queue, in an episode, in none any more"""

FACTS, GRAPH, QUARANTINED = 1, 2, 4
"""bits of `analyzed`: facts and the profile were derived from the page; the graph was; nothing may ever be"""
