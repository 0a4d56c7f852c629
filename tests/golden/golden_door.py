"""The door to a context as the golden tests need it, on the tree before its redesign and on those after it.

    opened(store, "alice", window=4_000, archive_share=0.75)         settings by their names of today
    viewed(store, "alice", at=5)                                     only for reading

It knows nothing of what is done with a context.
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

from memci import Context
from memci.context import memory_client

try:
    from memci.tools import attp
except ImportError:
    from memci import attp  # as it was before the redesign

__all__ = ["attp", "opened", "undisturbed", "viewed"]

NAMES_BEFORE = {"instruction_tokens": "standing_tokens"}
DOOR = inspect.signature(Context.open).parameters


def opened(store, name, **settings):
    """Open the context *name* in *store*, without a clock of its own."""
    if "policy" in DOOR:
        from memci import Policy

        fields = inspect.signature(Policy).parameters
        policy = {key: settings.pop(key) for key in list(settings) if key in fields and key not in DOOR}
        clock = {"clock": None} if "clock" in DOOR else {}
        return Context.open(store, name, policy=Policy(**policy) if policy else None, **clock, **settings)
    return Context.open(store, id=name, **{NAMES_BEFORE.get(key, key): value for key, value in settings.items()})


def viewed(store, name, **moment):
    """Open it only for reading, as of a turn if one is named."""
    if hasattr(Context, "view"):
        return Context.view(store, name, **moment)
    return Context.open(store, id=name, read_only=True, **moment)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep the worker from a context however long the machine pauses: what is due is done where `flush` says so."""
    names = "QUIET_SECONDS", "ALONE_SECONDS"
    before = {name: getattr(memory_client, name) for name in names}
    try:
        for name in names:
            setattr(memory_client, name, 3_600.0)
        yield
    finally:
        for name in names:
            setattr(memory_client, name, before[name])
