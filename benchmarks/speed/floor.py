"""The floor: what no context that counts exactly can be faster than.

    floor     encode the new texts · keep the messages · list 60 references
    ours      the same, and pages, budget, store, compactions

It is timed in turn with the context, on the same texts, so that the noise of the machine falls on both.
This module knows nothing of contexts.
"""

import time
from collections import deque
from collections.abc import Sequence

from memci.tokens import vocabulary

from ..conversation import Message, texts

_SHOWN = 60


class Floor:
    """Does the least for each turn, and tells what that took."""

    def __init__(self) -> None:
        self._encode = vocabulary.encoding("o200k_base").encode_ordinary
        self._encode("loads the vocabulary")
        self._recent: deque[Message] = deque(maxlen=_SHOWN)

    def turn(self, messages: Sequence[Message]) -> int:
        """Return the CPU time of one turn, in nanoseconds."""
        found = [text for message in messages for text in texts(message)]
        encode, recent = self._encode, self._recent
        began = time.thread_time_ns()
        for text in found:
            len(encode(text))
        recent.extend(messages)
        list(recent)
        return time.thread_time_ns() - began


def clock_cost() -> int:
    """Return what reading the clock adds to an interval, in nanoseconds."""
    return sorted(-(time.thread_time_ns() - time.thread_time_ns()) for _ in range(1_001))[500]
