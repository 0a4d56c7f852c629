"""Vectors as they are stored: halved, and for pages compressed, too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memci.memory.repository.items import halved, matrix, squeezed, unsqueezed

UNIT = arrays(np.float32, st.integers(1, 40), elements=st.floats(-1, 1, width=32))


@given(st.lists(arrays(np.float32, 3, elements=st.floats(-1, 1, width=32)), max_size=4))
def test_vectors_come_back_as_rows_of_one_matrix(vectors):
    """To three digits, in half of the room, in their order."""
    rows = [halved(vector) for vector in vectors]

    assert all(len(row) == 6 for row in rows)
    assert np.allclose(matrix(rows, 3), np.array(vectors).reshape(-1, 3), atol=5e-4)
    assert matrix(rows, 3).dtype == np.float32


@given(UNIT, st.integers(0, 400))
def test_a_vector_of_a_page_comes_back(vector, zeros):
    """It is read as if it were only halved; with many zeros it takes less room, and damage is an error."""
    vector = np.concatenate([vector, np.zeros(zeros, np.float32)])
    row = squeezed(vector)

    assert np.array_equal(unsqueezed(row), matrix([halved(vector)], len(vector))[0])
    if zeros == 400:
        assert len(row) < len(halved(vector)) / 4
    with pytest.raises(ValueError, match="not what was written"):
        unsqueezed(b"\0" + row[1:])
