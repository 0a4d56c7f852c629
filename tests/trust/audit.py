"""What the interpreter does while something runs: an audit hook that a test switches on.

    with events("open", "import") as seen:
        storage.load("alice")
    seen                                     [("open", ("/tmp/agent.db", "r", …))]

A hook can't be taken away again, so there is one for the whole process. It tests nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

_watches: list[tuple[int, tuple[str, ...], list[tuple[str, Any]]]] = []
_hooked: list[bool] = []


@contextmanager
def events(*prefixes: str) -> Iterator[list[tuple[str, Any]]]:
    """Give the list of this thread's events whose names begin with one of *prefixes*, while it is filled."""
    if not _hooked:
        _hooked.append(True)
        sys.addaudithook(_seen)
    watch: tuple[int, tuple[str, ...], list[tuple[str, Any]]] = (get_ident(), prefixes, [])
    _watches.append(watch)
    try:
        yield watch[2]
    finally:
        _watches.remove(watch)


def _seen(event: str, args: Any) -> None:
    for thread, prefixes, seen in _watches:
        if event.startswith(prefixes) and get_ident() == thread:
            seen.append((event, args))
