"""Pack a published rank file into the form that memci carries.

    python tools/pack_vocabulary.py o200k_base.tiktoken memci/_data/o200k.ranks.xz

A rank file has one line per token, `<base64 of its bytes> <rank>`, and the ranks count up from 0. So the order says
the rank, and what is left to keep is

    count (4 bytes, little-endian) | length of each token (1 byte each) | the bytes of all tokens

compressed by xz. The file is checked against the digest that tiktoken checks it against, before packing, and the
packed form is unpacked and compared. This script knows nothing of patterns or special tokens.
"""

import base64
import gzip
import hashlib
import lzma
import sys
from pathlib import Path

SHA256 = {
    "o200k": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def main(source: Path, target: Path) -> None:
    """Write *target* (`<vocabulary>.ranks.xz`) from the rank file *source*, which may be gzipped."""
    raw = gzip.decompress(source.read_bytes()) if source.suffix == ".gz" else source.read_bytes()
    vocabulary = target.name.partition(".")[0]
    if hashlib.sha256(raw).hexdigest() != SHA256[vocabulary]:
        sys.exit(f"{source}: not the published rank file of {vocabulary}")
    tokens = tokens_of(raw)
    packed = pack(tokens)
    target.write_bytes(lzma.compress(packed, preset=9 | lzma.PRESET_EXTREME))
    if rank_file(unpack(lzma.decompress(target.read_bytes()))) != raw:
        sys.exit(f"{target}: does not give the rank file back")
    sys.stdout.write(f"{target}: {len(tokens):,} tokens, {target.stat().st_size:,} bytes\n")


def tokens_of(raw: bytes) -> list[bytes]:
    """Return the tokens of a rank file by rank."""
    tokens = []
    for rank, line in enumerate(raw.splitlines()):
        token, number = line.split()
        if int(number) != rank:
            sys.exit(f"line {rank + 1}: rank {int(number)} where {rank} is due")
        tokens.append(base64.b64decode(token))
    return tokens


def pack(tokens: list[bytes]) -> bytes:
    """Return count, lengths and bytes of *tokens*."""
    return len(tokens).to_bytes(4, "little") + bytes(map(len, tokens)) + b"".join(tokens)


def unpack(packed: bytes) -> list[bytes]:
    """Return the tokens that `pack` was given."""
    count = int.from_bytes(packed[:4], "little")
    tokens, start = [], 4 + count
    for length in packed[4 : 4 + count]:
        tokens.append(packed[start : start + length])
        start += length
    return tokens


def rank_file(tokens: list[bytes]) -> bytes:
    """Return the rank file of *tokens*."""
    return b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
