"""What went wrong with a call: why there is no answer, and whether there may be one later.

    429                      ──▶  Failure(reason="HTTP 429", passing=True, …)
    401                      ──▶  Failure(reason="HTTP 401, invalid_api_key", passing=False, …)

A reason has codes and numbers, never words of the provider: those quote what was sent, and stand in the cause of the
error. This module knows nothing of sockets: it classifies exceptions by their form, since any client may raise them.
"""

import re
from dataclasses import dataclass

LATE = "no answer in time"
_PASSING = frozenset({408, 409, 425, 429})
_NETWORK = ("httpx", "httpcore")
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class Unusable(Exception):
    """The server answered, but not as its protocol requires; or it stopped in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer."""

    reason: str
    passing: bool
    """whether the same request may be answered later"""
    status: int | None = None
    detail: str = ""
    """all that the server wrote, in lower case: to look for the parameter that it does not know"""
    parameter: str | None = None
    """the parameter that is wrong, where the server names one"""
    retries: int = 0
    """how often the client sent it again"""


def failure_of(error: Exception) -> Failure | None:
    """Return what *error*, raised while a request was sent or its answer read, means; None: it is a bug."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _by_status(error, status)
    roots = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    names = {each.__name__ for each in type(error).__mro__}
    if isinstance(error, Unusable):
        return Failure(str(error), passing=True)
    if isinstance(error, TimeoutError) or names & {"APITimeoutError", "TimeoutException"}:
        return Failure(LATE, passing=True, retries=_retries(error))
    if isinstance(error, OSError) or "APIConnectionError" in names or any(r.startswith(_NETWORK) for r in roots):
        return Failure("no connection, or it was cut", passing=True, retries=_retries(error))
    if "openai" in roots:
        return Failure(f"the client refuses it ({type(error).__name__})", passing=False)
    if isinstance(error, ValueError | TypeError | RecursionError):
        return Failure(f"the request can't be written as JSON ({type(error).__name__})", passing=False)
    return None


def _by_status(error: Exception, status: int) -> Failure:
    body = getattr(error, "body", None)
    fields = body if isinstance(body, dict) else {}
    if isinstance(fields.get("error"), dict):
        fields = fields["error"]
    code, parameter = fields.get("code"), fields.get("param")
    shown = f", {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""
    return Failure(
        f"HTTP {status}{shown}",
        (status in _PASSING or status >= 500) and code != "insufficient_quota",
        status,
        f"{code} {error}"[:10_000].lower(),
        parameter if isinstance(parameter, str) else None,
        _retries(error),
    )


def _retries(error: Exception) -> int:
    """Return how often the client sent the request again: it numbers its tries in a header."""
    headers = getattr(getattr(error, "request", None), "headers", None) or {}
    count = str(headers.get("x-stainless-retry-count", ""))
    return int(count) if count.isdecimal() else 0
