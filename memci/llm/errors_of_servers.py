"""What went wrong with a call: whether to try again, and when.

    429, Retry-After: 7      ──▶  Failure(reason="HTTP 429", passing=True, retry_after=7.0, …)
    401                      ──▶  Failure(reason="HTTP 401, invalid_api_key", passing=False, …)

A reason has codes and numbers, never words of the provider: those quote what was sent, and stand in the cause of the
error. This module knows nothing of sockets; it sorts what the client raises by its form.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

BASE = 0.5
"""seconds of the first wait at most; each further one is up to twice as long"""
LONGEST = 8.0
"""seconds of a wait that the server did not ask for, at most"""
_PASSING = frozenset({408, 409, 425, 429})
_NETWORK = ("httpx", "httpcore")
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class Unusable(Exception):
    """The server answered, but with what is no answer of its protocol; or it stopped in the middle of one."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a try gave no answer."""

    reason: str
    passing: bool
    """whether the same request may be answered later"""
    status: int | None = None
    retry_after: float | None = None
    """seconds to wait, as the server asks"""
    named: str = ""
    """all that the server said, in lower case: to look for the parameter that it does not know"""
    parameter: str | None = None
    """the parameter that is wrong, where the server says so"""


def sort(error: Exception) -> Failure | None:
    """Return what *error*, raised while a request was sent or its answer read, means; None: it is a bug."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return _by_status(error, status)
    roots = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    names = {each.__name__ for each in type(error).__mro__}
    if isinstance(error, Unusable):
        return Failure(str(error), passing=True)
    if isinstance(error, TimeoutError) or names & {"APITimeoutError", "TimeoutException"}:
        return Failure("no answer in time", passing=True)
    if isinstance(error, OSError) or "APIConnectionError" in names or any(r.startswith(_NETWORK) for r in roots):
        return Failure("no connection, or it was cut", passing=True)
    if "openai" in roots:
        return Failure(f"the client refuses it ({type(error).__name__})", passing=False)
    if isinstance(error, ValueError | TypeError | RecursionError):
        return Failure(f"the request can't be written as JSON ({type(error).__name__})", passing=False)
    return None


def wait(tried: int, failure: Failure, random: float) -> float:
    """Return how long to wait before the next try, in seconds.

    Args:
        tried: How many tries failed, from 1.
        failure: The last one.
        random: From 0 to 1: callers that failed together do not come back together.
    """
    jittered = random * min(LONGEST, BASE * 2.0 ** min(tried - 1, 10))
    return jittered if failure.retry_after is None else failure.retry_after + jittered / 4


def _by_status(error: Exception, status: int) -> Failure:
    body = getattr(error, "body", None)
    fields = body if isinstance(body, dict) else {}
    inner = fields.get("error")
    if isinstance(inner, dict):
        fields = inner
    code = fields.get("code")
    named = code if isinstance(code, str) and _CODE.fullmatch(code) else None
    passing = (status in _PASSING or status >= 500) and code != "insufficient_quota"
    parameter = fields.get("param")
    headers = getattr(getattr(error, "response", None), "headers", None)
    return Failure(
        f"HTTP {status}" + (f", {named}" if named else ""),
        passing,
        status,
        _retry_after(headers) if passing and isinstance(headers, Mapping) else None,
        f"{code} {error}"[:10_000].lower(),
        parameter if isinstance(parameter, str) else None,
    )


def _retry_after(headers: Mapping[str, Any]) -> float | None:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / unit
        except ValueError:
            seconds = _until(value, headers.get("date"))
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def _until(moment: str, now: str | None) -> float:
    """Seconds from *now*, as the server's own clock says it, to *moment*; -1 if it is no date."""
    from email.utils import parsedate_to_datetime

    try:
        then = parsedate_to_datetime(moment).replace(tzinfo=UTC).timestamp()
        since = parsedate_to_datetime(now).replace(tzinfo=UTC).timestamp() if now else time.time()
    except ValueError:
        return -1.0
    return max(0.0, then - since)
