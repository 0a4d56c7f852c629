"""The client of a server: openai's, made when it is first needed, its own retries switched off.

    at = Address(base_url="http://localhost:11434/v1", api_key=None)
    at.server                           "localhost:11434/v1"
    at.client()                         an openai.OpenAI that sends a placeholder for the key

The package is an extra: `import memci.llm` does not need it. This module knows nothing of what is sent.
"""

import importlib.util
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import InvalidSetting

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

_OPENAI = "api.openai.com/v1"
_NO_KEY = "none"
"""what is sent as the key to a server that needs none; the client insists on one"""


def model_name(model: str | None) -> str:
    """Return the model that was named, or that of the environment."""
    named = model if model is not None else os.environ.get("MEMCI_MODEL", "")
    if not isinstance(named, str) or not named.strip():
        raise InvalidSetting("model", 'none is named: Chat("gpt-4.1-mini"), or the environment variable MEMCI_MODEL')
    return named


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is, and the key to it."""

    base_url: str | None
    api_key: str | None

    @classmethod
    def found(cls, base_url: str | None, api_key: str | None) -> "Address":
        """Return the address of the arguments, or of the environment, if a client can be made with it.

        Raises:
            InvalidSetting: If the package is missing, or there is neither a key nor a server that may need none.
        """
        if importlib.util.find_spec("openai") is None:
            raise InvalidSetting("openai", "the package is not installed: pip install memci[llm]")
        url = base_url or os.environ.get("OPENAI_BASE_URL") or None
        key = api_key or os.environ.get("OPENAI_API_KEY") or None
        if url is not None and urlsplit(url).scheme not in {"http", "https"}:
            raise InvalidSetting("base_url", 'expected an address like "http://localhost:11434/v1"')
        if url is None and key is None:
            raise InvalidSetting("api_key", "there is none: give one, set OPENAI_API_KEY, or name a server by base_url")
        return cls(url, key if key is not None else _NO_KEY)

    @property
    def server(self) -> str:
        """The server without scheme, user and password."""
        return server_of(self.base_url) if self.base_url else _OPENAI

    def client(self, timeout: float) -> "OpenAI":
        """Make a client."""
        from openai import OpenAI

        return OpenAI(base_url=self.base_url, api_key=self.api_key, timeout=timeout, max_retries=0)

    def async_client(self, timeout: float) -> "AsyncOpenAI":
        """Make a client for one event loop."""
        from openai import AsyncOpenAI

        return AsyncOpenAI(base_url=self.base_url, api_key=self.api_key, timeout=timeout, max_retries=0)


def server_of(url: str) -> str:
    """Return the server of *url* as errors and embedders name it: no scheme, user, password or query."""
    parts = urlsplit(url)
    return f"{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}"
