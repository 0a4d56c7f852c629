"""Contexts in RAM, gone with the process.

This package knows nothing of windows, tokens or models.
"""
