"""The door to a context as the golden tests need it.

    opened(store, "alice", window=4_000, archive_share=0.75)         settings and the policy's fields by their names
    viewed(store, "alice", at=5)                                     only for reading

What is done with a context is in `golden_digests`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from memci import Context, Policy
from memci.context import memory_client
from memci.tools import attp

__all__ = ["attp", "opened", "undisturbed", "viewed"]

POLICY = {field.name for field in fields(Policy)}


def opened(store, name, **settings):
    """Open the context *name* in *store*, without a clock of its own."""
    policy = {key: settings.pop(key) for key in list(settings) if key in POLICY}
    return Context.open(store, name, policy=Policy(**policy) if policy else None, clock=None, **settings)


def viewed(store, name, **moment):
    """Open it only for reading, as of a turn if one is named."""
    return Context.view(store, name, **moment)


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
