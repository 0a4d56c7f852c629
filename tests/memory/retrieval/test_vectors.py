"""The index of vectors finds what a plain scan finds, whatever was added and replaced before."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from memci.memory.retrieval.vectors import VectorIndex


def units(count, dimension, seed=0, groups=None):
    """Made-up vectors of unit length; in *groups*, as those of texts are."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dimension))
    if groups:
        rows = rows + 1.5 * np.random.default_rng(99).normal(size=(groups, dimension))[rng.integers(0, groups, count)]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


class Index(RuleBasedStateMachine):
    """An index and a dict are told the same."""

    DIMENSION = 4
    IDS = st.lists(st.integers(-3, 120), max_size=60)

    @initialize()
    def begin(self):
        self.index = VectorIndex(self.DIMENSION)
        self.rows = {}

    @rule(ids=IDS, seed=st.integers(0, 5))
    def add(self, ids, seed):
        rows = units(len(ids), self.DIMENSION, seed)

        self.index.add(ids, rows)

        self.rows |= dict(zip(ids, rows, strict=True))

    @rule(seed=st.integers(0, 50), ids=st.lists(st.integers(-3, 70), max_size=70))
    def scores(self, seed, ids):
        query = units(1, self.DIMENSION, seed)[0]

        scores = self.index.scores(query, ids, missing=-7.0)

        assert scores.tolist() == pytest.approx(
            [float(self.rows[id_] @ query) if id_ in self.rows else -7.0 for id_ in ids], abs=1e-5
        )


Index.TestCase.settings = settings(max_examples=10, stateful_step_count=15, deadline=None)
TestIndex = Index.TestCase


def test_the_last_of_equal_ids_counts_and_a_row_is_replaced():
    """An id has one row: the one that was given last."""
    index = VectorIndex(2)
    index.add([1, 1], [[1, 0], [0, 1]])
    index.add([1], [[0.6, 0.8]])

    assert index.scores([1, 0], [1]).tolist() == [pytest.approx(0.6)]


def test_scores_of_many_ids_follow_each_change():
    """Ids that are added after many were looked up are found where they are now."""
    ids = np.arange(200)
    rows = units(200, 3)
    index = VectorIndex(3)
    index.add(ids[:100], rows[:100])
    before = index.scores(rows[0], ids, missing=2.0)
    index.add(ids[100:], rows[100:])
    between = index.scores(rows[0], ids, missing=2.0)
    index.add(ids[::3], -rows[::3])
    after = index.scores(rows[0], ids, missing=2.0)

    expected = rows @ rows[0]
    assert before == pytest.approx(np.where(ids < 100, expected, 2.0), abs=1e-6)
    assert between == pytest.approx(expected, abs=1e-6)
    assert after == pytest.approx(np.where(ids % 3 > 0, expected, -expected), abs=1e-6)


def test_an_empty_index_finds_nothing():
    """Before anything is added, there is nothing to find, and nothing fails."""
    assert VectorIndex(2).scores([1, 0], range(40)).tolist() == [0.0] * 40
