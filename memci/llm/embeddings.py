"""Embeddings of any server that speaks OpenAI's API, as the memory takes them.

    embed = Embeddings("nomic-embed-text", base_url="http://localhost:11434/v1", dimension=768)
    embed.name                          "nomic-embed-text@localhost:11434/v1"
    embed(["Mel plays the violin"])     [[0.013, -0.071, …]]

    TieredMemory(storage, owner="anna", embedder=embed)

The name has the server in it: vectors of two servers are never compared, though both call their model the same. This
module knows nothing of what is embedded.
"""

import base64
import binascii
import json
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..errors import EmbeddingFailed, InvalidSetting, ModelError, brief
from .chat import drive
from .errors_of_servers import Unusable
from .model import Usage
from .options import Terms
from .replies import Body, usage_of
from .requests import EmbeddingDraft
from .retry import Exchange, Send
from .tracing import OnCall
from .usage import Ledger

if TYPE_CHECKING:
    from openai import OpenAI

_PROBE = "dimension"
"""what is embedded to learn how long a row is"""


class Embeddings:
    """A `memci.memory.embedders.Embedder` over HTTP. Thread-safe."""

    def __init__(
        self,
        model: str,
        *,
        dimension: int | None = None,
        batch: int = 64,
        step: str = "embed",
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 30.0,
        tries: int = 3,
        ledger: Ledger | None = None,
        on_call: OnCall | None = None,
        client: "OpenAI | None" = None,
        extra: Mapping[str, Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] | None = None,
    ) -> None:
        """Name a model and its server, as for `memci.llm.Chat`. Nothing is sent.

        Args:
            model: An embedding model.
            dimension: How many numbers a row has; None: the server is asked once, when it is first needed.
            batch: Texts of one request, at most.
            step: What the calls are named in the ledger and in traces.
            base_url: As for a chat, and so are the others.
            api_key: Likewise.
            timeout: Seconds of one try.
            tries: How often a request is tried at most.
            ledger: Where the costs are added up.
            on_call: Called after each try.
            client: An `openai.OpenAI` of your own.
            extra: Other parameters of the provider: {"dimensions": 512} for shorter rows, where the model has them.
            sleep: How to wait, in seconds.
            clock: What time it is, in seconds.
            random: A number from 0 to 1.
        """
        for name, value in (("dimension", dimension), ("batch", batch)):
            if (type(value) is not int or value < 1) and not (name == "dimension" and value is None):
                raise InvalidSetting(name, f"1 or more; not {brief(value)}")
        self._terms = Terms.checked(
            model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            tries=tries,
            max_tokens=None,
            temperature=None,
            ledger=ledger,
            on_call=on_call,
            client=client,
            extra=extra,
            clock=clock,
            random=random,
        )
        self._line = self._terms.line
        self._dimension = dimension
        self._batch, self._step = batch, step
        self._sleep = sleep
        self._client = client
        self._probing = Lock()

    @property
    def name(self) -> str:
        """The model, its server, and how long rows were asked to be, if they were."""
        shorter = (self._terms.extra or {}).get("dimensions")
        return f"{self._line.model}@{self._line.server}" + (f":{shorter}" if shorter else "")

    @property
    def dimension(self) -> int:
        """How many numbers a row has. The first time it may ask the server.

        Raises:
            EmbeddingFailed: If it does not answer; it is asked again the next time.
        """
        with self._probing:
            if self._dimension is None:
                self._dimension = len(self([_PROBE])[0])
            return self._dimension

    @property
    def semantic(self) -> bool:
        """It knows meanings."""
        return True

    @property
    def ledger(self) -> Ledger:
        """What it cost so far."""
        return self._line.ledger

    @property
    def paused(self) -> float:
        """For how many seconds no call is made, since the last ones failed; 0.0: calls are made."""
        return self._line.pause.seconds

    def __call__(self, texts: Sequence[str], /) -> list[Sequence[float]]:
        """Return a row per text, in their order. A request per batch.

        Raises:
            EmbeddingFailed: If there are none; retryable if there may be later.
        """
        rows: list[Sequence[float]] = []
        for start in range(0, len(texts), self._batch):
            rows += self._embedded(texts[start : start + self._batch])
        return rows

    def close(self) -> None:
        """Close the connections; the next call opens new ones. Closing twice is fine."""
        with self._line.lock:
            if self._terms.address is not None and self._client is not None:
                self._client.close()
                self._client = None

    def _embedded(self, texts: Sequence[str]) -> list[Sequence[float]]:
        draft = EmbeddingDraft(texts, model=self._line.model, extra=self._terms.extra)
        exchange = Exchange(self._line, draft, step=self._step, attempt=0)
        try:
            rows, usage = drive(
                exchange.sending(lambda body: _rows(body, len(texts))), send=self._send, sleep=self._sleep
            )
        except ModelError as error:
            raise EmbeddingFailed(self.name, error.reason, retryable=error.retryable) from error
        exchange.answered(usage, estimate=(sum(len(text.encode("utf-8", "replace")) for text in texts) // 4, 0))
        return rows

    def _send(self, send: Send) -> bytes:
        body = Body(send.seconds, self._line.clock)
        with self._line.lock:
            if self._client is None:
                assert self._terms.address is not None, "without a client there is an address"
                self._client = self._terms.address.client(self._line.timeout)
            create = self._client.embeddings.with_streaming_response.create
        with create(**send.parameters, timeout=send.seconds) as response:
            for chunk in response.iter_bytes():
                body.feed(chunk)
        return body.whole()


def _rows(body: bytes, count: int) -> tuple[list[Sequence[float]], Usage]:
    try:
        answer = json.loads(body)  # NaN among them: what is no vector is refused where it is used
    except (ValueError, RecursionError) as error:
        raise Unusable("the answer is no JSON") from error
    given = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        raise Unusable("the answer has no embeddings")
    if len(given) != count:
        raise Unusable(f"{len(given)} embeddings for {count} texts")
    places = [each.get("index", place) for place, each in enumerate(given)]
    if sorted(place for place in places if type(place) is int) != list(range(count)):
        raise Unusable("the embeddings do not say whose they are")
    ordered = sorted(zip(places, given, strict=True), key=lambda pair: pair[0])
    return [_row(each.get("embedding")) for _, each in ordered], usage_of(answer)


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
