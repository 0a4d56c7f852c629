"""SentenceEmbedder: which folders it accepts, and how it asks fastembed. `make embeddings` tries it with a real model.

A stand-in has as much of fastembed as is used: neither the library nor a model is part of the developers' environment.
"""

import json
import sys
from enum import Enum
from importlib.machinery import ModuleSpec
from pathlib import Path
from threading import Thread
from types import ModuleType

import numpy as np
import pytest

from memci.errors import EmbeddingFailed, InvalidSetting
from memci.memory import TieredMemory
from memci.memory.backend import PageRecord
from memci.memory.retrieval.embedders import Embedder, embed
from memci.memory.retrieval.sentence_embedder import SentenceEmbedder
from memci.storage import EphemeralStorage


class PoolingType(Enum):
    MEAN = "MEAN"
    CLS = "CLS"
    LAST_TOKEN = "LAST_TOKEN"


class TextEmbedding:
    """Stands for fastembed's: knows models by their form, and makes rows of the characters of a text."""

    known: dict
    made: list

    @classmethod
    def list_supported_models(cls):
        return [{"model": name} for name in cls.known]

    @classmethod
    def add_custom_model(cls, model, *, pooling, normalization, sources, dim, model_file):
        if model in cls.known:
            raise ValueError(f"Model {model} is already registered")
        cls.known[model] = {"pooling": pooling, "normalization": normalization, "dim": dim, "file": model_file}

    def __init__(self, model_name, *, cache_dir, specific_model_path, threads):
        content = (Path(specific_model_path) / self.known[model_name]["file"]).read_text()
        if content != "weights":
            raise RuntimeError(f"Protobuf parsing failed: {content}")
        self.dim, self.threads = self.known[model_name]["dim"], threads
        self.asked = []
        self.made.append(self)

    def embed(self, documents, batch_size):
        self.asked.append(list(documents))
        for text in documents:
            text.encode("utf-8")
            row = np.bincount([ord(letter) % self.dim for letter in text], minlength=self.dim)
            yield (row / np.linalg.norm(row)).astype(np.float32)


@pytest.fixture(autouse=True)
def library(monkeypatch):
    """Put the stand-in where Python finds fastembed."""
    modules = {
        "fastembed": {"TextEmbedding": type("TextEmbedding", (TextEmbedding,), {"known": {}, "made": []})},
        "fastembed.common": {},
        "fastembed.common.model_description": {"PoolingType": PoolingType, "ModelSource": dict},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    return modules["fastembed"]["TextEmbedding"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_text("weights")
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 8}))
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (tmp_path / file).write_text("{}")
    return tmp_path


def pooling(folder, **modes):
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 8, **modes}))


def test_rows_are_those_of_the_library_and_the_model_is_loaded_once(folder, library):
    """A model is loaded on first use, by one of the threads that want it, and asked in the texts' order."""
    embedder = SentenceEmbedder(folder, threads=2)
    made = len(library.made)

    rows = embed(embedder, ["ab", "", "b"])
    threads = [Thread(target=embedder, args=(["c"],)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert made == 0
    assert (len(library.made), library.made[0].threads) == (1, 2)
    assert library.made[0].asked[0] == ["ab", "b"]
    assert rows.shape == (3, 8)
    assert rows[0] @ rows[2] == pytest.approx(0.5**0.5)
    assert isinstance(embedder, Embedder)
    assert embedder.semantic


def test_a_text_is_made_readable_for_the_tokenizer(folder, library):
    """Half a surrogate pair is replaced, and no more of a text is handed over than a model reads."""
    SentenceEmbedder(folder)(["a\ud800b", "x" * 100_000])

    half, long = library.made[0].asked[0]
    assert half == "a?b"
    assert len(long) == 20_000


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (None, PoolingType.MEAN),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, PoolingType.MEAN),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, PoolingType.CLS),
        ({"pooling_mode_lasttoken": True}, PoolingType.LAST_TOKEN),
        ({"pooling_mode": "cls"}, PoolingType.CLS),
    ],
)
def test_a_model_pools_as_its_makers_say(folder, library, modes, expected):
    """Both forms of the settings are read, the older flags and the newer word; without any, the mean is taken."""
    if modes is not None:
        pooling(folder, **modes)

    SentenceEmbedder(folder)(["a"])

    (known,) = library.known.values()
    assert (known["pooling"], known["normalization"], known["dim"]) == (expected, True, 8)


def test_two_models_of_a_form_are_two_models(folder, library, tmp_path_factory):
    """The library's list of models is one per process: a second model of the same form is no conflict, and itself."""
    other = tmp_path_factory.mktemp("other")
    for file in ("config.json", "tokenizer_config.json"):
        (other / file).write_text((folder / file).read_text())
    (other / "tokenizer.json").write_text('{"version": "2"}')
    (other / "model.onnx").write_text("weights")
    (folder / "onnx" / "model.onnx").rename(folder / "model.onnx")

    one, two = SentenceEmbedder(folder), SentenceEmbedder(other)
    one(["a"])
    two(["a"])

    assert len(library.known) == 1
    assert len(library.made) == 2
    assert one.name != two.name


def test_a_model_is_named_by_its_files_and_not_by_its_folder(folder):
    """Other weights under the same path have another name, so that their vectors are never compared."""
    before, again = SentenceEmbedder(folder).name, SentenceEmbedder(folder).name
    (folder / "onnx" / "model.onnx").write_text("other weights")

    assert before == again
    assert before != SentenceEmbedder(folder).name
    assert SentenceEmbedder(folder, name="mine").name == "mine"


@pytest.mark.parametrize(
    ("file", "content", "error"),
    [
        ("onnx/model.onnx", None, "has no onnx/model.onnx"),
        ("config.json", None, "has no config.json"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer_config.json", None, "has no tokenizer_config.json"),
        ("config.json", "{", "can't read 'config.json'"),
        ("config.json", "[]", "not a JSON object"),
        ("config.json", "{}", "hidden_size"),
        ("config.json", '{"hidden_size": "8"}', "hidden_size"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "pools by 'max'"),
        ("1_Pooling/config.json", '{"pooling_mode": ["mean", "cls"]}', "pools by"),
    ],
)
def test_a_folder_that_holds_no_model_is_refused_at_once(folder, file, content, error):
    """What is missing, unreadable or unknown is an InvalidSetting that names it, before anything is loaded."""
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).unlink() if content is None else (folder / file).write_text(content)

    with pytest.raises(InvalidSetting, match="folder") as caught:
        SentenceEmbedder(folder)
    assert error in str(caught.value)


def test_without_the_library_the_error_says_what_to_install(folder, monkeypatch):
    """Who lacks the extra is told its name when the embedder is made, not at the first search."""
    monkeypatch.setitem(sys.modules, "fastembed", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(InvalidSetting, match=r"memci\[embeddings\]"):
        SentenceEmbedder(folder)


def test_weights_that_can_not_be_loaded_leave_words(folder):
    """A damaged model is EmbeddingFailed, not retryable; a search goes on by words."""
    (folder / "onnx" / "model.onnx").write_text("damaged")
    embedder = SentenceEmbedder(folder)
    with pytest.raises(EmbeddingFailed, match="Protobuf parsing failed") as caught:
        embed(embedder, ["a"])
    memory = TieredMemory(EphemeralStorage(), owner="alice", embedder=embedder)
    memory.observe(PageRecord("talk", 1, 1, ((1, {"role": "user", "content": "I play the violin."}),)))

    assert not caught.value.retryable
    memory.search("violin")
    memory.close()
