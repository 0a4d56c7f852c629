"""Vectors as they are stored: whole, halved for passages, and for pages compressed, too, if they are mostly zeros."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memci.memory.repository.items import halved, matrix, packed, squeezed, unpacked

UNIT = arrays(np.float32, st.integers(1, 40), elements=st.floats(-1, 1, width=32))


@given(UNIT)
def test_a_vector_comes_back(vector):
    """Whole, bit for bit; halved, to three digits in half of the room. Neither is taken for the other."""
    assert np.array_equal(unpacked(packed(vector)), vector)
    assert np.allclose(unpacked(halved(vector)), vector, atol=5e-4)
    assert unpacked(halved(vector)).dtype == np.float32
    assert len(halved(vector)) == 2 * len(vector) + 1


@given(UNIT, st.integers(0, 400))
def test_a_vector_of_a_page_comes_back(vector, zeros):
    """It is read as if it were halved; with many zeros in less room, and damage is an error."""
    vector = np.concatenate([vector, np.zeros(zeros, np.float32)])
    row = squeezed(vector)

    assert np.array_equal(unpacked(row), unpacked(halved(vector)))
    assert len(row) % 2 == 1
    if zeros == 400:
        assert len(row) < len(halved(vector)) / 4
        with pytest.raises(ValueError, match="not what was written"):
            unpacked(b"\0" + row[1:])


def test_no_vector_is_none():
    """A page without a vector has none."""
    assert unpacked(packed(None)) is None


def test_vectors_of_both_kinds_are_rows_of_one_matrix():
    """Those that an earlier version stored whole stand beside those that are halved, each in its place."""
    vectors = np.eye(5, 7, dtype=np.float32)
    rows = [(packed, halved)[place % 2](vector) for place, vector in enumerate(vectors)]

    assert np.array_equal(matrix(rows, 7), vectors)
    assert matrix([], 7).shape == (0, 7)
