"""Summaries of a page: a title, and one line per message.

    from memci.text.summarize import extract

    summary = extract(messages)             # needs no model, gives the same lines on every machine
    summary.title                           # "Change my flight to May 27 · OI5L9G"
    summary.lines[2]                        # "find_booking → {id: OI5L9G, date: 2024-05-27, 9 keys}"

`extractive` makes the lines of what each person `said`; `gists` finds what says most, within its `bounds`;
`structured` shortens JSON values, `parts` names content that is not plain text, and `observations` reads the shells of
agents without tools.
"""

from ..sanitize import one_line
from .extractive import (
    LINE_COLUMNS,
    SAID_COLUMNS,
    TITLE_COLUMNS,
    Summary,
    Title,
    extract,
    lines,
    reads,
    titled,
    titles,
)

__all__ = [
    "LINE_COLUMNS",
    "SAID_COLUMNS",
    "TITLE_COLUMNS",
    "Summary",
    "Title",
    "extract",
    "lines",
    "one_line",
    "reads",
    "titled",
    "titles",
]
