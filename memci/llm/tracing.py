"""A trace of calls: after each try, what it was for, how long it took and how it ended.

    chat = Chat("gpt-4.1-mini", on_call=print)
    Call(step='page', model='gpt-4.1-mini', seconds=0.81, usage=Usage(…), attempt=0, tries=1, error=None, …)

A trace never holds a text of a message. This module knows nothing of how calls are made.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from .model import Usage

_LOG = logging.getLogger("memci")


@dataclass(frozen=True, slots=True)
class Call:
    """One try of a call."""

    step: str
    model: str
    seconds: float
    usage: Usage = field(default_factory=Usage)
    attempt: int = 0
    """which answer was asked for: 1 and more after one that was rejected"""
    tries: int = 1
    """how often it was tried by then, because no answer came"""
    error: str | None = None
    """the type of what went wrong; None: it was answered"""
    status: int | None = None
    """the HTTP status of a failure, if there was one"""
    finish: str = ""
    """why the answer ended, as the provider says; "" if there was none"""


OnCall = Callable[[Call], None]


def tell(on_call: OnCall | None, call: Call) -> None:
    """Give *call* to whoever listens; what that raises is logged and breaks nothing."""
    if on_call is None:
        return
    try:
        on_call(call)
    except Exception as error:  # noqa: BLE001 -- a caller's function: a trace that can't be written fails no call
        _LOG.debug("on_call raised %s", type(error).__name__)
