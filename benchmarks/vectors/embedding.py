"""Embedding: how many texts of 200 characters a second, and how long one question takes.

The texts are cut from the conversation that the other benchmarks play. This module knows nothing of searching.
"""

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from memci.memory.retrieval.embedders import Embedder, embed
from memci.memory.retrieval.hash_embedder import HashEmbedder
from memci.memory.retrieval.sentence_embedder import SentenceEmbedder

from ..conversation import airline, synthetic, texts

_QUESTION = "When did she say that she would fly to Sydney?"


def embedding(model: Path | None, *, texts: int) -> dict[str, dict[str, float]]:
    """Return texts per second and milliseconds per question, for each embedder."""
    pieces = _pieces(texts)
    found = {f"hash {dimension:,}": _timed(HashEmbedder(dimension), pieces) for dimension in (384, 1024, 4096)}
    if model is not None:
        found["sentences"] = _timed(SentenceEmbedder(model), pieces[:128])
    return found


def _pieces(count: int) -> list[str]:
    turns = (airline() or synthetic()).turns()
    said: list[str] = []
    for turn in islice(turns, 10 * count):
        for text in (text for message in turn for text in texts(message)):
            said += [text[start : start + 200] for start in range(0, len(text) - 199, 200)]
        if len(said) >= count:
            break
    return said[:count]


def _timed(embedder: Embedder, pieces: Sequence[str]) -> dict[str, Any]:
    embed(embedder, pieces[:2])
    whole, single = [], []
    for _ in range(3):
        began = time.perf_counter()
        embed(embedder, pieces)
        whole.append(time.perf_counter() - began)
    for _ in range(21):
        began = time.perf_counter()
        embed(embedder, [_QUESTION])
        single.append(time.perf_counter() - began)
    return {"texts_per_second": round(len(pieces) / min(whole), 1), "one_ms": round(median(single) * 1e3, 3)}
