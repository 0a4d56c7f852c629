"""The tests of memci: they mirror the package."""
