"""The conformance suite for stores, for your tests as for ours.

    from memci.testing.storage import DurableStorageConformance, StorageConformance

The suite needs pytest and hypothesis, and is loaded when one of these names is first used.
This package knows nothing of any one store.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conformance import DurableStorageConformance, StorageConformance

__all__ = ["DurableStorageConformance", "StorageConformance"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from . import conformance

        return getattr(conformance, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
