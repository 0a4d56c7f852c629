"""Contexts as plain files, to be read with an editor, grep and git; POSIX only.

This package knows nothing of windows, tokens or models.
"""
