"""Vectors of passages, where the embedder knows meanings; made in the background, by maintenance.

    passages without a vector of this model  ──▶  embedded, a batch at a time  ──▶  rows of the store, an index in RAM

Vectors of another model are never compared. After a change of the embedder, passages are embedded again from the text
of their pages, and words find them meanwhile. An embedder of spelling (`semantic` is False) makes no vectors of
passages: measured, they add nothing to words and cost precision. This module knows nothing of scores.
"""

import numpy as np

from ..owner import Session
from ..repository.items import packed
from .embedders import embedded
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
        EmbeddingFailed: If the embedder fails. The next maintenance tries again.
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


def cosines(session: Session, vector: Floats) -> Floats | None:
    """Return the cosine of a query's *vector* and each passage, nan for one without a vector; None if there are none.

    O(passages · dimension).
    """
    owner, embedder = session.owner, session.embedder
    if not vector.any():
        return None
    if owner.passages is None or owner.passages.dimension != embedder.dimension:
        owner.passages = _read(session)
    if not len(owner.passages):
        return None
    return owner.passages.scores(vector, owner.index.ids(np.arange(len(owner.index.layout))), missing=float("nan"))


def _read(session: Session) -> VectorIndex:
    index = VectorIndex(session.embedder.dimension)
    rows = session.store.read_rows(_VECTORS, session.owner.nr, session.embedder.name)
    whole = [(id_, row) for id_, row in rows if len(row) == 4 * index.dimension]
    if whole:
        index.add([id_ for id_, _ in whole], np.stack([np.frombuffer(row, np.float32) for _, row in whole]))
    return index
