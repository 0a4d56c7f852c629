"""Failures: why a request has no answer, and whether the same request may have one later.

A reason has codes and numbers only. The provider's words may quote what was sent: they are in the cause of the error.
"""

import re
from dataclasses import dataclass

LATE = "no answer in time"
_PASSING = frozenset({408, 409, 425, 429})
"""statuses below 500 that pass: a time-out, a lock, a request that came too early, too many requests"""
_NETWORK = frozenset({"httpx", "httpx2", "httpcore", "httpcore2"})
"""packages that raise errors of the connection; the openai client uses either generation"""
_CODE = re.compile(r"[A-Za-z0-9_.-]{1,60}")


class Unusable(Exception):
    """The server answered, but not as its protocol requires; or it stopped in the middle of an answer."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request has no answer."""

    reason: str
    passing: bool  # whether the same request may be answered later
    status: int | None = None
    detail: str = ""  # all that the server wrote, in lower case: to look for the parameter that it does not know
    parameter: str | None = None  # the parameter that is wrong, where the server names one
    retries: int = 0  # how often the client sent it again


def failure_of(error: Exception) -> Failure | None:
    """Return the failure that *error* means, raised by a client of any version; None: it is a bug."""
    names = {each.__name__ for each in type(error).__mro__}
    packages = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    headers = getattr(getattr(error, "request", None), "headers", None) or {}
    sent_again = str(headers.get("x-stainless-retry-count", ""))  # in this header the client numbers its tries
    retries = int(sent_again) if sent_again.isdecimal() else 0
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        code, parameter = getattr(error, "code", None), getattr(error, "param", None)
        return Failure(
            f"HTTP {status}" + (f", {code}" if isinstance(code, str) and _CODE.fullmatch(code) else ""),
            (status in _PASSING or status >= 500) and code != "insufficient_quota",
            status,
            f"{code} {error}"[:10_000].lower(),
            parameter if isinstance(parameter, str) else None,
            retries,
        )
    if isinstance(error, Unusable):
        return Failure(str(error), passing=True)
    if isinstance(error, TimeoutError) or names & {"APITimeoutError", "TimeoutException"}:
        return Failure(LATE, passing=True, retries=retries)
    if isinstance(error, OSError) or "APIConnectionError" in names or packages & _NETWORK:
        return Failure("no connection, or it was cut", passing=True, retries=retries)
    if "openai" in packages:
        return Failure(f"the client refuses it ({type(error).__name__})", passing=False)
    if isinstance(error, ValueError | TypeError | RecursionError):
        return Failure(f"the request can't be written as JSON ({type(error).__name__})", passing=False)
    return None
