r"""Encodes a message as bytes, exactly, or refuses it.

    {"role": "user", "content": "Hi"}        codec 1   orjson     {"role":"user","content":"Hi"}
    {"role": "user", "x": 2**80}             codec 2   json       a big integer: orjson can't write it
    {"role": "user", "content": ("a",)}      refused   content: a tuple would come back as a list: pass a list
    {"role": "user", "content": "\ud83d"}    refused   content: half an emoji: no client can send it
    a message of another provider's form     codec 3, 4   the same two, of an envelope with the provider's own items:
                                             {"format": "anthropic", "items": […], "joins": …, "hidden": …, "chat": {…}}

A codec is used only if its bytes read back as an equal message, so no message is ever changed. `==` is enough for
that check, although 1, 1.0 and True are equal in Python: both codecs write these three as 1, 1.0 and true and read
each back as it was. Subclasses (a `StrEnum` role, an `OrderedDict`) come back as the plain value that they equal.
Both codecs keep the order of keys.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, time, timedelta
from hashlib import blake2b
from math import isfinite
from typing import Any, Final

import orjson

from ..errors import InvalidMessage, KeyMissing, LimitExceeded, SchemaTooNew, brief
from ..messages import Enveloped, Native

ORJSON: Final = 1
STDLIB: Final = 2
_ENVELOPED: Final = 2  # added to the codec of the JSON if it is an envelope
_RARE = frozenset({"model", "media"})  # fields of an envelope that are left out if they are empty
ERASED: Final = 0  # the codec of a tombstone: its body is the role of the erased message
SEALED: Final = 64  # added to the codec of a body if it is encrypted (`memci.storage.encrypted`)
ERASED_TEXT: Final = "[erased]"

MAX_BYTES: Final = 8 * 2**20
"""bytes of one message at most: several images in base64 fit, and a batch of messages still fits in RAM"""
MAX_DEPTH: Final = 254  # depth of nested dicts and lists, with the message itself: the limit of orjson
MAX_DIGITS: Final = 640
"""digits of an integer: the lowest limit that `sys.set_int_max_str_digits` accepts, so every Python reads them"""

_MAX_INTEGER = 10**MAX_DIGITS
_ROOT = "message"


def encode(message: Mapping[str, Any]) -> tuple[int, bytes, dict[str, Any]]:
    """Return the codec, the bytes, and a deep copy of *message* decoded from these bytes. O(bytes).

    Raises:
        InvalidMessage: If *message* is not exact JSON; its path names the place, as in `content[0].text`.
        LimitExceeded: If the bytes are more than `MAX_BYTES`.
    """
    if not isinstance(message, dict):
        raise InvalidMessage(_ROOT, f"a {type(message).__name__} is no message: pass a dict")
    if isinstance(message, Enveloped):
        try:
            native = {key: value for key, value in message.native._asdict().items() if value or key not in _RARE}
            codec, body, decoded = encode({**native, "chat": dict(message)})
        except InvalidMessage as error:
            only = len(message.native.items) == 1
            raise InvalidMessage(error.path.removeprefix("items[0].") if only else error.path, error.reason) from None
        return codec + _ENVELOPED, body, _open_envelope(decoded)
    content = message.get("content")
    if isinstance(content, str) and len(content) > MAX_BYTES:
        raise LimitExceeded("message bytes", len(content), MAX_BYTES)  # each character takes at least one byte
    try:
        body = orjson.dumps(message)
        if len(body) > MAX_BYTES:
            raise LimitExceeded("message bytes", len(body), MAX_BYTES)
        decoded = orjson.loads(body)
        if decoded == message:
            return ORJSON, body, decoded
    except (orjson.JSONEncodeError, RecursionError):
        pass
    return STDLIB, *_encode_with_stdlib(message)


def decode(codec: int, body: bytes) -> dict[str, Any]:
    """Return the message that *body* holds. O(bytes).

    Raises:
        KeyMissing: If *body* is encrypted.
        SchemaTooNew: If this version does not know *codec*.
        InvalidMessage: If *body* is not what *codec* writes; check its digest first.
    """
    read = _READERS.get(codec)
    if read is None and codec >= SEALED:
        raise KeyMissing("a message", None, "it is encrypted")
    if read is None:
        raise SchemaTooNew(f"codec {codec!r}: a later memci wrote this message: install that version")
    try:
        message = read(body)
    except ValueError as error:
        raise InvalidMessage(_ROOT, f"its stored bytes are not JSON: {error}") from error
    if not isinstance(message, dict):
        raise InvalidMessage(_ROOT, f"its stored bytes are a {type(message).__name__}, not an object")
    return _open_envelope(message) if codec > _ENVELOPED else message


def _open_envelope(envelope: dict[str, Any]) -> Enveloped:
    """Return the message in *envelope*; InvalidMessage if `encode` did not write it."""
    try:
        chat = envelope.pop("chat")
        native = Native(**envelope)
    except (KeyError, TypeError):
        raise InvalidMessage(_ROOT, "its stored bytes are no envelope") from None
    well = isinstance(native.items, list) and isinstance(native.joins, bool) and isinstance(native.model, str)
    media = native.media if isinstance(native.media, list | tuple) else [None]
    if not (
        well
        and all(isinstance(each, list) and all(type(size) is int and size > 0 for size in each[1:]) for each in media)
        and isinstance(chat, dict)
        and isinstance(native.format, str)
        and type(native.hidden) is int
        and native.hidden >= 0
    ):
        raise InvalidMessage(_ROOT, "its stored bytes are no envelope")
    return Enveloped(chat, native)


def digest(codec: int, body: bytes) -> bytes:
    """Return a digest of *body* under *codec*: 16 bytes. O(bytes)."""
    whole = _DIGESTS[codec].copy() if codec in _DIGESTS else _new_digest(codec)
    whole.update(body)
    return whole.digest()


def _new_digest(codec: int) -> blake2b:
    return blake2b(digest_size=16, person=codec.to_bytes(8, "little", signed=True))


# A copy costs half as much as a new object, and every message is digested.
_DIGESTS = {codec: _new_digest(codec) for codec in (ORJSON, STDLIB, ORJSON + _ENVELOPED, STDLIB + _ENVELOPED)}


def _encode_with_stdlib(message: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    try:
        _check(message, "", (), 0)
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        body = text.encode()
        decoded = _read_with_stdlib(body)
        same = decoded == message
    except RecursionError:
        raise InvalidMessage(_ROOT, _TOO_DEEP) from None
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidMessage | LimitExceeded):
            raise
        raise InvalidMessage(_ROOT, f"it can't be written as JSON: {error}") from error
    if len(body) > MAX_BYTES:
        raise LimitExceeded("message bytes", len(body), MAX_BYTES)
    if not same:
        raise InvalidMessage(_ROOT, "as JSON it would not come back as it is: pass plain dicts, lists, str and numbers")
    return body, decoded


def _read_with_stdlib(body: bytes) -> Any:
    value = json.loads(body.decode())
    json.dumps(value, ensure_ascii=False).encode()  # an escape can hold half of a surrogate pair
    return value


_READERS: Mapping[int, Callable[[bytes], Any]] = {
    ERASED: lambda body: {"role": body.decode("ascii"), "content": ERASED_TEXT},
    ORJSON: orjson.loads,
    STDLIB: _read_with_stdlib,
    ORJSON + _ENVELOPED: orjson.loads,
    STDLIB + _ENVELOPED: _read_with_stdlib,
}


_LONGEST_KEY = 40  # Longer keys are taken for text, and no error repeats text.
_REASONS = (
    (tuple, "a {} would come back as a list: pass a list"),
    ((date, time, timedelta), "a {} is not JSON: pass a string, as isoformat() writes it"),
    ((bytes, bytearray, memoryview), "{} is not JSON: pass text, base64 for instance"),
    (Set, "a {} has no order: pass a list"),
    (Sequence, "a {} is not JSON: pass a list"),
    (Mapping, "a {} is not JSON: pass a dict"),
    (object, "a {} is not JSON: pass a dict, a list, a string, a number, a bool or None"),
)
"""why a value of a type is not exact JSON; the first match counts"""
_TOO_DEEP = f"more than {MAX_DEPTH} dicts and lists inside one another"


def _check(value: object, path: str, above: tuple[int, ...], size: int) -> int:
    """Raise the reason why *value* is not exact JSON; return *size* plus a lower bound of its bytes. O(value)."""
    if isinstance(value, str):
        _check_text(value, path)
        size += len(value)
    elif isinstance(value, int):
        if not -_MAX_INTEGER < value < _MAX_INTEGER:
            raise InvalidMessage(path, f"an integer of more than {MAX_DIGITS} digits: pass it as a string")
    elif isinstance(value, float):
        if not isfinite(value):
            raise InvalidMessage(path, f"{value!r} is not JSON: pass null or a string")
    elif isinstance(value, dict | list):
        if id(value) in above:
            raise InvalidMessage(path or _ROOT, "it contains itself")
        if len(above) >= MAX_DEPTH:
            raise InvalidMessage(path, _TOO_DEEP)
        above = (*above, id(value))
        if isinstance(value, dict):
            for key, each in value.items():
                if not isinstance(key, str):
                    named = f"the key {brief(key)}" if isinstance(key, int | float | None) else "a key"
                    raise InvalidMessage(path or _ROOT, f"{named} is a {type(key).__name__}: JSON keys are strings")
                _check_text(key, _key_path(path, key))
                size = _check(each, _key_path(path, key), above, size + len(key))
        else:
            for i, each in enumerate(value):
                size = _check(each, f"{path}[{i}]", above, size)
    elif value is not None:
        reason = next(reason for kind, reason in _REASONS if isinstance(value, kind))
        raise InvalidMessage(path, reason.format(type(value).__name__))
    if size >= MAX_BYTES:
        raise LimitExceeded("message bytes", size + 1, MAX_BYTES)
    return size + 1


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"character {error.start} is half of a surrogate pair: no client can send it"
        raise InvalidMessage(path, half) from None


def _key_path(path: str, key: str) -> str:
    if len(key) > _LONGEST_KEY:
        return f"{path}[a key of {len(key):,} characters]"
    if not re.fullmatch(r"\w+", key):
        return f"{path}[{key!r}]"
    return f"{path}.{key}" if path else key
