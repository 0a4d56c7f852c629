"""`memci search`, `memci consolidate` and `memci inspect --memory`: the memory at the command line.

This package knows nothing of how a memory works.
"""
