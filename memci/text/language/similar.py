"""Words of similar meaning: a text says "football" where a question says "sport".

    similar("sport")    [("athlet", 0.75), ("soccer", 0.71), ("basketbal", 0.66), …]     terms, and how similar they are

The table has English words, by the vectors that a sentence model gives to each alone. tools/pack_similar.py makes it;
no model runs here.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

MOST: Final = 64  # similar terms of each: with half as many, real chats gain half as much; with more, nothing
_FILE = Path(__file__).parents[2] / "_data" / "similar.words"

Similar = Mapping[str, Sequence[tuple[str, float]]]
"""by term: the terms of words that mean nearly the same, the most similar first; from 0 to 1, how similar"""


@lru_cache(maxsize=512)
def similar(term: str) -> list[tuple[str, float]]:
    """Return the similar terms of *term*, none if the table has no such word. O(`MOST`), the first time."""
    terms, rows, numbers, similarities = _table()
    row = rows.get(term, -1)
    near = zip(numbers[row].tolist(), (similarities[row] / 255).tolist(), strict=True)
    return [(terms[number], how) for number, how in near if how] if row >= 0 else []


@cache
def _table() -> tuple[list[str], dict[str, int], Any, Any]:
    """Return the terms, the row of each, and in the rows the numbers of similar terms, and their similarities."""
    head, body = _FILE.read_bytes().split(b"\n\n", 1)
    terms = head.decode("ascii").split("\n")
    numbers, similarities = np.frombuffer(body, "<u2", len(terms) * MOST), np.frombuffer(body, np.uint8)
    shape = len(terms), MOST
    return (
        terms,
        dict(zip(terms, range(len(terms)), strict=True)),
        numbers.reshape(shape),
        similarities[numbers.nbytes :].reshape(shape),
    )
