"""Make the table of words of similar meaning that memci carries, from a sentence model.

    python tools/pack_similar.py models/all-MiniLM-L6-v2 memci/_data/similar.words

The words are those English ones that are tokens of the model. Each gets the vector that the model gives to it alone; a
term of a search, the mean of the vectors of its words. The table has

    the terms, one a line | an empty line | `MOST` numbers of terms for each (2 bytes each) | how similar each is

The numbers count the terms from 0, little-endian, the most similar first. The last part has a byte for each of them: 0
for a cosine of `LEAST` or less, 255 for 1.
"""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memci.text.language.similar import MOST
from memci.text.language.terms import terms

LEAST = 0.3
"""cosine up to which words have nothing in common: most pairs of words have less"""
_BATCH = 256


def main(source: Path, target: Path) -> None:
    """Write the table *target* from the folder *source* of a sentence model with BERT's tokens."""
    tokens: dict[str, int] = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = [word for word in sorted(tokens, key=tokens.__getitem__) if re.fullmatch("[a-z]{3,}", word)]
    vectors = embed(
        source / "onnx" / "model.onnx", [[tokens["[CLS]"], tokens[word], tokens["[SEP]"]] for word in words]
    )
    own: dict[str, list[int]] = {}
    for number, word in enumerate(words):
        if len(found := terms(word)) == 1:
            own.setdefault(found[0], []).append(number)
    means = np.stack([vectors[numbers].mean(axis=0) for numbers in own.values()])
    target.write_bytes(pack(list(own), means / np.linalg.norm(means, axis=1, keepdims=True)))
    sys.stdout.write(f"{target}: {len(own):,} terms, {target.stat().st_size:,} bytes\n")


def embed(model: Path, texts: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Return the vector of each of *texts*, which are tokens, as many in each: the mean of those of its tokens."""
    import onnxruntime

    session = onnxruntime.InferenceSession(model)
    found = []
    for start in range(0, len(texts), _BATCH):
        batch = np.array(texts[start : start + _BATCH], np.int64)
        given = {"input_ids": batch, "attention_mask": np.ones_like(batch), "token_type_ids": np.zeros_like(batch)}
        mean = session.run(None, given)[0].mean(axis=1)
        found.append(mean / np.linalg.norm(mean, axis=1, keepdims=True))
    return np.concatenate(found)


def pack(found: Sequence[str], vectors: NDArray[np.float32]) -> bytes:
    """Return the table of the terms *found*, each with its row of *vectors*, of unit length."""
    best = np.zeros((len(found), MOST), "<u2")
    close = np.zeros((len(found), MOST), np.uint8)
    for number, vector in enumerate(vectors):
        cosines = vectors @ vector
        cosines[number] = -1
        best[number] = np.argsort(-cosines, kind="stable")[:MOST]
        close[number] = np.round(255 * np.clip((cosines[best[number]] - LEAST) / (1 - LEAST), 0, 1))
    return "\n".join(found).encode("ascii") + b"\n\n" + best.tobytes() + close.tobytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
