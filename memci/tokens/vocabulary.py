"""The vocabularies that memci carries, as encodings of tiktoken.

tiktoken downloads a vocabulary when it is first used. Here it is built from our own files instead, byte for byte the
same one, in about a third of a second, once per process:

    memci/_data/o200k.ranks.xz  ──unpack──▶  {b"!": 0, …, b" hello": 40617, …}  ──▶  tiktoken.Encoding

A file is `count | length of each token | bytes of all tokens`; the rank of a token is its position. Neither the network
nor an environment variable is used. This module knows nothing of models or messages.
"""

import lzma
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..errors import StorageError

if TYPE_CHECKING:
    import tiktoken

_FOLDER = Path(__file__).parent.parent / "_data"
_LOADING = Lock()

# The patterns that split a text into the pieces that are merged.
_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PIECES = {
    "o200k": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}",
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ),
    "cl100k": (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+\p{L}++",
        r"\p{N}{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$",
        r"\s*[\r\n]",
        r"\s+(?!\S)",
        r"\s",
    ),
}


def encoding(name: str) -> "tiktoken.Encoding":
    """Return the encoding *name*, as "o200k_base". The first call for a vocabulary takes a third of a second.

    It has no special tokens: ordinary text never becomes one.

    Raises:
        StorageError: If the file of the vocabulary is missing or damaged.
    """
    # Without the lock two threads could build the same 100 MB at once.
    with _LOADING:
        return _encoding(name.partition("_")[0])


@cache
def ranks(vocabulary: str) -> dict[bytes, int]:
    """Return the rank of each token of *vocabulary* ("o200k" or "cl100k"). O(tokens): 0.1 s."""
    path = _FOLDER / f"{vocabulary}.ranks.xz"
    try:
        packed = lzma.decompress(path.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise StorageError(f"can't read the vocabulary {path}: install memci again") from error
    end = 4 + int.from_bytes(packed[:4], "little")
    starts = accumulate(packed[4:end], initial=end)
    return {packed[start:stop]: rank for rank, (start, stop) in enumerate(pairwise(starts))}


@cache
def _encoding(vocabulary: str) -> "tiktoken.Encoding":
    import tiktoken  # imported late: it costs 25 to 50 ms, and not every user of memci counts

    pattern = "|".join(_PIECES[vocabulary])
    return tiktoken.Encoding(vocabulary, pat_str=pattern, mergeable_ranks=ranks(vocabulary), special_tokens={})
