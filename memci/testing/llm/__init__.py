"""Models for tests: scripted answers, and a real server over HTTP on this machine.

This package knows nothing of contexts or memories.
"""
