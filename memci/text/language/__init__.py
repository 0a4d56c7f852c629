"""Linguistic tables and detectors: what a text says, by language, without a model.

    tables/*.toml     words and patterns: English, Chinese, Japanese, Korean
    patterns          reads the tables; which writing a text is in
    dates · sentences · main_sentence · terms · keywords · importance · moods · instructions · salience · error_lines

This package knows nothing of pages, windows or memories.
"""
