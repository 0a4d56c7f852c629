"""Embedders give unit rows or an error, the hashing one the same everywhere, the one of BERT those of its model."""

import hashlib
import math
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.errors import EmbeddingFailed, InvalidSetting, MemciError
from memci.memory.retrieval.embedders import Embedder, embed
from memci.memory.retrieval.hash_embedder import HashEmbedder

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = {8: "7b367cb6e519b471", 384: "c48fdcff3ebca4e8"}
"""digests of vectors, by dimension: if they change, the embedder's name must, too"""

ANY = st.characters(exclude_categories=())


class Fixed:
    """Gives what it was made with."""

    name, dimension, semantic = "fixed", 3, True

    def __init__(self, answer):
        self.answer = answer
        self.asked = []

    def __call__(self, texts):
        self.asked.append(list(texts))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def cosine(embedder, one, other):
    first, second = embed(embedder, [one, other])
    return float(first @ second)


# what every embedder's answer is checked for


def test_rows_are_brought_to_unit_length_whatever_the_embedder_gives():
    """Rows of any length and type of number come out as float32 of length 1, and a row of zeros as it is."""
    rows = embed(Fixed([[3, 4, 0], [0, 0, 0]]), ["a", "b"])

    assert rows.dtype == np.float32
    assert rows.tolist() == [[pytest.approx(0.6), pytest.approx(0.8), 0.0], [0.0, 0.0, 0.0]]


def test_blank_texts_are_rows_of_zeros_and_never_asked_for():
    """An endpoint that refuses an empty text is not asked for one, and is not called when there is nothing else."""
    embedder = Fixed([[1.0, 0.0, 0.0]])

    rows = embed(embedder, ["", "said", " \n\t"])
    nothing = embed(embedder, [" "])

    assert rows.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    assert nothing.tolist() == [[0.0, 0.0, 0.0]]
    assert embed(embedder, []).shape == (0, 3)
    assert embedder.asked == [["said"]]


@pytest.mark.parametrize(
    "answer",
    [
        [[1.0, 0.0]],
        [1.0, 0.0, 0.0],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        [],
        None,
        [["a", "b", "c"]],
        [[1j, 0, 0]],
        [[True, False, False]],
        [[math.nan, 0.0, 0.0]],
        [[math.inf, 0.0, 0.0]],
        [[0.0, -math.inf, math.inf]],
        [[1e300, 0.0, 0.0]],
    ],
)
def test_an_answer_that_is_no_vector_is_an_error_that_names_the_embedder(answer):
    """Wrong dimension, wrong count, no numbers, NaN and infinity raise EmbeddingFailed; trying again will not help."""
    with pytest.raises(EmbeddingFailed, match="'fixed'") as caught:
        embed(Fixed(answer), ["a"])

    assert isinstance(caught.value, MemciError)
    assert not caught.value.retryable
    assert caught.value.data_safe


@pytest.mark.parametrize("answer", [ConnectionError("refused"), [[1.0, 2.0, 3.0], [1.0]]])
def test_an_embedder_that_is_down_is_an_error_to_try_again(answer):
    """What the embedder raises, or an answer that is no table, comes as EmbeddingFailed, retryable, with its cause."""
    with pytest.raises(EmbeddingFailed) as caught:
        embed(Fixed(answer), ["a", "b"])

    again = pickle.loads(pickle.dumps(caught.value))
    assert caught.value.retryable
    assert caught.value.__cause__ is not None
    assert (again.embedder, again.reason, again.retryable) == ("fixed", caught.value.reason, True)


# hashing


@pytest.mark.parametrize("dimension", GOLDEN)
def test_hash_vectors_are_the_same_in_every_process_and_release(dimension):
    """What was stored once can be compared for ever: vectors only change with the embedder's name."""
    texts = [
        "Mel plays the violin",
        "我住在上海",
        "バイオリンのレッスン",
        "바이올린",
        "straße ÉCLAIR 42",
        "😀",
        "\ud800x",
    ]
    code = (
        "import hashlib; from memci.memory.retrieval.hash_embedder import HashEmbedder as H;"
        f"e = H({dimension}); v = e({texts!a}).astype('<f4');"
        "print(e.name, hashlib.sha256(v.tobytes()).hexdigest()[:16])"
    )

    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"}, cwd=ROOT
    ).stdout.split()

    here = hashlib.sha256(HashEmbedder(dimension)(texts).astype("<f4").tobytes()).hexdigest()[:16]
    assert said == [f"memci-words-5-{dimension}", here]
    assert here == GOLDEN[dimension]


@given(
    st.lists(st.text(st.characters(exclude_categories=()), max_size=40), max_size=12), st.sampled_from([8, 100, 1024])
)
def test_a_hash_vector_does_not_depend_on_what_else_is_embedded(texts, dimension):
    """Rows are bit for bit those of each text alone, finite, of length 1 or all zeros."""
    embedder = HashEmbedder(dimension)

    together = embedder(texts)

    assert together.shape == (len(texts), dimension)
    assert together.dtype == np.float32
    for row, text in zip(together, texts, strict=True):
        assert np.array_equal(row, embedder([text])[0])
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5) or not row.any()


@pytest.mark.parametrize(
    ("query", "near", "far"),
    [
        ("violin lessons", "she takes a lesson", "he drives to the stadium"),
        ("VIOLINS", "a violin", "a guitar"),
        ("小提琴课", "她在上小提琴课", "他开车去体育场"),
        ("上海", "我住在上海", "我住在北京"),
        ("バイオリン", "彼女はバイオリンを弾く", "彼はスタジアムへ行く"),
        ("바이올린", "바이올린을 켜다", "경기장에 가다"),
        ("скрипка", "это скрипка", "едет на стадион"),
        ("ｖｉｏｌｉｎ", "violin", "guitar"),
    ],
)
def test_texts_that_share_words_are_near(query, near, far):
    """Endings, case, width and writing without spaces do not part what is the same word."""
    embedder = HashEmbedder()

    assert cosine(embedder, query, near) > cosine(embedder, query, far) + 0.1


def test_hash_vectors_know_no_meanings_and_say_so():
    """A paraphrase without a shared word is no nearer than anything else: the embedder calls itself not semantic."""
    embedder = HashEmbedder()

    assert isinstance(embedder, Embedder)
    assert embedder.semantic is False
    assert abs(cosine(embedder, "fiddle", "violin")) < 0.1


@pytest.mark.parametrize("dimension", [0, 7, -1, 1 << 17, True, 10.0, "384"])
def test_a_dimension_that_makes_no_sense_is_refused(dimension):
    """Only whole numbers from 8 to 65,536 are dimensions."""
    with pytest.raises(InvalidSetting, match="dimension"):
        HashEmbedder(dimension)
