"""The index of vectors finds what a plain scan finds, whatever was added, replaced and removed before."""

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memci.errors import InvalidSetting
from memci.memory.retrieval.vectors import VectorIndex

needs_faiss = pytest.mark.skipif(find_spec("faiss") is None, reason="the extra memci[faiss] is not installed")


def units(count, dimension, seed=0, groups=None):
    """Made-up vectors of unit length; in *groups*, as those of texts are."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dimension))
    if groups:
        rows = rows + 1.5 * np.random.default_rng(99).normal(size=(groups, dimension))[rng.integers(0, groups, count)]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def scan(rows, query, k, allowed=None, excluded=()):
    """The plain form: every cosine, sorted."""
    found = [
        (float(row @ query), id_)
        for id_, row in rows.items()
        if (allowed is None or id_ in allowed) and id_ not in excluded
    ]
    return sorted(found, key=lambda each: (-each[0], each[1]))[:k]


def agree(found, expected, rows, query):
    ids, cosines = found
    assert cosines.tolist() == pytest.approx([cosine for cosine, _ in expected], abs=1e-5)
    assert len(set(ids.tolist())) == len(ids)
    assert cosines.tolist() == pytest.approx([float(rows[id_] @ query) for id_ in ids.tolist()], abs=1e-5)


class Index(RuleBasedStateMachine):
    """An index and a dict are told the same."""

    DIMENSION = 4
    IDS = st.lists(st.integers(-3, 60), max_size=12)

    @initialize(graph_from=st.sampled_from([None, 5] if find_spec("faiss") else [None]))
    def begin(self, graph_from):
        self.index = VectorIndex(self.DIMENSION, graph_from=graph_from)
        self.rows = {}

    @rule(ids=IDS, seed=st.integers(0, 5))
    def add(self, ids, seed):
        rows = units(len(ids), self.DIMENSION, seed)

        self.index.add(ids, rows)

        self.rows |= dict(zip(ids, rows, strict=True))

    @rule(ids=IDS)
    def remove(self, ids):
        removed = self.index.remove(ids)

        assert removed == len(self.rows.keys() & set(ids))
        for id_ in ids:
            self.rows.pop(id_, None)

    @rule(rows=st.integers(1, 40))
    def settle(self, rows):
        waiting = self.index.settle(rows)

        assert 0 <= waiting <= max(0, len(self.rows) - 1)

    @rule(
        seed=st.integers(0, 50),
        k=st.integers(-1, 70),
        allowed=st.none() | st.sets(st.integers(-3, 70)),
        excluded=st.lists(st.integers(-3, 70), max_size=50),
    )
    def search(self, seed, k, allowed, excluded):
        query = units(1, self.DIMENSION, seed)[0]

        found = self.index.search(query, k, allowed=allowed, excluded=excluded)

        agree(found, scan(self.rows, query, max(k, 0), allowed, excluded), self.rows, query)

    @rule(seed=st.integers(0, 50), ids=st.lists(st.integers(-3, 70), max_size=70))
    def scores(self, seed, ids):
        query = units(1, self.DIMENSION, seed)[0]

        scores = self.index.scores(query, ids, missing=-7.0)

        assert scores.tolist() == pytest.approx(
            [float(self.rows[id_] @ query) if id_ in self.rows else -7.0 for id_ in ids], abs=1e-5
        )

    @invariant()
    def holds(self):
        self.index._check()
        assert len(self.index) == len(self.rows)
        assert set(self.index.ids.tolist()) == self.rows.keys()
        assert all(id_ in self.index for id_ in self.rows)


Index.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestIndex = Index.TestCase


def test_equal_cosines_come_by_id():
    """Two rows alike are told apart by their ids, whichever was added first, also at the edge of k."""
    index = VectorIndex(2)
    index.add([5, 3, 9, 1], [[1, 0], [1, 0], [1, 0], [0, 1]])

    ids, cosines = index.search([1, 0], 2)

    assert ids.tolist() == [3, 5]
    assert cosines.tolist() == [1.0, 1.0]


def test_the_last_of_equal_ids_counts_and_a_row_is_replaced():
    """An id has one row: the one that was given last."""
    index = VectorIndex(2)
    index.add([1, 1], [[1, 0], [0, 1]])
    index.add([1], [[0.6, 0.8]])

    assert len(index) == 1
    assert index.scores([1, 0], [1]).tolist() == [pytest.approx(0.6)]


def test_scores_of_many_ids_follow_each_change():
    """Ids that are added, removed or moved after many were looked up are found where they are now."""
    ids = np.arange(200)
    rows = units(200, 3)
    index = VectorIndex(3)
    index.add(ids[:100], rows[:100])
    before = index.scores(rows[0], ids, missing=2.0)
    index.add(ids[100:], rows[100:])
    between = index.scores(rows[0], ids, missing=2.0)
    index.remove(ids[::3])
    after = index.scores(rows[0], ids, missing=2.0)

    expected = rows @ rows[0]
    assert before == pytest.approx(np.where(ids < 100, expected, 2.0), abs=1e-6)
    assert between == pytest.approx(expected, abs=1e-6)
    assert after == pytest.approx(np.where(ids % 3 > 0, expected, 2.0), abs=1e-6)


@pytest.mark.parametrize(
    "rows", [[[1.0]], [[1.0, 0.0, 0.0]], [1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [[np.nan, 0.0]], [[np.inf, 0.0]]]
)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(rows):
    """A wrong dimension or count, NaN and infinity never get in."""
    index = VectorIndex(2)
    index.add([7], [[1, 0]])

    with pytest.raises(InvalidSetting, match="rows"):
        index.add([7], rows)

    assert index.scores([1, 0], [7]).tolist() == [1.0]
    index._check()


@pytest.mark.parametrize("query", [[1.0], [[1.0, 0.0]], [np.nan, 0.0]])
def test_a_query_of_another_model_is_refused(query):
    """A query of another dimension, or that is not finite, is an error, not an empty answer."""
    index = VectorIndex(2)

    with pytest.raises(InvalidSetting, match="query"):
        index.search(query, 1)
    with pytest.raises(InvalidSetting, match="query"):
        index.scores(query, [1])


def test_an_empty_index_finds_nothing():
    """Before anything is added, and after all is removed, there is nothing to find, and nothing fails."""
    index = VectorIndex(2)
    before = index.search([1, 0], 3)
    index.add(range(50), units(50, 2))
    index.remove(range(50))

    for ids, cosines in (before, index.search([1, 0], 3), index.search([1, 0], 3, allowed=range(50))):
        assert ids.tolist() == cosines.tolist() == []
    assert index.scores([1, 0], range(40)).tolist() == [0.0] * 40
    with pytest.raises(InvalidSetting, match="dimension"):
        VectorIndex(0)


def test_room_follows_what_is_kept_both_ways():
    """Memory is at most four times what the rows need, after growing and after removing most."""
    index = VectorIndex(16)
    index.add(range(5000), units(5000, 16))
    grown = index.nbytes
    for id_ in range(5000, 6000):
        index.add([id_], units(1, 16, id_))
    index.remove(range(5900))

    assert grown == 5000 * 16 * 4
    assert index.nbytes <= 4 * 100 * 16 * 4
    assert sorted(index.ids.tolist()) == list(range(5900, 6000))


def test_without_faiss_search_stays_exact_at_any_size(monkeypatch):
    """Where faiss is not installed nothing waits for a graph, and nothing is missed."""
    monkeypatch.setattr("memci.memory.retrieval.vectors.faiss_is_there", lambda: False)
    rows = units(500, 8)
    index = VectorIndex(8, graph_from=10)
    index.add(range(500), rows)

    assert index.settle() == 0
    ids, _ = index.search(rows[123], 3)
    assert ids[0] == 123
    assert ids.tolist() == (-(rows @ rows[123])).argsort()[:3].tolist()


@needs_faiss
@pytest.mark.slow
def test_a_graph_finds_nearly_what_a_scan_finds_after_removals_and_replacements():
    """At least 95 % of the nearest ten are found, with a fifth of the rows gone or changed and some still waiting."""
    rows = dict(enumerate(units(6000, 32, groups=60)))
    index = VectorIndex(32, graph_from=1000)
    index.add(list(rows), list(rows.values()))
    while index.settle(1000):
        pass
    index.remove(range(600))
    changed = units(500, 32, 7, groups=60)
    index.add(range(1000, 1500), changed)
    rows = {id_: row for id_, row in rows.items() if id_ >= 600} | dict(zip(range(1000, 1500), changed, strict=True))

    hits = total = 0
    for query in units(60, 32, 3, groups=60):
        excluded = [id_ for _, id_ in scan(rows, query, 40)]
        for without in ([], excluded):
            expected = scan(rows, query, 10, excluded=without)
            ids, cosines = index.search(query, 10, excluded=without)
            hits += len({id_ for _, id_ in expected} & set(ids.tolist()))
            total += 10
            assert not set(ids.tolist()) & set(without)
            assert cosines.tolist() == pytest.approx([float(rows[id_] @ query) for id_ in ids.tolist()], abs=1e-5)

    index._check()
    assert index._graph.dead == 1100
    assert hits / total >= 0.95


@needs_faiss
@pytest.mark.slow
def test_a_graph_is_asked_further_when_all_that_is_near_was_removed():
    """Dead neighbours around the query do not make the answer short."""
    rows = units(3000, 16, groups=4)
    index = VectorIndex(16, graph_from=1000)
    index.add(range(3000), rows)
    while index.settle(1000):
        pass
    near, _ = index.search(rows[0], 500, allowed=range(3000))

    index.remove(near)
    ids, cosines = index.search(rows[0], 10)

    exact, best = index.search(rows[0], 10, allowed=range(3000))
    assert len(ids) == 10
    assert len(set(ids.tolist()) & set(exact.tolist())) >= 8
    assert cosines[0] == pytest.approx(best[0], abs=1e-5)


@needs_faiss
@pytest.mark.slow
def test_a_graph_with_too_many_dead_is_grown_anew():
    """Past a fifth of dead nodes the next settling begins a new graph; below the bound there is none."""
    index = VectorIndex(8, graph_from=100)
    index.add(range(1000), units(1000, 8))

    assert index.settle(400) == 600
    assert index.settle(600) == 0
    index.remove(range(250))
    assert index._graph.dead == 250
    assert index.settle(500) == 250
    assert (index._graph.dead, index._graph.nodes) == (0, 500)
    index.remove(range(250, 950))
    assert index.settle() == 0
    assert index._graph is None


@needs_faiss
def test_faiss_works_in_one_thread_and_leaves_the_setting_of_others_alone():
    """While the index asks faiss it uses one thread; what the program had set is there again afterwards."""
    import faiss

    index = VectorIndex(8, graph_from=100)
    index.add(range(500), units(500, 8))
    before = faiss.omp_get_max_threads()

    faiss.omp_set_num_threads(3)
    index.settle(500)
    index.search(units(1, 8)[0], 3)
    after = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(before)

    assert after == 3


def test_importing_the_index_loads_no_faiss():
    """faiss takes half a second to import: only a graph pays that."""
    import subprocess
    import sys

    code = (
        "import sys, memci.memory.retrieval.vectors, memci.memory.retrieval.embedder; sys.exit('faiss' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
