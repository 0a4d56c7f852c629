"""Words of similar meaning: a text says "football" where a question says "sport".

    similar("sport")    [("athlet", 0.75), ("soccer", 0.71), ("basketbal", 0.66), …]     terms, and how similar they are

The table has English words, by the vectors that a sentence model gives to each alone, and for words that name a kind,
what is of it. tools/pack_similar.py makes it; no model runs here.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

_FILE = Path(__file__).parents[2] / "_data" / "similar.words"

Similar = Mapping[str, Sequence[tuple[str, float]]]
"""by term: the terms of words that mean nearly the same, the most similar first; from 0 to 1, how similar"""


@lru_cache(maxsize=512)
def similar(term: str) -> list[tuple[str, float]]:
    """Return the similar terms of *term*, none if the table has no such word. O(their number), the first time."""
    terms, rows, ends, numbers, similarities = _table()
    if (row := rows.get(term)) is None:
        return []
    here = slice(ends[row], ends[row + 1])
    return [
        (terms[number], how / 255)
        for number, how in zip(numbers[here].tolist(), similarities[here].tolist(), strict=True)
    ]


@cache
def _table() -> tuple[list[str], dict[str, int], list[int], Any, Any]:
    """Return the terms, the row of each, where rows end, and what they have: numbers of terms, and similarities."""
    head, body = _FILE.read_bytes().split(b"\n\n", 1)
    terms = head.decode("ascii").split("\n")
    ends = np.cumsum(np.append(0, np.frombuffer(body, "<u2", len(terms)))).tolist()
    numbers = np.frombuffer(body, "<u2", ends[-1], 2 * len(terms))
    similarities = np.frombuffer(body, np.uint8, offset=2 * (len(terms) + ends[-1]))
    return terms, dict(zip(terms, range(len(terms)), strict=True)), ends, numbers, similarities
