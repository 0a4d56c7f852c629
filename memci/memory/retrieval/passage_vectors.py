"""Vectors of passages, where the embedder knows meanings; made in the background, by maintenance.

    passages without a vector of this model  ──▶  embedded, a batch at a time  ──▶  rows of the store, an index in RAM

Vectors of another model are never compared. After a change of the embedder, passages are embedded again from the text
of their pages, and words find them meanwhile. An embedder of spelling (`semantic` is False) makes no vectors of
passages: measured, they add nothing to words and cost precision. This module knows nothing of scores.
"""

import numpy as np

from ..owner import Session
from .embedders import embedded
from .layout import Floats
from .passages import entry_text
from .vectors import VectorIndex

BATCH = 32
"""passages that are embedded at once"""


def embed(session: Session) -> int:
    """Embed some passages that have no vector yet, and return how many; 0 if all have one.

    Raises:
        EmbeddingFailed: If the embedder fails. The next maintenance tries again.
    """
    owner, embedder = session.owner, session.embedder
    missing = owner.passages.unembedded(embedder.name, BATCH) if embedder.semantic else []
    if not missing:
        return 0
    pages = {id_: dict(page.entries) for id_, page in session.raw(list({each.page for each in missing}))}
    texts = []
    for each in missing:
        message = pages.get(each.page, {}).get(each.entry)
        texts.append("" if message is None else entry_text(message)[each.start : each.start + each.size])
    vectors = embedded(embedder, texts)
    ids = [each.id for each in missing]
    with owner.change():
        owner.passages.keep_vectors(embedder.name, dict(zip(ids, vectors, strict=True)))
    if owner.passage_vectors is not None:
        owner.passage_vectors.add(ids, vectors)
    return len(missing)


def cosines(session: Session, vector: Floats) -> Floats | None:
    """Return the cosine of each passage and a query, nan for one without a vector, None if all are. O(numbers)."""
    owner, embedder = session.owner, session.embedder
    if not vector.any():
        return None
    if owner.passage_vectors is None or owner.passage_vectors.dimension != embedder.dimension:
        index = owner.passage_vectors = VectorIndex(embedder.dimension)
        if known := owner.passages.vectors(embedder.name, embedder.dimension):
            ids, rows = zip(*known, strict=True)
            index.add(ids, np.stack(rows))
    if not len(owner.passage_vectors):
        return None
    return owner.passage_vectors.scores(vector, owner.index.ids, missing=float("nan"))
