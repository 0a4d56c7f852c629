"""Linguistic tables and detectors: what a text says, by language, without a model.

    tables/*.toml     words and patterns: one file for each language
    patterns          reads the tables
    sentences         the sentences of a text, the one that says its point, the writing it is in
    salience          ids, dates, money, names and errors: what must not be lost
    dates · terms · keywords · instructions
"""
