"""The conformance suite for memory backends, for your own backends.

from memci.testing.memory.conformance import MemoryConformance
"""
