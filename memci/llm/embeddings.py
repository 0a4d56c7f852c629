"""Embeddings of any server that speaks OpenAI's API, in the form that the memory takes.

    embed = Embeddings("nomic-embed-text", base_url="http://localhost:11434/v1", dimension=768)
    embed.name                          "nomic-embed-text@localhost:11434/v1"
    embed(["Mel plays the violin"])     [[0.013, -0.071, …]]

    TieredMemory(storage, owner="anna", embedder=embed)

The name contains the server: vectors of two servers are never compared, even if both give their model the same name.
"""

import base64
import binascii
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Unpack

from ..errors import EmbeddingFailed, InvalidSetting, ModelError, brief
from ..workers import guard_lock
from .endpoint import Endpoint, EndpointOptions
from .model import Reply
from .replies import IncomingAnswer, parse, usage_of
from .requests import EmbeddingRequest
from .retry import RetryingCall
from .server_errors import Unusable

_PROBE = "dimension"  # a text that is embedded to learn the length of a row; any text does


class Embeddings(Endpoint):
    """A `memci.memory.retrieval.embedders.Embedder` over HTTP. Thread-safe."""

    def __init__(
        self,
        model: str,
        *,
        dimension: int | None = None,
        batch: int = 64,
        step: str = "embed",
        **options: Unpack[EndpointOptions],
    ) -> None:
        """Name a model and its server. Nothing is sent.

        Args:
            model: An embedding model.
            dimension: The length of a row; None: the server is asked once, on first use.
            batch: The most texts of one request.
            step: The name of the calls in the ledger and for `on_call`.
            **options: See `EndpointOptions`. `extra={"dimensions": 512}` asks for shorter rows, if the model has them.
        """
        for name, value in (("dimension", dimension), ("batch", batch)):
            if (type(value) is not int or value < 1) and not (name == "dimension" and value is None):
                raise InvalidSetting(name, f"expected 1 or more; got {brief(value)}")
        super().__init__(model, **options)
        self._dimension = dimension
        self._batch, self._step = batch, step
        self._probing = guard_lock(Lock())

    @property
    def name(self) -> str:
        """The model, its server, and the length of the rows if a shorter one was asked for."""
        shorter = self.parameters.get("extra_body", {}).get("dimensions")
        return f"{self.model}@{self.server}" + (f":{shorter}" if shorter else "")

    @property
    def dimension(self) -> int:
        """The length of a row. On first use it may ask the server.

        Raises:
            EmbeddingFailed: If the server does not answer; the next use asks it again.
        """
        with self._probing:
            if self._dimension is None:
                self._dimension = len(self([_PROBE])[0])
            return self._dimension

    @property
    def semantic(self) -> bool:
        """True: texts of the same meaning are near."""
        return True

    def __call__(self, texts: Sequence[str], /) -> list[Sequence[float]]:
        """Return a row for each text, in their order, with one request per batch.

        Raises:
            EmbeddingFailed: If the server gives none; retryable if it may do so later.
        """
        rows: list[Sequence[float]] = []
        for start in range(0, len(texts), self._batch):
            rows += self._embed(texts[start : start + self._batch])
        return rows

    def _embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        request = EmbeddingRequest(texts, self.parameters)
        prompt = sum(len(text.encode("utf-8", "replace")) for text in texts) // 4
        call = RetryingCall(self, request, step=self._step, prompt=prompt)
        try:
            return call.result(partial(IncomingAnswer, partial(_Rows.of, len(texts)))).rows
        except ModelError as error:
            raise EmbeddingFailed(self.name, error.reason, retryable=error.retryable) from error


@dataclass(frozen=True, slots=True)
class _Rows(Reply):
    """The answer of a server: rows in place of a message."""

    rows: list[Sequence[float]] = field(default_factory=list)

    @classmethod
    def of(cls, count: int, body: bytes) -> "_Rows":
        """Return the rows for *count* texts in *body*, in the order of the texts."""
        answer = parse(body)  # NaN may be among the numbers: the caller checks each vector
        given = answer.get("data")
        if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
            raise Unusable("the answer has no embeddings")
        if len(given) != count:
            raise Unusable(f"{len(given)} embeddings for {count} texts")
        places = [each.get("index", place) for place, each in enumerate(given)]
        if sorted(place for place in places if type(place) is int) != list(range(count)):
            raise Unusable("the embeddings do not say which texts they belong to")
        ordered = dict(zip(places, given, strict=True))
        return cls({}, usage_of(answer), rows=[_row(ordered[place].get("embedding")) for place in range(count)])


def _row(value: object) -> Sequence[float]:
    if isinstance(value, str):
        try:
            floats = array("f", base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError) as error:
            raise Unusable("an embedding is no row of numbers") from error
        return floats
    if not isinstance(value, list) or not all(type(number) in {int, float} for number in value):
        raise Unusable("an embedding is no row of numbers")
    return value
