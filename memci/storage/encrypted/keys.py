"""Keys of the user, which wrap data keys, and data keys, which encrypt rows.

    your key ── wraps ──▶ data key of a context, kept in its record ── encrypts ──▶ messages, settings, compactions
                          data key of an owner, kept in its memory  ── encrypts ──▶ facts, titles, words, vectors

Rotating a key wraps the data keys again; rows are not encrypted again. A key is named by a digest of itself, so that an
error can name the missing key. Rows are encrypted with AES-256-GCM. Associated data binds each to its place: in another
place it can't be decrypted.
"""

import os
import zlib
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Final

import orjson

from ...errors import InvalidSetting, KeyMissing

Keys = bytes | Sequence[bytes] | Callable[[str], Sequence[bytes]]
"""a key of 32 bytes; several, of which the first encrypts and all decrypt; or a function that returns an owner's"""

_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
Place = str | int | tuple[int, int | None] | None  # a value that a row is bound to: its table, context, seq and so on


class Forged(Exception):
    """The bytes were not encrypted with this key for this place."""


class Cipher:
    """A data key of 32 bytes. Thread-safe. InvalidSetting if `cryptography` is not installed."""

    def __init__(self, data_key: bytes) -> None:
        try:
            from cryptography.exceptions import InvalidTag
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError as error:
            raise InvalidSetting("keys", "encryption needs a package: pip install 'memci[encryption]'") from error
        self.data_key = data_key
        self._aead = AESGCM(blake2b(data_key, digest_size=_KEY_BYTES, person=b"memci rows").digest())
        self._mac_key = blake2b(data_key, digest_size=_KEY_BYTES, person=b"memci digests").digest()
        self._invalid = InvalidTag

    def seal(self, plain: bytes, *place: Place, same: bool = False) -> bytes:
        """Return *plain* encrypted for *place*: 28 bytes more. O(bytes).

        *same*: equal bytes are encrypted alike, so that a store can keep them once.
        """
        data = orjson.dumps(place)
        nonce = self.mac(data + b"\x00" + plain, _NONCE_BYTES) if same else os.urandom(_NONCE_BYTES)
        return nonce + self._aead.encrypt(nonce, plain, data)

    def unseal(self, sealed: bytes, *place: Place) -> bytes:
        """Return the bytes that were encrypted for *place*. O(bytes). Forged if they were not, or with another key."""
        try:
            return self._aead.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], orjson.dumps(place))
        except (self._invalid, ValueError) as error:
            raise Forged from error

    def seal_text(self, text: str, *place: Place, same: bool = False, before: str = "") -> str:
        """Return *text*, compressed and encrypted for *place*, in characters of base64. O(characters).

        What it has in common with the text *before* takes no room.
        """
        packing = zlib.compressobj(1, zdict=before.encode())
        packed = packing.compress(text.encode()) + packing.flush()
        return b64encode(self.seal(packed, *place, same=same)).decode()

    def unseal_text(self, sealed: str, *place: Place, before: str = "") -> str:
        """Return the text that was encrypted for *place*, with the same one *before*. It raises as `unseal`."""
        try:
            packed = self.unseal(b64decode(sealed, validate=True), *place)
            return zlib.decompressobj(zdict=before.encode()).decompress(packed).decode()
        except (NotBase64, ValueError, zlib.error) as error:
            raise Forged from error

    def mac(self, content: bytes, size: int) -> bytes:
        """Return a keyed digest of *content*, of *size* bytes. O(bytes)."""
        return blake2b(content, digest_size=size, key=self._mac_key).digest()

    def mask(self, digest: bytes, name: str) -> bytes:
        """Return *digest* (at most 64 bytes) masked for *name*; masking again gives it back. Zeros stay zeros."""
        if not any(digest):
            return digest
        pad = self.mac(name.encode(), len(digest))
        return bytes(a ^ b for a, b in zip(digest, pad, strict=True))


class KeyRing:
    """The keys of a user. A function is called once for each owner, as long as the store is open.

    InvalidSetting if *keys* are not valid.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._of: dict[str, dict[str, bytes]] = {}
        if not callable(keys) and not self._all(""):
            raise InvalidSetting("keys", "there is none: pass 32 random bytes, as from secrets.token_bytes(32)")

    def is_current(self, wrapped: str, owner: str) -> bool:
        """Return whether a data key is *wrapped* with the first key of *owner*. It raises as `wrap`."""
        return wrapped.partition(":")[0] == self._current(owner)[0]

    def wrap(self, cipher: Cipher, owner: str, *place: Place) -> str:
        """Return the data key of *cipher*, encrypted with the first key of *owner* for *place*.

        Raises:
            KeyMissing: If there is no key of this owner.
            InvalidSetting: If a key is not valid.
        """
        name, key = self._current(owner)
        return f"{name}:{Cipher(key).seal_text(cipher.data_key.hex(), 'key', owner, *place)}"

    def unwrap(self, wrapped: str, owner: str, *place: Place) -> Cipher:
        """Return the cipher of a data key that `wrap` encrypted for *place*.

        Raises:
            KeyMissing: If its key was not given.
            Forged: If it was encrypted for another place.
        """
        name, _, sealed = wrapped.partition(":")
        key = self._all(owner).get(name)
        if key is None:
            there = ", ".join(self._all(owner)) or "none"
            reason = f"it is encrypted with the key {name!r:.20}, and {there} was given"
            raise KeyMissing(f"{place[0]} {place[1]!r:.60}", name, reason)
        return Cipher(bytes.fromhex(Cipher(key).unseal_text(sealed, "key", owner, *place)))

    def _current(self, owner: str) -> tuple[str, bytes]:
        for current in self._all(owner).items():
            return current
        raise KeyMissing(f"what belongs to {owner!r:.60}", None, "there is no key for this owner")

    def _all(self, owner: str) -> dict[str, bytes]:
        if owner not in self._of:
            given = self._keys(owner) if callable(self._keys) else self._keys
            each = [given] if isinstance(given, bytes) else list(given)
            if any(not isinstance(key, bytes) or len(key) != _KEY_BYTES for key in each):
                raise InvalidSetting("keys", "a key is 32 random bytes, as from secrets.token_bytes(32)")
            # by their names: 8 hexadecimal digits, which reveal nothing about a key
            self._of[owner] = {blake2b(key, digest_size=4, person=b"memci key name").hexdigest(): key for key in each}
        return self._of[owner]
