"""An endpoint: one model at one server, with the state that its calls share.

    Chat("qwen3:8b", base_url="http://localhost:11434/v1").server         "localhost:11434/v1"

The connection is an `openai.OpenAI` client, made on first use. The package is an extra: `import memci.llm` does not
need it.
"""

import importlib.util
import os
import time
import weakref
from collections.abc import Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack
from urllib.parse import urlsplit

from ..errors import InvalidSetting, brief, check_keywords
from ..workers import guard_lock
from .circuit_breaker import CircuitBreaker
from .model import OnCall
from .requests import DIALECT, Dialect
from .timeout import LearnedTimeout
from .usage import Ledger

if TYPE_CHECKING:
    from openai import OpenAI

_OPENAI = "api.openai.com/v1"
_NO_KEY = "none"  # a key for servers that need none: the client requires one


class EndpointOptions(TypedDict, total=False):
    """Options of both `Chat` and `Embeddings`. None is required."""

    base_url: str | None
    """None: OPENAI_BASE_URL, or OpenAI"""
    api_key: str | None
    """None: OPENAI_API_KEY. A server that is named by its address may need no key."""
    timeout: float
    """Seconds until the server begins its answer, and again until the answer is whole; in a stream, the seconds between
    two pieces. Default: 30. A slow server gets up to 20 times as many (`memci.llm.timeout`)."""
    tries: int
    """How often a request is sent, at most. Default: 3. Between two tries the openai client waits 0.5 to 8 seconds, or
    as long as the server asks (`Retry-After`, two minutes at most)."""
    ledger: Ledger | None
    """Adds up the costs; None: a new one. Several endpoints may share one."""
    on_call: OnCall | None
    """Called with a `Call` whenever the client has an answer or gives up."""
    client: "OpenAI | None"
    """An `openai.OpenAI` of your own, or one of its subclasses. memci does not close it."""
    extra: Mapping[str, Any] | None
    """More parameters of the provider, sent with each request."""
    clock: Callable[[], float]
    """The time, in seconds."""


class Endpoint:
    """A model at a server, the parent of `Chat` and `Embeddings`. Thread-safe."""

    def __init__(self, model: str | None, **options: Unpack[EndpointOptions]) -> None:
        """Check the settings, see `EndpointOptions`. Nothing is sent."""
        check_keywords(options, EndpointOptions.__annotations__, type(self).__name__)
        client, extra, ledger = options.get("client"), options.get("extra"), options.get("ledger")
        timeout, tries = options.get("timeout", 30.0), options.get("tries", 3)
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < 1e6:
            raise InvalidSetting("timeout", f"expected seconds, more than 0; got {brief(timeout)}")
        if type(tries) is not int or tries < 1:
            raise InvalidSetting("tries", f"expected 1 or more; got {brief(tries)}")
        self._client = client
        self._address = None if client is not None else _address(options.get("base_url"), options.get("api_key"))
        """base URL and key; None: the client is the caller's own"""
        self.model = model if model is not None else os.environ.get("MEMCI_MODEL", "")
        if not isinstance(self.model, str) or not self.model.strip():
            how = 'none is named: Chat("gpt-4.1-mini"), or the environment variable MEMCI_MODEL'
            raise InvalidSetting("model", how)
        url = getattr(client, "base_url", "") if self._address is None else self._address[0]
        parts = urlsplit(str(url))
        self.server = f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}" if url else _OPENAI
        """the server as errors name it: without scheme, user, password or query"""
        self.timeout = LearnedTimeout(timeout)
        self.tries = tries
        self.ledger = Ledger() if ledger is None else ledger
        """adds up the costs of the calls"""
        self.on_call = options.get("on_call")
        self.parameters: dict[str, Any] = {"model": self.model, **({"extra_body": dict(extra)} if extra else {})}
        """parameters of every request"""
        self.clock = options.get("clock", time.monotonic)
        self.dialect: Dialect = DIALECT
        self.breaker = CircuitBreaker(self.clock)
        self._lock = guard_lock(Lock())

    @property
    def paused(self) -> float:
        """The seconds in which no call is sent, because the last ones failed; 0.0: calls are sent."""
        return self.breaker.seconds

    def connect(self, tries: int, seconds: float) -> "OpenAI":
        """Return a client that sends each request at most *tries* times, and waits for *seconds* each time."""
        with self._lock:
            if self._client is None:
                assert self._address is not None, "without a client there is an address"
                from openai import DefaultHttpxClient, OpenAI

                (url, key), hooks = self._address, {"response": [_forbid_useless_retries]}
                http = DefaultHttpxClient(event_hooks=hooks)
                self._client = OpenAI(base_url=url, api_key=key, http_client=http)
                weakref.finalize(self, self._client.close)
            return self._client.with_options(timeout=seconds, max_retries=tries - 1)

    def learn(self, words: Mapping[str, Any]) -> None:
        """Use *words* of the dialect, with which the server accepted a request, for the next requests, too."""
        with self._lock:
            self.dialect = {**self.dialect, **words}

    def close(self) -> None:
        """Close the connections; the next call opens new ones. A client of the caller's own stays open."""
        with self._lock:
            if self._address is not None and self._client is not None:
                self._client.close()
                self._client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _address(base_url: str | None, api_key: str | None) -> tuple[str | None, str]:
    """Return base URL and key from the arguments or the environment."""
    if importlib.util.find_spec("openai") is None:
        raise InvalidSetting("openai", "the package is not installed: pip install 'memci[llm]'")
    url = base_url or os.environ.get("OPENAI_BASE_URL") or None
    key = api_key or os.environ.get("OPENAI_API_KEY") or None
    if url is not None and urlsplit(url).scheme not in {"http", "https"}:
        raise InvalidSetting("base_url", 'expected an address like "http://localhost:11434/v1"')
    if url is None and key is None:
        raise InvalidSetting("api_key", "there is none: pass one, set OPENAI_API_KEY, or name a server by base_url")
    return url, key if key is not None else _NO_KEY


def _forbid_useless_retries(response: Any) -> None:
    """Let the client give up at once if the account is spent: its status is one that passes in other cases."""
    if response.status_code == 429 and b"insufficient_quota" in response.read():
        response.headers["x-should-retry"] = "false"
