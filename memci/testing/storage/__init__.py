"""The conformance suite for stores, for your tests as for ours.

    from memci.testing.storage.conformance import DurableStorageConformance

This package knows nothing of any one store.
"""
