"""The conformance suite for stores, for your tests as for ours; it needs pytest and hypothesis.

from memci.testing.storage import DurableStorageConformance, StorageConformance
"""

from .conformance import StorageConformance
from .durable import DurableStorageConformance

__all__ = ["DurableStorageConformance", "StorageConformance"]
