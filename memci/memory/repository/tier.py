"""The tiers of a page, as they are stored: found by words only, short-term, in an episode, out of one again.

This module knows nothing of what moves a page.
"""

OBSERVED, SHORT, MID, EVICTED = range(4)
"""the tiers, as they are stored"""
