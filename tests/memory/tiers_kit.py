"""What the tests of the tiers share: rules by which pages move on soon, and pages to move."""

from machine_kit import keeping

from memci.memory.tiers.rules import Rules
from memci.testing.memory.pages import told

SMALL = Rules(capacity=4, batch=2, episodes=3)
"""so that pages move on within a few of them"""


def fill(memory, count, *, start=1, topic="topic", context="alice", now=None, maintain=True):
    """Admit *count* pages of one topic, each with a word of its own."""
    for index in range(start, start + count):
        page = told(index, f"{topic} quokka{index:02}", f"{topic} yes", context=context, at=1e5 + index)
        keeping(memory.session.storage)(page)
        memory.admit(page)
        if maintain:
            memory.maintain(now or 2e5 + index)
