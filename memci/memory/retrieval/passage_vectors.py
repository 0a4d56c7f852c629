"""Embedding: a vector for each passage, where the embedder knows meanings; made in the background, by maintenance.

    passages without a vector of this model  ──▶  embedded, a batch at a time  ──▶  rows of the store, an index in RAM

Vectors of another model are never compared: after a change of the embedder, passages are embedded anew from the raw
text, and words find them meanwhile. An embedder of spelling (`semantic` is False) adds nothing to words: measured, it
costs precision. This module knows nothing of scores.
"""

from collections.abc import Sequence

import numpy as np

from ..owner import Owner, Session
from ..repository.items import packed
from ..repository.store import MemoryStore
from .embedders import Embedder, embedded
from .layout import Floats
from .passages import entry_text
from .vectors import VectorIndex

BATCH = 32
"""passages that are embedded at once"""

_MISSING = """
SELECT s.id, s.page, s.entry, s.start, s.size FROM memory_owner AS o JOIN memory_passage AS s ON s.owner = o.nr
WHERE o.name = ? AND NOT EXISTS
    (SELECT 1 FROM memory_vector AS v WHERE v.page = s.page AND v.passage = s.id AND v.model = ?)
ORDER BY s.id LIMIT ?"""
_VECTORS = "SELECT passage, vector FROM memory_vector WHERE owner = ? AND model = ? AND passage > 0"


def embed(session: Session) -> int:
    """Embed some passages that have no vector yet, and return how many; 0 if all have one.

    Raises:
        EmbeddingFailed: If the embedder fails; the passages are tried again at the next maintenance.
    """
    store, owner, embedder = session.store, session.owner, session.embedder
    if not embedder.semantic:
        return 0
    missing = store.read_rows(_MISSING, owner.name, embedder.name, BATCH)
    if not missing:
        return 0
    pages = {id_: dict(page.entries) for id_, page in session.raw(list({row[1] for row in missing}))}
    texts = []
    for _, page, entry, start, size in missing:
        message = pages.get(page, {}).get(entry)
        texts.append("" if message is None else entry_text(message)[start : start + size])
    vectors = embedded(embedder, texts)
    with owner.change():
        store.executemany(
            "INSERT OR REPLACE INTO memory_vector SELECT page, id, ?, owner, ? FROM memory_passage WHERE id = ?",
            [(embedder.name, packed(vector), row[0]) for row, vector in zip(missing, vectors, strict=True)],
        )
        store.execute(
            "DELETE FROM memory_vector WHERE owner = ? AND passage > 0 AND model <> ?", owner.nr, embedder.name
        )
    if owner.passages is not None:
        owner.passages.add([row[0] for row in missing], vectors)
    return len(missing)


def cosines(store: MemoryStore, owner: Owner, embedder: Embedder, vector: Floats) -> Floats | None:
    """Return the cosine of a query's *vector* and each passage, nan for one that has none; None without meanings.

    O(passages · dimension).
    """
    if not embedder.semantic or not vector.any():
        return None
    if owner.passages is None or owner.passages.dimension != embedder.dimension:
        owner.passages = _read(store, owner, embedder)
    if not len(owner.passages):
        return None
    every: Sequence[int] = owner.index.ids(np.arange(len(owner.index.layout)))
    return owner.passages.scores(vector, every, missing=float("nan"))


def _read(store: MemoryStore, owner: Owner, embedder: Embedder) -> VectorIndex:
    index = VectorIndex(embedder.dimension)
    rows = store.read_rows(_VECTORS, owner.nr, embedder.name)
    whole = [(id_, row) for id_, row in rows if len(row) == 4 * embedder.dimension]
    if whole:
        index.add([id_ for id_, _ in whole], np.stack([np.frombuffer(row, np.float32) for _, row in whole]))
    return index
