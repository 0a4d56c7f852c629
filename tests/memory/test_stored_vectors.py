"""Vectors as they are stored: halved, and for pages compressed, too."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memci.memory.repository.items import halve, read_matrix, squeeze, unsqueeze

UNIT = arrays(np.float32, st.integers(1, 40), elements=st.floats(-1, 1, width=32))


@given(st.lists(arrays(np.float32, 3, elements=st.floats(-1, 1, width=32)), max_size=4))
def test_vectors_come_back_as_rows_of_one_matrix(vectors):
    """To three digits, in half of the room, in their order."""
    rows = [halve(vector) for vector in vectors]

    assert all(len(row) == 6 for row in rows)
    assert np.allclose(read_matrix(rows, 3), np.array(vectors).reshape(-1, 3), atol=5e-4)
    assert read_matrix(rows, 3).dtype == np.float32


@given(UNIT, st.integers(0, 400))
def test_a_vector_of_a_page_comes_back(vector, zeros):
    """It is read as if it were only halved; with many zeros it takes less room, and damage is an error."""
    vector = np.concatenate([vector, np.zeros(zeros, np.float32)])
    row = squeeze(vector)

    assert np.array_equal(unsqueeze(row), read_matrix([halve(vector)], len(vector))[0])
    if zeros == 400:
        assert len(row) < len(halve(vector)) / 4
    with pytest.raises(ValueError, match="not what was written"):
        unsqueeze(b"\0" + row[1:])
