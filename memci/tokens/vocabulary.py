"""The vocabularies that memci includes, as encodings of tiktoken.

tiktoken downloads a vocabulary when it is first used. Here it is built from files of memci instead, byte for byte the
same, in about a third of a second, once per process:

    memci/_data/o200k.ranks.xz  ──unpack──▶  {b"!": 0, …, b" hello": 40617, …}  ──▶  tiktoken.Encoding

A file is `count | length of each token | bytes of all tokens`; the rank of a token is its position. Neither the network
nor an environment variable is used.

If the extra `fast` (splintr) is installed, it encodes instead, in a quarter of the time, with vocabularies of its own.
They are compared with stored tokens when they are loaded. tiktoken encodes what splintr can't.
"""

import lzma
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from itertools import accumulate, pairwise
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..errors import StorageError
from ..workers import guard_lock

if TYPE_CHECKING:
    import tiktoken

_FOLDER = Path(__file__).parent.parent / "_data"
_LOADING = guard_lock(Lock())

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

# A text that splintr must encode as tiktoken does, and the digest of its tokens: letters of many scripts, cases,
# endings, digits, blanks, line ends, marks, emoji, code, and texts like special tokens.
_SAMPLE = (
    "We'll meet MARIA's team at 09:30 on 2024-05-17; it cost $1,234.50, she SAID it'S fine.",
    "Die Größe straße naïve façade ÀÉÎ İstanbul ﬁnal Ǆ ǅ ǆ Здравствуйте, мир. Καλημέρα κόσμε.",
    "昨天我们讨论了项目预算。昨日は予算について話し合いました。어제 우리는 예산에 대해 이야기했고 ",
    "مرحبا بالعالم नमस्ते दुनिया",
    "a  b\t\tc\n\n\n    d \r\n \n\te   \n\u00a0x\u3000y\u2028z\x85 \u200d ",
    'def f(x: list[int]) -> str:\n    return f"{x!r}"  # <=> != :: ->> [[]] {{}} //\n\n{"id":42,"ok":null}\n',
    "👩‍👩‍👧‍👦 🎉🎉 👍🏽 🇩🇪 e\u0301 \ufeff <|endoftext|> <|im_start|> 1234567890 \U0001f9ff\U000e0001",
)
SPECIAL = "<|"  # stands in every special token
_TOKENS = {
    "o200k": "25388b67b7dee62cc20d9d66aa0b551486f7789bee64fce43b403facb576aea0",
    "cl100k": "63903d9bbc9dda18f72bef1c009888184c3c31840843e37d7fc53b1327155f90",
}


def quick(name: str) -> tuple[Callable[[str], Sequence[int]], Callable[[str], bytes]] | None:
    """Return splintr's encoders for *name*, as "o200k_base"; None if it is not installed or gives other tokens.

    The second one, in half the time, returns four bytes for each token of a text without `SPECIAL`. The first call for
    a vocabulary takes a quarter of a second. The encoders may raise any exception of their library.
    """
    with _LOADING:
        return _quick(name.partition("_")[0])


@cache
def _quick(vocabulary: str) -> tuple[Callable[[str], Sequence[int]], Callable[[str], bytes]] | None:
    try:
        from splintr import Tokenizer

        tokenizer = Tokenizer.from_pretrained(f"{vocabulary}_base")
        encode, pack = tokenizer.encode_ordinary, tokenizer.encode_flat
        tokens = [list(encode(text)) for text in _SAMPLE]
        plain = [text.replace(SPECIAL, "") for text in _SAMPLE]
        same = [len(pack(text)) for text in plain] == [4 * len(encode(text)) for text in plain]
        same = same and all(SPECIAL in each for each in tokenizer.special_tokens())
    except Exception:  # noqa: BLE001 -- whatever is wrong with it, tiktoken counts
        return None
    return (encode, pack) if same and sha256(repr(tokens).encode()).hexdigest() == _TOKENS[vocabulary] else None


def encoding(name: str) -> "tiktoken.Encoding":
    """Return the encoding *name*, as "o200k_base". The first call for a vocabulary takes a third of a second.

    It has no special tokens: ordinary text never becomes one.
    StorageError if the file of the vocabulary is missing or damaged.
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
    import tiktoken  # imported late: it takes 25 to 50 ms, and not every program counts

    pattern = "|".join(_PIECES[vocabulary])
    return tiktoken.Encoding(vocabulary, pat_str=pattern, mergeable_ranks=ranks(vocabulary), special_tokens={})
