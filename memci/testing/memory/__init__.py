"""The conformance suite for memory backends, for your tests as for ours.

from memci.testing.memory.conformance import MemoryConformance
"""
