"""What proves that a part of your own keeps its promises: conformance suites, for your tests as for ours.

    from memci.testing.storage import StorageConformance

Each suite is a module of its own, and imports pytest and hypothesis, which this package does not.
This package knows nothing of any one store or framework.
"""
