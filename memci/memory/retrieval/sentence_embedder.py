"""An embedder that compares meanings, with a sentence model in a folder, run by fastembed.

    folder/onnx/model.onnx  config.json  tokenizer.json  tokenizer_config.json  [1_Pooling/config.json]

The makers of sentence models publish them in this form (`model.onnx` may also be beside the other files). Nothing is
downloaded: copy the folder once; no network is needed. fastembed (0.9, Apache-2.0) takes 230 MB
with all that it needs, sentence-transformers (6.2) 1.4 GB; an `Embedder` over the latter is five lines.
"""

import hashlib
import importlib.util
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import EmbeddingFailed, InvalidSetting
from ...workers import guard_lock

_BATCH = 16  # texts per batch: with 512 tokens each, they need about 200 MB
_LONGEST = 20_000  # characters of a text that are passed to the model: more than it reads
_WEIGHTS = ("onnx/model.onnx", "model.onnx")
_SETTINGS = ("config.json", "tokenizer.json", "tokenizer_config.json")
_POOLING = {"mean": "MEAN", "cls": "CLS", "lasttoken": "LAST_TOKEN"}
"""how the vectors of tokens are combined: the words of sentence-transformers and of fastembed"""
_registry = guard_lock(threading.Lock())


class SentenceEmbedder:
    """Embeds texts by their meaning, with a model in a folder and without a network. Thread-safe.

    `pip install "memci[embeddings]"`. The library and the model are loaded on first use, which takes about two seconds.
    A text beyond the tokens that the model reads (often 512) is cut.
    """

    semantic = True

    def __init__(self, folder: str | Path, *, name: str | None = None, threads: int = 1) -> None:
        """Read the settings of the model in *folder*.

        *name* is the name of its vectors; None: a digest of its files, since folders of two models may have the same
        name. Texts are embedded in the background, so that one of *threads* is usually enough.
        InvalidSetting if fastembed is not installed, or the folder holds no such model.
        """
        if importlib.util.find_spec("fastembed") is None:
            raise InvalidSetting("embedder", 'needs fastembed: pip install "memci[embeddings]"')
        self._folder = Path(folder)
        weights = [each for each in _WEIGHTS if (self._folder / each).is_file()] or list(_WEIGHTS)
        for file in (*_SETTINGS, weights[0]):
            if not (self._folder / file).is_file():
                raise InvalidSetting("folder", f"{self._folder.name!r} has no {file}")
        self._weights = weights[0]
        config = _read(self._folder / "config.json")
        size = config.get("hidden_size", config.get("dim"))
        if type(size) is not int or size < 1:
            raise InvalidSetting("folder", f"hidden_size in config.json is {size!r}, not a whole number above 0")
        self.dimension = size
        self.pooling = _pooling(self._folder / "1_Pooling" / "config.json")
        self._threads = threads
        self._name = name
        self._model: Any = None
        self._lock = guard_lock(threading.Lock())

    @property
    def name(self) -> str:
        """The name of its vectors. If none was given, the files of the model are read once."""
        with self._lock:
            if self._name is None:
                digest = hashlib.sha256(self.pooling.encode())
                for file in (self._weights, "tokenizer.json"):
                    digest.update((self._folder / file).read_bytes())
                self._name = f"onnx-{self.dimension}-{digest.hexdigest()[:16]}"
            return self._name

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of unit length for each text: 10 ms for 200 characters, with a model of 22 M parameters."""
        model = self._loaded()
        # The tokenizer refuses half of a surrogate pair.
        given = [text[:_LONGEST].encode("utf-8", "replace").decode("utf-8") for text in texts]
        return np.array(list(model.embed(given, batch_size=_BATCH)), np.float32).reshape(len(texts), -1)

    def _loaded(self) -> Any:
        name = self.name
        with self._lock:
            try:
                self._model = self._model or self._opened()
            except Exception as error:  # fastembed, onnxruntime and tokenizers raise errors of their own
                raise EmbeddingFailed(name, f"can't load {self._folder.name!r}: {error}"[:300]) from error
            return self._model

    def _opened(self) -> Any:
        from fastembed import TextEmbedding
        from fastembed.common.model_description import ModelSource, PoolingType

        key, folder = f"memci-{self.pooling}-{self.dimension}-{self._weights}", str(self._folder)
        # fastembed has one list of models per process; an entry here describes only the form of a model
        with _registry:
            if all(each["model"] != key for each in TextEmbedding.list_supported_models()):
                TextEmbedding.add_custom_model(
                    key,
                    pooling=PoolingType[_POOLING[self.pooling]],
                    normalization=True,
                    sources=ModelSource(url="none"),  # required, but not used
                    dim=self.dimension,
                    model_file=self._weights,
                )
        return TextEmbedding(key, cache_dir=folder, specific_model_path=folder, threads=self._threads)


def _pooling(path: Path) -> str:
    """Return how a model combines vectors of tokens: as its makers say, else by the mean."""
    modes = _read(path) if path.is_file() else {"pooling_mode": "mean"}
    on = [mode.removeprefix("pooling_mode_") for mode, chosen in modes.items() if chosen is True]  # the older form
    found = str(modes["pooling_mode"]) if "pooling_mode" in modes else " and ".join(on)
    found = found.removesuffix("_tokens").removesuffix("_token")
    if found not in _POOLING:
        raise InvalidSetting("folder", f"the model pools by {found!r}: known are {', '.join(_POOLING)}")
    return found


def _read(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSetting("folder", f"can't read {path.name!r}: {error}") from error
    if not isinstance(found, dict):
        raise InvalidSetting("folder", f"{path.name!r} is not a JSON object")
    return found
