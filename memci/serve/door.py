"""The door of the gateway: it admits requests, and finds the owner of their conversations.

    Host, Origin      must name this machine or an allowed host, so that no web page can reach the gateway by a name
    x-memci-token     must be the token, if one is set
    the credential    of the provider: a keyed digest of it, never the credential, names its conversations

All workers decide alike: they share the key beside the store.
"""

import hmac
import os
import re
import secrets
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ..errors import InvalidSetting
from ..storage.opening import is_url
from .conversation import Caller

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_CREDENTIALS: Final = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
KEY: Final = "MEMCI_GATEWAY_KEY"
TOKEN, CONVERSATION, OWNER = "x-memci-token", "x-memci-conversation", "x-memci-owner"


@dataclass(frozen=True)
class Door:
    """Admits or refuses requests."""

    key: bytes
    """the secret key of the digests of credentials, the same for all workers"""
    token: str | None
    """the value that clients must send as `x-memci-token`; None: none"""
    hosts: Collection[str]
    """names by which the gateway may be called, besides those of this machine"""

    def refusal(self, headers: Mapping[str, str], *, needs_token: bool = True) -> tuple[int, str] | None:
        """Return the status and the reason of a refusal of a request with *headers*; None if it is admitted."""
        allowed = LOOPBACK | {host.lower() for host in self.hosts}
        if _name(f"//{headers.get('host', '')}") not in allowed:
            return 403, "the Host of this request is not a name of this gateway: start memci serve with --allow-host"
        origin = headers.get("origin")
        if origin is not None and _name(origin) not in allowed:
            return 403, "a web page of another origin may not use this gateway"
        given = headers.get(TOKEN, "")
        if needs_token and self.token is not None and not hmac.compare_digest(given.encode(), self.token.encode()):
            return 401, f"this gateway wants its token in the header {TOKEN}"
        return None

    def scope(self, headers: Mapping[str, str]) -> Caller:
        """Return the client of a request with *headers*, and the owner of its conversations."""
        credential = [headers.get(name, "") for name in _CREDENTIALS]
        owner = headers.get(OWNER)
        whose = "key-" + self._digest("\0".join(credential))
        scope = "key-" + self._digest("\0".join([*credential, owner])) if owner else whose
        return Caller(scope, owner or whose, headers.get(CONVERSATION) or None)

    def _digest(self, text: str) -> str:
        return blake2b(text.encode(), key=self.key, digest_size=16).hexdigest()


def key_beside(store: str | os.PathLike[str]) -> bytes:
    """Return the secret of *store* from a file beside it; make the file if there is none.

    A database has no such file: the variable MEMCI_GATEWAY_KEY holds the secret, the same one on all machines.

    Raises:
        InvalidSetting: If the file can't be made or read, or holds no key; or the variable is needed and is not set.
    """
    if is_url(store):
        digits = os.environ.get(KEY, "")
        if not re.fullmatch("[0-9a-f]{64}", digits):
            raise InvalidSetting(
                "store", f"the gateway's key for a database is read from {KEY}: set it to 64 hex digits"
            )
        return bytes.fromhex(digits)
    path = Path(f"{str(store).rstrip('/')}.gateway-key")
    made = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        if not path.exists():
            with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32))
            with suppress(FileExistsError):  # another worker was faster
                os.link(made, path)
            made.unlink()
        return bytes.fromhex(path.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise InvalidSetting(str(path), f"the gateway's key can't be made or read: {error}") from None


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
