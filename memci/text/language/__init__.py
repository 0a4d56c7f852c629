"""Linguistic tables and detectors for ten languages, without a model.

    tables/*.toml     words and patterns: one file for each language
    patterns          reads the tables
    sentences         the sentences of a text, its first sentence with content, the writing that it is in
    salience          ids, dates, money, names and errors: what a summary must keep
    telling           the words that say what a text is about; `keywords` counts them
    terms             what a search compares
    dates · instructions · questions

To support another language, add a file in `tables` and its writing in `patterns`.
"""
