"""Benchmarks: what a context costs per turn, and what it leaves to a prompt cache.

    python -m benchmarks.speed --quick
    python -m benchmarks.cache --quick

README.md says what is measured and how, LOG.md what was tried. Nothing here is part of the package.
"""
