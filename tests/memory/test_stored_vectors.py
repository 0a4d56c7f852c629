"""Vectors as they are stored: halved."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memci.memory.repository.items import halve, read_vectors


@given(st.lists(arrays(np.float32, 3, elements=st.floats(-1, 1, width=32)), max_size=4))
def test_vectors_come_back_as_rows_of_one_matrix(vectors):
    """To three digits, in half of the room, in their order."""
    rows = [halve(vector) for vector in vectors]

    assert all(len(row) == 6 for row in rows)
    assert np.allclose(read_vectors(*rows), np.array(vectors).ravel(), atol=5e-4)
    assert read_vectors(*rows).dtype == np.float32
