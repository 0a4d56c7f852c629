"""Text by others: made safe to show, summarised, and analysed; and what memci itself says to a model.

    interface/    the notice, the tools, the text protocol, by language
    sanitize      frames that can't be forged, characters that hide nothing
    summarize/    a title and one line for each message
    language/     tables and detectors, by language: dates, instructions, sentences, terms, telling words
    media         the sizes of images, sounds and files

The same text gives the same result in every process.
"""
