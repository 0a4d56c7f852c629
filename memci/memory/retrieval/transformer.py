"""The layers of a BERT in numpy: tokens of many texts, end to end, into one vector per token.

    tokens     [CLS] hi [SEP] [CLS] how are you [SEP]      lengths (3, 5)
    each token by itself   embeddings, projections, feed-forward, norms      one product for all of them
    each text by itself    attention                                        heads × length × length

Float32 throughout; the results are those of the usual padded form to 7 digits. This module knows nothing of texts,
tokenizers or files.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InvalidSetting

_Array = NDArray[np.float32]
_BLOCK = 1 << 15
"""numbers that go through gelu at once, so that they stay in the processor's cache"""


@dataclass(frozen=True, slots=True)
class _Linear:
    weight: _Array
    bias: _Array

    def __call__(self, states: _Array) -> _Array:
        found: _Array = states @ self.weight.T
        found += self.bias
        return found


@dataclass(frozen=True, slots=True)
class _Norm:
    weight: _Array
    bias: _Array
    epsilon: float

    def __call__(self, states: _Array) -> _Array:
        """Bring each row of *states* to mean 0 and variance 1, in place."""
        states -= states.mean(axis=1, keepdims=True)
        spread = np.einsum("ij,ij->i", states, states) / np.float32(states.shape[1])
        states /= np.sqrt(spread + np.float32(self.epsilon))[:, None]
        states *= self.weight
        states += self.bias
        return states


@dataclass(frozen=True, slots=True)
class _Layer:
    projected: _Linear
    """queries, keys and values in one"""
    attended: _Linear
    attention_norm: _Norm
    widened: _Linear
    narrowed: _Linear
    norm: _Norm


class Transformer:
    """The layers, over the weights of a model by their usual names."""

    def __init__(self, weights: Mapping[str, _Array], *, heads: int, layers: int, epsilon: float) -> None:
        prefix = "bert." if "bert.embeddings.word_embeddings.weight" in weights else ""
        self._heads = heads
        try:
            of = {name.removeprefix(prefix): array for name, array in weights.items()}
            self._words = of["embeddings.word_embeddings.weight"]
            self._positions = (
                of["embeddings.position_embeddings.weight"] + of["embeddings.token_type_embeddings.weight"][0]
            )
            self._norm = _norm(of, "embeddings.LayerNorm", epsilon)
            self._layers = [_layer(of, f"encoder.layer.{number}.", epsilon) for number in range(layers)]
        except KeyError as error:
            raise InvalidSetting("folder", f"the weights have no {error.args[0]!r}") from error

    @property
    def shape(self) -> tuple[int, int]:
        """How many tokens it knows, and how many numbers it gives for each."""
        return self._words.shape

    def __call__(self, tokens: NDArray[np.int64], lengths: Sequence[int]) -> _Array:
        """Return a row per token. O(tokens · width² + Σ lengths² · width)."""
        states = self._words[tokens]
        states += np.concatenate([self._positions[:length] for length in lengths])
        states = self._norm(states)
        for layer in self._layers:
            attended = layer.attended(self._attended(layer.projected(states), lengths))
            attended += states
            states = layer.attention_norm(attended)
            narrowed = layer.narrowed(_gelu(layer.widened(states)))
            narrowed += states
            states = layer.norm(narrowed)
        return states

    def _attended(self, projected: _Array, lengths: Sequence[int]) -> _Array:
        width = projected.shape[1] // 3
        mixed = np.empty((len(projected), width), np.float32)
        scale = np.float32(1 / math.sqrt(width // self._heads))
        end = 0
        for length in lengths:
            begin, end = end, end + length
            split = projected[begin:end].reshape(length, 3, self._heads, -1).transpose(1, 2, 0, 3)
            scores = (split[0] * scale) @ split[1].transpose(0, 2, 1)
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=2, keepdims=True)
            mixed[begin:end] = (scores @ split[2]).transpose(1, 0, 2).reshape(length, width)
        return mixed


def _layer(of: Mapping[str, _Array], prefix: str, epsilon: float) -> _Layer:
    own = prefix + "attention.self."
    parts = [_linear(of, own + part) for part in ("query", "key", "value")]
    return _Layer(
        projected=_Linear(
            np.concatenate([part.weight for part in parts]), np.concatenate([part.bias for part in parts])
        ),
        attended=_linear(of, prefix + "attention.output.dense"),
        attention_norm=_norm(of, prefix + "attention.output.LayerNorm", epsilon),
        widened=_linear(of, prefix + "intermediate.dense"),
        narrowed=_linear(of, prefix + "output.dense"),
        norm=_norm(of, prefix + "output.LayerNorm", epsilon),
    )


def _linear(of: Mapping[str, _Array], name: str) -> _Linear:
    return _Linear(of[name + ".weight"], of[name + ".bias"])


def _norm(of: Mapping[str, _Array], name: str, epsilon: float) -> _Norm:
    return _Norm(of[name + ".weight"], of[name + ".bias"], epsilon)


def _gelu(states: _Array) -> _Array:
    """Replace each x of *states* by x·Φ(x), to 4e-7: numpy has no erf, this is formula 7.1.26 of Abramowitz and Stegun.

    With z = |x|/√2 it gives erfc(z)/2 = (a₁t + … + a₅t⁵)·exp(−z²), where t = 1/(1 + pz); x·Φ(x) = max(x, 0) − |x|·that.
    """
    flat = states.reshape(-1)
    for start in range(0, len(flat), _BLOCK):
        block = flat[start : start + _BLOCK]
        z = np.abs(block)
        z *= np.float32(math.sqrt(0.5))
        t = z * np.float32(0.3275911)
        t += np.float32(1)
        np.reciprocal(t, out=t)
        tail = t * np.float32(1.061405429 / 2)
        for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
            tail += np.float32(coefficient / 2)
            tail *= t
        z *= -z
        tail *= np.exp(z, out=z)
        tail *= np.abs(block)
        np.maximum(block, np.float32(0), out=block)
        block -= tail
    return states
