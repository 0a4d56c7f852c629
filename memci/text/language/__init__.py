"""Linguistic tables and detectors: what a text says, by language, without a model.

    dates · sentences · terms · keywords · importance · moods · instructions · salience · error_lines

This package knows nothing of pages, windows or memories.
"""
