"""The door of the gateway: it admits requests, and finds the owner of their conversations.

    Host, Origin      must name this machine or an allowed host, so that no web page can reach the gateway by a name
    x-memci-token     must be the token, if one is set
    credentials       a keyed digest of them all, with their names, names the conversations; they are never stored;
                      under another kind of identity they make other names, so that no conversation changes its owner
    the identity      as the operator declared it: conversations of one identity share a memory
        header:x-user-id           the value of a header
        field:metadata.user_id     the value of a field of the body
        credential                 the credentials that the request carries

A declared value counts alone only behind the operator's token; else the credentials are part of the identity. Without
an identity each conversation has a memory of its own.

All workers decide alike: they share the key beside the store.
"""

import hmac
import json
import os
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

from ..errors import InvalidSetting, brief
from ..storage.opening import is_url
from ..storage.validation import check_filled
from .conversation import Caller

if TYPE_CHECKING:
    from starlette.datastructures import Headers

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_FORM: Final = re.compile(r"(header):([!#$%&'*+.^`|~\w-]+)|(field):([^.]+(?:\.[^.]+)*)|(credential)", re.ASCII)
_CREDENTIAL: Final = re.compile("auth|key|token|cookie", re.IGNORECASE)
_NO_CREDENTIAL: Final = frozenset({"", "basic", "bearer"})
"""values that hold no secret: clients without a key send a scheme alone"""
_NAME: Final = re.compile(r"[^\s,:;=&]+")
_PLAIN: Final = re.compile(r"[\w .:@|+/=-]{1,200}")
"""values that name an owner as they are: ids and addresses; others could not be written in every store"""
KEY: Final = "MEMCI_GATEWAY_KEY"
_KEY_BYTES: Final = 32
TOKEN, CONVERSATION = "x-memci-token", "x-memci-conversation"
_OURS: Final = frozenset({TOKEN, "idempotency-key"})
"""names like those of credentials: memci's own, and one that changes with each request"""


@dataclass(frozen=True)
class Identity:
    """Where a request says who its user is."""

    kind: str  # header, field or credential
    name: str  # the header, in small letters; or the field, with dots; "" for the credential

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the identity that *text* declares; InvalidSetting if it declares none."""
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None or (found[2] or "").lower() == "x-memci-token":
            raise InvalidSetting("identity", f"expected header:NAME, field:NAME or credential, got {brief(text)}")
        kind = found[1] or found[3] or found[5]
        return cls(kind, found[2].lower() if found[2] else found[4] or "")

    def value(self, headers: "Headers", body: Mapping[str, Any]) -> str | None:
        """Return the user that a request names in a header or a field, None if it names none, or several."""
        if self.kind == "header":
            return sole(headers, self.name)
        found: Any = body
        for key in self.name.split("."):
            found = found.get(key) if isinstance(found, dict) else None
        if type(found) is int:
            return str(found)
        return found if isinstance(found, str) and found.strip() else None


@dataclass(frozen=True)
class Door:
    """Admits or refuses requests."""

    key: bytes  # the secret key of the digests of credentials, the same for all workers
    token: str | None  # the value that clients must send as `x-memci-token`; None: none
    hosts: Collection[str]  # names by which the gateway may be called, besides those of this machine
    identity: Identity | None = None  # whose conversations share a memory; None: each conversation has its own
    credentials: Collection[str] = ()
    """headers and query fields that are credentials, besides those that their names show"""

    def __post_init__(self) -> None:
        if self.token is not None:
            check_filled("token", self.token)
        for name in self.credentials:
            if name in _OURS or not _NAME.fullmatch(name):
                raise InvalidSetting("credentials", f"expected the name of a header or query field, got {brief(name)}")

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

    def caller(self, headers: "Headers", query: str, body: Mapping[str, Any]) -> Caller:
        """Return whose request this is, by its *headers*, the *query* of its address and its *body*."""
        credentials = sorted({*self._credentials(headers, query)})
        known = bool(self.token is not None or credentials)
        declared = self.identity
        user = declared.value(headers, body) if declared and known and declared.kind != "credential" else None
        name = sole(headers, CONVERSATION)
        if declared and user is not None:
            plain = bool(_PLAIN.fullmatch(user)) and not self._is_credential(declared.name)
            told = [] if self.token is not None else credentials
            key = self._digest("user" if plain else "hidden user", user, told)
            shown = f"user:{user}" if plain else f"user-{self._digest('user', user)}"
            return Caller(key, shown if self.token is not None else f"{shown}:{key}", name)
        if declared and declared.kind == "credential" and credentials:
            key = self._digest("credential", credentials)
            return Caller(key, key, name)
        key = self._digest("credentials", credentials)
        return Caller(key, f"{key}:named:{name}" if name and known else None, name)

    def identified(self) -> str:
        """Return which identity is in force, as one line."""
        if self.identity is None:
            return "identity: none is declared, so each conversation has a memory of its own"
        if self.identity.kind == "credential":
            return "identity: the credential; conversations of one credential share a memory"
        alone = "alone, behind the token" if self.token is not None else "together with the credential"
        return f"identity: {self.identity.kind} {self.identity.name}, {alone}"

    def _credentials(self, headers: "Headers", query: str) -> Iterator[tuple[str, str]]:
        """Yield the names and values of the credentials of a request."""
        for name, text in [*headers.items(), *parse_qsl(query, errors="surrogateescape")]:
            if self._is_credential(name):
                values = [each.strip(" \t") for each in text.split(";")] if name.lower() == "cookie" else [text]
                yield from ((name.lower(), value) for value in values if value.strip().lower() not in _NO_CREDENTIAL)

    def _is_credential(self, name: str) -> bool:
        name = name.lower()
        return name not in _OURS and bool(_CREDENTIAL.search(name) or name in self.credentials)

    def _digest(self, *parts: object) -> str:
        return "key-" + blake2b(json.dumps(parts).encode(), key=self.key, digest_size=16).hexdigest()


def sole(headers: "Headers", name: str) -> str | None:
    """Return the value of the header *name*; None if it is blank, missing, or given with several values."""
    found = {*headers.getlist(name)}
    return value if len(found) == 1 and (value := found.pop()).strip() else None


def key_beside(store: str | os.PathLike[str]) -> bytes:
    """Return the secret of *store* from a file beside it; make the file if there is none.

    A database has no such file: the variable MEMCI_GATEWAY_KEY holds the secret, the same one on all machines.
    InvalidSetting if the file can't be made or read, or holds no key; or the variable is needed and is not set.
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
                file.write(secrets.token_hex(_KEY_BYTES))
            with suppress(FileExistsError):  # another worker was faster
                os.link(made, path)
            made.unlink()
        key = bytes.fromhex(path.read_text("ascii"))
    except (OSError, ValueError) as error:
        raise InvalidSetting(str(path), f"the gateway's key can't be made or read: {error}") from None
    if len(key) != _KEY_BYTES:
        raise InvalidSetting(str(path), f"expected the gateway's key of {_KEY_BYTES} bytes, got {len(key)}")
    return key


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
