"""An embedder of meaning that runs here: a BERT of the size of MiniLM, in numpy.

    folder/config.json  model.safetensors  tokenizer.json  [1_Pooling/config.json  sentence_bert_config.json]

    texts ─▶ tokens, all texts end to end, nothing padded ─▶ layers ─▶ mean per text ─▶ unit length

What concerns each token by itself is one matrix product for all texts of a batch; only attention goes text by text. So
neither padding nor order can change a vector. The `tokenizers` package is needed: `pip install "memci[embeddings]"`.
This module knows nothing of where weights come from, and loads none over a network.
"""

import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting
from .safetensors import read
from .transformer import Transformer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BATCH = 2048
"""tokens that go through the layers together: about 25 MB of numbers between them"""

_PER_TOKEN = 64
"""characters of a text that are looked at, per token that the model reads"""


class BertEmbedder:
    """Embeds texts with the model in a folder. Thread-safe; what is past `longest` tokens of a text is not read."""

    semantic = True

    def __init__(self, folder: str | Path, *, name: str | None = None) -> None:
        """Read the model's settings; its weights are read on first use.

        Args:
            folder: Where the model lies.
            name: What its vectors are kept under; None: made of a digest of the weights, since two models may share
                a folder's name, and their vectors must never be compared.

        Raises:
            InvalidSetting: If the folder holds no model of this kind.
        """
        self._folder = Path(folder)
        config = _json(self._folder / "config.json")
        if config.get("hidden_act") != "gelu" or config.get("position_embedding_type", "absolute") != "absolute":
            raise InvalidSetting("folder", f"{self._folder.name!r} is no BERT with gelu and absolute positions")
        for file in ("model.safetensors", "tokenizer.json"):
            if not (self._folder / file).is_file():
                raise InvalidSetting("folder", f"{self._folder.name!r} has no {file}")
        self._config = config
        self._name = name
        self._lock = threading.Lock()
        self._loaded: tuple[Tokenizer, Transformer] | None = None
        self.dimension = _whole(config, "hidden_size")
        self.longest = min(_whole(config, "max_position_embeddings"), self._longest_trained())
        self.pooling = self._pooling()

    @property
    def name(self) -> str:
        """What tells the vectors of this model from those of others. Reads the weights once, if no name was given."""
        with self._lock:
            if self._name is None:
                digest = hashlib.sha256()
                for file in ("model.safetensors", "tokenizer.json"):
                    digest.update((self._folder / file).read_bytes())
                self._name = f"bert-{self.dimension}-{self.pooling}-{self.longest}-{digest.hexdigest()[:16]}"
            return self._name

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of unit length per text; a blank text has a row of zeros. About 20 ms for 200 characters."""
        rows = np.zeros((len(texts), self.dimension), np.float32)
        spoken = [position for position, text in enumerate(texts) if text.strip()]
        if not spoken:
            return rows
        tokenizer, model = self._load()
        # Half of a surrogate pair is no character to the tokenizer.
        within = [texts[position][: _PER_TOKEN * self.longest] for position in spoken]
        tokens = [tokenizer.encode(text.encode("utf-8", "replace").decode("utf-8")).ids for text in within]
        batch: list[int] = []
        size = 0
        for which in sorted(range(len(tokens)), key=lambda which: len(tokens[which])):
            if batch and size + len(tokens[which]) > _BATCH:
                self._embed(model, [(spoken[each], tokens[each]) for each in batch], rows)
                batch, size = [], 0
            batch.append(which)
            size += len(tokens[which])
        self._embed(model, [(spoken[each], tokens[each]) for each in batch], rows)
        return rows

    def _embed(self, model: Transformer, batch: Sequence[tuple[int, list[int]]], rows: NDArray[np.float32]) -> None:
        lengths = [len(tokens) for _, tokens in batch]
        states = model(np.concatenate([tokens for _, tokens in batch]), lengths)
        end = 0
        for (row, _), length in zip(batch, lengths, strict=True):
            begin, end = end, end + length
            pooled = states[begin] if self.pooling == "cls" else states[begin:end].mean(axis=0)
            rows[row] = pooled / max(float(np.linalg.norm(pooled)), 1e-12)

    def _load(self) -> tuple["Tokenizer", Transformer]:
        with self._lock:
            if self._loaded is None:
                try:
                    from tokenizers import Tokenizer
                except ImportError as error:
                    raise InvalidSetting("embedder", 'needs tokenizers: pip install "memci[embeddings]"') from error
                tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(self.longest)
                heads, layers = (_whole(self._config, f"num_{what}") for what in ("attention_heads", "hidden_layers"))
                weights = read(self._folder / "model.safetensors")
                epsilon = float(str(self._config.get("layer_norm_eps", 1e-12)))
                model = Transformer(weights, heads=heads, layers=layers, epsilon=epsilon)
                if model.shape != (tokenizer.get_vocab_size(), self.dimension):
                    wanted = f"{tokenizer.get_vocab_size()} tokens × {self.dimension} numbers"
                    raise InvalidSetting("folder", f"the weights are for {model.shape}, not for {wanted}")
                self._loaded = tokenizer, model
            return self._loaded

    def _longest_trained(self) -> int:
        path = self._folder / "sentence_bert_config.json"
        return _whole(_json(path), "max_seq_length") if path.is_file() else 512

    def _pooling(self) -> Literal["mean", "cls"]:
        path = self._folder / "1_Pooling" / "config.json"
        said = _json(path) if path.is_file() else {"pooling_mode_mean_tokens": True}
        chosen = [mode for mode, on in said.items() if mode.startswith("pooling_mode_") and on is True]
        if chosen == ["pooling_mode_mean_tokens"]:
            return "mean"
        if chosen == ["pooling_mode_cls_token"]:
            return "cls"
        raise InvalidSetting("folder", f"{self._folder.name!r} pools by {', '.join(chosen)}: known are mean and cls")


def _json(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSetting("folder", f"can't read {path.name!r}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidSetting("folder", f"{path.name!r} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidSetting("folder", f"{path.name!r} is not a JSON object")
    return found


def _whole(config: Mapping[str, object], key: str) -> int:
    found = config.get(key)
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise InvalidSetting("folder", f"{key} is {found!r}, not a whole number above 0")
    return found
